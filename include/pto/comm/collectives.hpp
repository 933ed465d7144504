// Collectives: one rank, the root, moves the data of all ranks of a group, as one-sided copies.
//
// What      A group names one global tensor per rank, all of one shape. The staging tiles are what the chip copies
//           through; they are not touched.
// Order     As for other copies: whoever needs the data is told by TNOTIFY.
#pragma once

#include "copies.hpp"

namespace pto {
namespace comm {

enum class ReduceOp { Sum = 0, Max, Min };

// Borrows the array of tensors; rootIdx is the rank that calls the collective.
template <class GlobalT> struct ParallelGroup {
  using GlobalData = GlobalT;
  GlobalT* tensors;
  int nranks;
  int rootIdx;

  ParallelGroup(GlobalT* tensor_array, int size, int root) : tensors(tensor_array), nranks(size), rootIdx(root) {}
  static ParallelGroup Create(GlobalT* tensor_array, int size, int root) { return {tensor_array, size, root}; }
  GlobalT& operator[](int rank) const { return tensors[rank]; }
  int GetSize() const { return nranks; }
  int GetRootIdx() const { return rootIdx; }
};

namespace comm_detail {

template <class T> struct IsGroup : std::false_type {};
template <class G> struct IsGroup<ParallelGroup<G>> : std::true_type {};
template <class T> using IfGroup = typename std::enable_if<IsGroup<T>::value, int>::type;

template <class Group> PTO_INLINE void need_group(const Group& group, const char* name) {
  if (group.tensors == nullptr || group.nranks <= 0 || group.rootIdx < 0 || group.rootIdx >= group.nranks)
    fail("%s: a group of %d ranks with root %d; it needs tensors of at least one rank, and a root among them", name,
         group.nranks, group.rootIdx);
}

// Rank `rank`'s part of a tensor that holds one after the other along its rows (dimension 3), in the shape of `one`.
template <class GlobalT, class One> PTO_INLINE auto part_of(const GlobalT& all, const One& one, int rank) {
  using Part = GlobalTensor<typename GlobalT::DType, ::pto::Shape<>, ::pto::Stride<>>;
  return Part(
      all.data() + rank * one.GetShape(3) * all.GetStride(3),
      ::pto::Shape<>(one.GetShape(0), one.GetShape(1), one.GetShape(2), one.GetShape(3), one.GetShape(4)),
      ::pto::Stride<>(all.GetStride(0), all.GetStride(1), all.GetStride(2), all.GetStride(3), all.GetStride(4)));
}
template <class Group, class GlobalT>
PTO_INLINE void need_rows(const Group& group, const GlobalT& all, const char* name) {
  need_group(group, name);
  need_memory(all, name);
  const int64_t rows = group[0].GetShape(3) * group.nranks;
  if (kChecks && all.GetShape(3) < rows)
    fail("%s: a tensor of %lld rows for %d ranks of %lld rows each", name, (long long)all.GetShape(3), group.nranks,
         (long long)group[0].GetShape(3));
}

template <class T> PTO_INLINE T reduced(T a, T b, ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return Add()(a, b);
    case ReduceOp::Max: return Max()(a, b);
    case ReduceOp::Min: return Min()(a, b);
  }
  fail("TREDUCE: operation %d does not exist; operations are Sum, Max and Min", static_cast<int>(op));
}

}  // namespace comm_detail

// src to every rank.
template <class Group, class Src, class... Staging, comm_detail::IfGroup<Group> = 0>
PTO_INLINE RecordEvent TBROADCAST(const Group& group, const Src& src, Staging&...) {
  comm_detail::need_group(group, "TBROADCAST");
  for (int rank = 0; rank < group.nranks; ++rank)
    comm_detail::copy_globals(group[rank], src, comm_detail::PutSame(), "TBROADCAST");
  return {};
}
// The ranks' tensors one after the other along the rows (dimension 3) of dst.
template <class Group, class Dst, class... Staging, comm_detail::IfGroup<Group> = 0>
PTO_INLINE RecordEvent TGATHER(const Group& group, const Dst& dst, Staging&...) {
  comm_detail::need_rows(group, dst, "TGATHER");
  for (int rank = 0; rank < group.nranks; ++rank)
    comm_detail::copy_globals(comm_detail::part_of(dst, group[rank], rank), group[rank], comm_detail::PutSame(),
                              "TGATHER");
  return {};
}
// The parts of src, one after the other along its rows, to the ranks.
template <class Group, class Src, class... Staging, comm_detail::IfGroup<Group> = 0>
PTO_INLINE RecordEvent TSCATTER(const Group& group, const Src& src, Staging&...) {
  comm_detail::need_rows(group, src, "TSCATTER");
  for (int rank = 0; rank < group.nranks; ++rank)
    comm_detail::copy_globals(group[rank], comm_detail::part_of(src, group[rank], rank), comm_detail::PutSame(),
                              "TSCATTER");
  return {};
}
// dst = the ranks' tensors combined element by element, in the order of ranks; dst may be one of them.
template <class Group, class Dst, class Accumulator, class Received, comm_detail::IfGroup<Group> = 0>
PTO_INLINE RecordEvent TREDUCE(const Group& group, const Dst& dst, Accumulator&, Received&, ReduceOp op) {
  using namespace comm_detail;
  using T = typename Dst::RawDType;
  static_assert(std::is_same<T, typename Group::GlobalData::RawDType>::value, "all tensors have one element type");
  need_group(group, "TREDUCE");
  need_memory(dst, "TREDUCE");
  for (int rank = 0; rank < group.nranks; ++rank) need_memory(group[rank], "TREDUCE");
  const auto place = [](const auto& g, const int64_t(&i)[5]) {
    int64_t at = 0;
    for (int d = 0; d < 5; ++d) at += i[d] * g.GetStride(d);
    return at;
  };
  int64_t i[5];
  for (i[0] = 0; i[0] < dst.GetShape(0); ++i[0])
    for (i[1] = 0; i[1] < dst.GetShape(1); ++i[1])
      for (i[2] = 0; i[2] < dst.GetShape(2); ++i[2])
        for (i[3] = 0; i[3] < dst.GetShape(3); ++i[3])
          for (i[4] = 0; i[4] < dst.GetShape(4); ++i[4]) {
            auto value = load(group[0].data()[place(group[0], i)]);
            for (int rank = 1; rank < group.nranks; ++rank) {
              const auto next = load(group[rank].data()[place(group[rank], i)]);
              value = reduced(value, next, op);
            }
            dst.data()[place(dst, i)] = store<T>(value);
          }
  order_memory();
  return {};
}
template <class Group, class Dst, class Accumulator, class Received, class Second, comm_detail::IfGroup<Group> = 0>
PTO_INLINE RecordEvent TREDUCE(const Group& group, const Dst& dst, Accumulator& accumulator, Received& received,
                               Second&, ReduceOp op) {
  return TREDUCE(group, dst, accumulator, received, op);
}

}  // namespace comm
}  // namespace pto

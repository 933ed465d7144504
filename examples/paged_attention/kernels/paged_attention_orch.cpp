// Attention of one new token for each sequence of a batch, over keys and values that lie in pages. One source for both
// runtimes: the page table and the lengths are read from tensors that no task writes.
// Tensors: query [batch][heads][kFeatures], keys, values [pages][kv_heads][kTokens][kFeatures] (read), table int32
// [batch][most pages], lengths int32 [batch] (read), out (as query, written). kQueries heads share a key-value head.
#include "pto_orchestration_api.h"

namespace {

enum Kernel : int32_t { kScores = 0, kWeigh = 1, kValues = 2, kMerge = 3 };
constexpr uint32_t kQueries = 16, kTokens = 64, kFeatures = 64;  // as in page.h

ChipTensor heads_of(const ChipTensor& tensor, uint32_t sequence, uint32_t kv_head) {
  const uint32_t shape[] = {1, kQueries, kFeatures}, offset[] = {sequence, kv_head * kQueries, 0};
  return tensor.view(shape, offset);
}
ChipTensor page_of(const ChipTensor& cache, uint32_t page, uint32_t kv_head) {
  const uint32_t shape[] = {1, 1, kTokens, kFeatures}, offset[] = {page, kv_head, 0, 0};
  return cache.view(shape, offset);
}

struct Infos {
  const uint32_t tile[2] = {kQueries, kTokens}, row[1] = {kQueries};
  TensorCreateInfo part{tile, 2, DataType::FLOAT32}, per_query{row, 1, DataType::FLOAT32};
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void paged_attention(const ChipTaskArgs& args) {
  const ChipTensor& query = args.tensor(0).ref();
  const ChipTensor& keys = args.tensor(1).ref();
  const ChipTensor& values = args.tensor(2).ref();
  const ChipTensor& table = args.tensor(3).ref();
  const ChipTensor& lengths = args.tensor(4).ref();
  const ChipTensor& out = args.tensor(5).ref();
  const Infos infos;
  TensorCreateInfo total_info = infos.part, highest_info = infos.per_query, sum_info = infos.per_query;
  total_info.set_initial_value(0.0f);
  highest_info.set_initial_value(-__builtin_inff());
  sum_info.set_initial_value(0.0f);

  for (uint32_t sequence = 0; sequence < query.shapes[0]; ++sequence) {
    const auto length = static_cast<uint32_t>(get_tensor_data<int32_t>(lengths, 1, &sequence));
    for (uint32_t kv_head = 0; kv_head < keys.shapes[1]; ++kv_head) {
      const ChipTensor queries = heads_of(query, sequence, kv_head), result = heads_of(out, sequence, kv_head);
      PTO2_SCOPE() {  // the streaming runtime gives memory back at its end
        const TaskOutputTensors state = alloc_tensors(total_info, highest_info, sum_info);
        for (uint32_t n = 0; n * kTokens < length; ++n) {
          const uint32_t place[] = {sequence, n};
          const auto page = static_cast<uint32_t>(get_tensor_data<int32_t>(table, 2, place));
          if (rt_is_fatal()) return;
          const ChipTensor page_keys = page_of(keys, page, kv_head), page_values = page_of(values, page, kv_head);

          CoreTaskArgs scores;
          scores.add_input(queries, page_keys);
          scores.add_output(infos.part);
          const TaskOutputTensors scored = rt_submit_aic_task(kScores, scores);

          CoreTaskArgs weigh;
          weigh.add_input(scored.get_ref(0));
          weigh.add_output(infos.part, infos.per_query, infos.per_query);
          weigh.add_scalar(length - n * kTokens < kTokens ? length - n * kTokens : kTokens);
          const TaskOutputTensors weighed = rt_submit_aiv_task(kWeigh, weigh);

          CoreTaskArgs multiply;
          multiply.add_input(weighed.get_ref(0), page_values);
          multiply.add_output(infos.part);
          const TaskOutputTensors part = rt_submit_aic_task(kValues, multiply);

          CoreTaskArgs merge;  // one after the other; all else is independent of the other pages
          merge.add_inout(state.get_ref(0), state.get_ref(1), state.get_ref(2));
          merge.add_input(part.get_ref(0), weighed.get_ref(1), weighed.get_ref(2));
          merge.add_output(result);
          rt_submit_aiv_task(kMerge, merge);
        }
      }
    }
  }
}

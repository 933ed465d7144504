// Every way to use a graph. Tensors: x, y float [8][16] (y written), calls int32 [1] (written: how often a body was
// called). Scalar: which form. Row n of y becomes row n of x * (n + 1) + 0.5.
#include "pto_orchestration_api.h"

namespace {

int calls = 0;

void affine(const ChipTensor& in, const ChipTensor& out, float scale, float shift) {
  CoreTaskArgs args;
  args.add_input(in);
  args.add_output(out);
  args.add_scalar(scale, shift);
  rt_submit_aiv_task(0, args);
}

// Hands its scalars on one by one.
void hands_on(const CoreTaskArgs& boundary) {
  ++calls;
  CoreTaskArgs args;
  args.add_input(boundary.tensor(0).ref());
  args.add_output(boundary.tensor(1).ref());
  args.add_scalar(boundary.scalar(0), boundary.scalar(1));
  rt_submit_aiv_task(0, args);
}
void copies(const CoreTaskArgs& boundary) {
  ++calls;
  CoreTaskArgsWithDeps<2> args;
  args.add_input(boundary.tensor(0).ref());
  args.add_output(boundary.tensor(1).ref());
  args.copy_scalars_from(boundary, 0, 2);
  rt_submit_aiv_task(0, args);
}
// By way of arguments of its own.
void copies_twice(const CoreTaskArgs& boundary) {
  ++calls;
  CoreTaskArgs first;
  first.copy_scalars_from(boundary, 0, 2);
  CoreTaskArgs args;
  args.add_input(boundary.tensor(0).ref());
  args.add_output(boundary.tensor(1).ref());
  args.copy_scalars_from(first, 0, 2);
  rt_submit_aiv_task(0, args);
}
void in_bulk(const CoreTaskArgs& boundary) {
  ++calls;
  CoreTaskArgs args;
  args.add_input(boundary.tensor(0).ref());
  args.add_output(boundary.tensor(1).ref());
  args.add_scalars(boundary.scalars(), boundary.scalar_count());
  rt_submit_aiv_task(0, args);
}
// Computes with a scalar: right at each use, although it cannot be replayed where that scalar differs.
void computes(const CoreTaskArgs& boundary) {
  ++calls;
  const float scale = from_u64<float>(boundary.scalar(0));
  affine(boundary.tensor(0).ref(), boundary.tensor(1).ref(), scale, from_u64<float>(boundary.scalar(1)));
}
void with_int(const CoreTaskArgs& boundary, int factor) {
  ++calls;
  affine(boundary.tensor(0).ref(), boundary.tensor(1).ref(), static_cast<float>(factor), 0.5f);
}
enum class Shift : uint8_t { kNone, kHalf };
void with_many(const CoreTaskArgs& boundary, uint32_t factor, bool negate, double half, Shift shift) {
  ++calls;
  const float scale = static_cast<float>(factor) * (negate ? -1.0f : 1.0f);
  affine(boundary.tensor(0).ref(), boundary.tensor(1).ref(), scale,
         shift == Shift::kHalf ? static_cast<float>(half) : 0.0f);
}
void with_float(const CoreTaskArgs& boundary, float factor) {
  ++calls;
  affine(boundary.tensor(0).ref(), boundary.tensor(1).ref(), factor, 0.5f);
}

ChipTensor row(const ChipTensor& matrix, uint32_t index) {
  const uint32_t shape[] = {1, matrix.shapes[1]}, offset[] = {index, 0};
  return matrix.view(shape, offset);
}

static_assert(GRAPH_KEY("a") != GRAPH_KEY("b") && GRAPH_KEY("") == 1469598103934665603ull, "names are identities");

}  // namespace

extern "C" __attribute__((visibility("default"))) void forms(const ChipTaskArgs& in) {
  const ChipTensor& x = in.tensor(0).ref();
  const ChipTensor& y = in.tensor(1).ref();
  const uint64_t form = in.scalar(0);
  calls = 0;
  PTO2TaskId last = PTO2TaskId::invalid();
  for (uint32_t n = 0; n < x.shapes[0]; ++n) {
    const ChipTensor from = row(x, n), to = row(y, n);
    const float scale = static_cast<float>(n + 1);
    CoreTaskArgs args;
    args.add_input(from);
    args.add_output(to);
    const bool with_scalars = form < 20;
    if (with_scalars) args.add_scalar(scale, 0.5f);
    GraphSubmitResult result;
    switch (form) {
      case 0: result = rt_submit_graph(&hands_on, args); break;
      case 1: result = rt_submit_graph(hands_on, args); break;
      case 2: result = rt_submit_graph(GRAPH_KEY("name"), &hands_on, args); break;
      case 3: result = rt_submit_graph(&copies, args); break;
      case 4: result = rt_submit_graph(&copies_twice, args); break;
      case 5: result = rt_submit_graph(&in_bulk, args); break;
      case 6: result = rt_submit_graph(&computes, args); break;
      case 7:  // a lambda
        result = rt_submit_graph(
            +[](const CoreTaskArgs& boundary) { hands_on(boundary); }, args);
        break;
      case 8: {  // two names for one body
        result = rt_submit_graph(n % 2 == 0 ? GRAPH_KEY("even") : GRAPH_KEY("odd"), &hands_on, args);
        break;
      }
      case 9: {  // one name for two bodies
        result = rt_submit_graph(GRAPH_KEY("same"), n % 2 == 0 ? &hands_on : &copies, args);
        break;
      }
      case 10:  // a scalar that was open to change
        args.scalar(0) = to_u64(scale);
        result = rt_submit_graph(&hands_on, args);
        break;
      case 11: {  // the parts
        const GraphScopeResult block = rt_graph_begin(rt_graph_make_key(rt_graph_function_id(&hands_on)), args);
        result = block;
        if (!block.execute_block) break;
        hands_on(args);
        if (block.recording && rt_graph_end()) result.task_id = rt_graph_commit();
        break;
      }
      case 12: {  // in a manual scope, and in an inner one
        PTO2_SCOPE(n % 2 == 0 ? PTO2ScopeMode::MANUAL : PTO2ScopeMode::AUTO) result = rt_submit_graph(&hands_on, args);
        break;
      }
      case 20: result = rt_submit_graph(&with_int, args, static_cast<int>(n % 2 + 1)); break;
      case 21: result = rt_submit_graph(GRAPH_KEY("int"), &with_int, args, static_cast<int>(n % 2 + 1)); break;
      case 22: result = rt_submit_graph(&with_many, args, n % 2 + 1, n >= 4, 0.5, Shift::kHalf); break;
      case 23: result = rt_submit_graph(&with_float, args, static_cast<float>(n % 2 + 1)); break;
      case 24:
        result = rt_submit_graph(GRAPH_KEY("many"), &with_many, args, n % 2 + 1, false, 0.5, Shift::kHalf);
        break;
      default: break;
    }
    if (!rt_graph_args_cacheable(args) != (form == 10)) rt_report_fatal(100 + form, "rt_graph_args_cacheable is wrong");
    if (!result.task_id.is_valid() || result.task_id == last) rt_report_fatal(100 + form, "a use has no id of its own");
    last = result.task_id;
  }
  const uint32_t first[] = {0};
  set_tensor_data(in.tensor(2).ref(), 1, first, calls);
}

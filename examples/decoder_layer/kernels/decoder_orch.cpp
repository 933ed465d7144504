// Decoding with a transformer: each token goes through the same layers, whose 268 tasks are recorded once and replayed for
// every layer of every token. Tensors (floats): tokens [steps][kBatch][kHidden] (read: what is fed in at each step), x
// [kBatch][kHidden] (read and written), norms [layers][2][kHidden], qkv [layers][kHidden][3 kHidden], wo
// [layers][kHidden][kHidden], gate, up [layers][kHidden][kInner], down [layers][kInner][kHidden], cosine, sine
// [steps][kFeatures / 2] (read), keys, values [layers][kBatch][kHeads][kMost][kFeatures] (read and written: the cache),
// calls int32 [1] (written: how often the layer's function was called).
#include "decoder.h"
#include "pto_orchestration_api.h"

namespace {

enum Kernel : int32_t { kNorm, kProject, kRotate, kAppend, kAttend, kGate, kAdd };
enum Input { kTokens, kX, kNorms, kQkv, kOut, kGateWeights, kUp, kDown, kCosine, kSine, kKeys, kValues, kCalls };
// Of the boundary of a layer.
enum Boundary { kState, kNorm1, kNorm2, kWqkv, kWo, kWgate, kWup, kWdown, kCos, kSin, kKeyCache, kValueCache };

int calls = 0;

const uint32_t kRow[] = {kBatch, kHidden}, kTile[] = {kBatch, kFeatures}, kWide[] = {kBatch, kInner};
const uint32_t kHeadTile[] = {kBatch, 1, 1, kFeatures};

// Columns [n * kFeatures, (n + 1) * kFeatures) of a matrix.
ChipTensor tile(const ChipTensor& matrix, uint32_t n) {
  const uint32_t shape[] = {matrix.shapes[0], kFeatures}, offset[] = {0, n * kFeatures};
  return matrix.view(shape, offset);
}
// The cache of one head, for all sequences.
ChipTensor plane(const ChipTensor& cache, uint32_t head) {
  const uint32_t shape[] = {kBatch, 1, kMost, kFeatures}, offset[] = {0, head, 0, 0};
  return cache.view(shape, offset);
}
// Of a plane, or of a head's tile: what belongs to one sequence.
ChipTensor sequence_of(const ChipTensor& tensor, uint32_t sequence) {
  const uint32_t shape[] = {1, 1, tensor.shapes[2], kFeatures}, offset[] = {sequence, 0, 0, 0};
  return tensor.view(shape, offset);
}

ChipTensor norm(const ChipTensor& x, const ChipTensor& gain) {
  const TensorCreateInfo info(kRow, 2);
  CoreTaskArgs args;
  args.add_input(x, gain);
  args.add_output(info);
  const TaskOutputTensors result = rt_submit_aiv_task(kNorm, args);
  return result.get_ref(0);
}
ChipTensor project(const ChipTensor& a, const ChipTensor& weights, uint32_t n) {
  const TensorCreateInfo info(kTile, 2);
  const ChipTensor part = tile(weights, n);
  CoreTaskArgs args;
  args.add_input(a, part);
  args.add_output(info);
  const TaskOutputTensors result = rt_submit_aic_task(kProject, args);
  return result.get_ref(0);
}
// x = x * scale + delta, for columns n of x.
void add_to(const ChipTensor& x, uint32_t n, const ChipTensor& delta, float scale = 1.0f) {
  const ChipTensor part = tile(x, n);
  CoreTaskArgs args;
  args.add_inout(part);
  args.add_input(delta);
  args.add_scalar(scale);
  rt_submit_aiv_task(kAdd, args);
}

// The position, which is the boundary's scalar, is only handed on: so that every token can be replayed.
ChipTensor attention(const CoreTaskArgs& boundary, const ChipTensor& normed) {
  const TensorCreateInfo row_info(kRow, 2), head_info(kHeadTile, 4);
  const ChipTensor& cosine = boundary.tensor(kCos).ref();
  const ChipTensor& sine = boundary.tensor(kSin).ref();
  const TaskOutputTensors allocated = alloc_tensors(row_info);
  const ChipTensor& out = allocated.get_ref(0);
  for (uint32_t head = 0; head < kHeads; ++head) {
    const ChipTensor& weights = boundary.tensor(kWqkv).ref();
    const ChipTensor query = project(normed, weights, head), key = project(normed, weights, kHeads + head);
    const ChipTensor value = project(normed, weights, 2 * kHeads + head);
    const ChipTensor keys = plane(boundary.tensor(kKeyCache).ref(), head);
    const ChipTensor values = plane(boundary.tensor(kValueCache).ref(), head);

    CoreTaskArgs rotate_query;
    rotate_query.add_input(query, cosine, sine);
    rotate_query.add_output(head_info);
    rotate_query.add_scalar(uint64_t{0});
    const TaskOutputTensors rotated = rt_submit_aiv_task(kRotate, rotate_query);

    CoreTaskArgs rotate_key;
    rotate_key.add_input(key, cosine, sine);
    rotate_key.add_inout(keys);
    rotate_key.add_scalar(boundary.scalar(0));
    rt_submit_aiv_task(kRotate, rotate_key);

    CoreTaskArgs append;
    append.add_input(value);
    append.add_inout(values);
    append.add_scalar(boundary.scalar(0));
    rt_submit_aiv_task(kAppend, append);

    const ChipTensor columns = tile(out, head);
    for (uint32_t sequence = 0; sequence < kBatch; ++sequence) {
      const ChipTensor one_query = sequence_of(rotated.get_ref(0), sequence);
      const ChipTensor its_keys = sequence_of(keys, sequence), its_values = sequence_of(values, sequence);
      const uint32_t shape[] = {1, kFeatures}, offset[] = {sequence, 0};
      const ChipTensor its_out = columns.view(shape, offset);
      CoreTaskArgs attend;
      attend.add_input(one_query, its_keys, its_values);
      attend.add_output(its_out);
      attend.add_scalar(boundary.scalar(0));
      rt_submit_aiv_task(kAttend, attend);
    }
    // Stands for the writers of these columns: a reader of them all then waits for 8 tasks instead of 128.
    CoreTaskArgs join;
    join.add_inout(columns);
    rt_submit_dummy_task(join);
  }
  return out;
}

void layer(const CoreTaskArgs& boundary) {
  ++calls;
  const ChipTensor& x = boundary.tensor(kState).ref();
  const ChipTensor attended = attention(boundary, norm(x, boundary.tensor(kNorm1).ref()));
  for (uint32_t n = 0; n < kHidden / kFeatures; ++n) add_to(x, n, project(attended, boundary.tensor(kWo).ref(), n));

  const ChipTensor normed = norm(x, boundary.tensor(kNorm2).ref());
  const TensorCreateInfo inner_info(kWide, 2);
  const TaskOutputTensors allocated = alloc_tensors(inner_info);
  const ChipTensor& inner = allocated.get_ref(0);
  for (uint32_t n = 0; n < kInner / kFeatures; ++n) {
    const ChipTensor gate = project(normed, boundary.tensor(kWgate).ref(), n);
    const ChipTensor up = project(normed, boundary.tensor(kWup).ref(), n);
    const ChipTensor columns = tile(inner, n);
    CoreTaskArgs args;
    args.add_input(gate, up);
    args.add_output(columns);
    rt_submit_aiv_task(kGate, args);
  }
  for (uint32_t n = 0; n < kHidden / kFeatures; ++n) add_to(x, n, project(inner, boundary.tensor(kWdown).ref(), n));
}

// Element `index` of the first dimension, without that dimension.
ChipTensor at(const ChipTensor& tensor, uint32_t index) {
  uint32_t shape[MAX_TENSOR_DIMS], offset[MAX_TENSOR_DIMS] = {index};
  for (uint32_t d = 0; d < tensor.ndims; ++d) shape[d] = tensor.shapes[d];
  shape[0] = 1;
  return tensor.view(shape, offset).reshape(shape + 1, tensor.ndims - 1);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void decode(const ChipTaskArgs& args) {
  calls = 0;
  const ChipTensor& tokens = args.tensor(kTokens).ref();
  const ChipTensor& x = args.tensor(kX).ref();
  const uint32_t steps = tokens.shapes[0], layers = args.tensor(kNorms).ref().shapes[0];
  if (steps > kMost) {
    rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "%u steps, and the cache has room for %d tokens", steps, kMost);
    return;
  }
  for (uint32_t step = 0; step < steps; ++step) {
    // Stands for sampling and embedding: what is fed in depends on what came out.
    const ChipTensor token = at(tokens, step);
    for (uint32_t n = 0; n < kHidden / kFeatures; ++n) {
      const ChipTensor part = tile(token, n);
      add_to(x, n, part, 0.5f);
    }
    const ChipTensor cosine = at(args.tensor(kCosine).ref(), step), sine = at(args.tensor(kSine).ref(), step);
    for (uint32_t l = 0; l < layers; ++l) {
      const ChipTensor norms = at(args.tensor(kNorms).ref(), l);
      const ChipTensor norm1 = at(norms, 0), norm2 = at(norms, 1);
      const ChipTensor qkv = at(args.tensor(kQkv).ref(), l), wo = at(args.tensor(kOut).ref(), l);
      const ChipTensor gate = at(args.tensor(kGateWeights).ref(), l), up = at(args.tensor(kUp).ref(), l);
      const ChipTensor down = at(args.tensor(kDown).ref(), l);
      const ChipTensor keys = at(args.tensor(kKeys).ref(), l), values = at(args.tensor(kValues).ref(), l);
      CoreTaskArgs boundary;  // in the order of enum Boundary
      boundary.add_inout(x);
      boundary.add_input(norm1, norm2, qkv, wo, gate, up, down, cosine, sine);
      boundary.add_inout(keys, values);
      boundary.add_scalar(step);
      rt_submit_graph(&layer, boundary);
    }
  }
  const uint32_t first[] = {0};
  set_tensor_data(args.tensor(kCalls).ref(), 1, first, calls);
}

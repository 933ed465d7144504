"""Attention over pages of keys and values, for a batch of sequences of different lengths, on both runtimes."""

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIMULATORS = ["a2a3sim", "a5sim"]
QUERIES, TOKENS, FEATURES = 16, 64, 64  # query heads of a key-value head, tokens of a page, features of a head


def kernel(func_id, name, core_type, signature):
    source = f"kernels/{name}.cpp"
    return {"func_id": func_id, "name": name, "source": source, "core_type": core_type, "signature": signature}


class PagedAttention(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "kernels/paged_attention_orch.cpp",
            "function_name": "paged_attention",
            "signature": [D.IN, D.IN, D.IN, D.IN, D.IN, D.OUT],
        },
        "incores": [
            kernel(0, "scores", "aic", [D.IN, D.IN, D.OUT]),
            kernel(1, "weigh", "aiv", [D.IN, D.OUT, D.OUT, D.OUT]),
            kernel(2, "values", "aic", [D.IN, D.IN, D.OUT]),
            kernel(3, "merge", "aiv", [D.INOUT, D.INOUT, D.INOUT, D.IN, D.IN, D.IN, D.OUT]),
        ],
    }
    CASES = [
        {"name": "one_page", "platforms": SIMULATORS, "params": {"lengths": [40], "kv_heads": 1}},
        {"name": "batch", "platforms": SIMULATORS, "params": {"lengths": [1, 64, 65, 300, 192], "kv_heads": 2}},
        {"name": "many_heads", "platforms": SIMULATORS, "params": {"lengths": [500, 20], "kv_heads": 4}},
    ]
    RTOL, ATOL = 1e-4, 1e-5

    def generate_args(self, params):
        random = np.random.default_rng(seed=1)
        lengths, kv_heads = np.array(params["lengths"], dtype=np.int32), params["kv_heads"]
        pages_of = -(-lengths // TOKENS)
        pages = random.permutation(int(pages_of.sum()) + 3).astype(np.int32)  # in any order, some unused
        table = np.full((len(lengths), pages_of.max()), -1, dtype=np.int32)
        for row, count, first in zip(table, pages_of, np.cumsum(pages_of) - pages_of):
            row[:count] = pages[first : first + count]

        def normal(*shape):
            return random.standard_normal(shape, dtype=np.float32)

        query = normal(len(lengths), kv_heads * QUERIES, FEATURES)
        keys, values = (normal(len(pages), kv_heads, TOKENS, FEATURES) for _ in range(2))
        tensors = {"query": query, "keys": keys, "values": values, "table": table, "lengths": lengths}
        return TaskArgsBuilder(*(TensorArg(*item) for item in tensors.items()), TensorArg("out", np.zeros_like(query)))

    def compute_golden(self, args, params):
        for sequence, length in enumerate(args.lengths):
            pages = args.table[sequence, : -(-length // TOKENS)]
            for head in range(args.query.shape[1]):
                kv_head = head // QUERIES
                k, v = (c[pages, kv_head].reshape(-1, FEATURES)[:length].astype(np.float64)
                        for c in (args.keys, args.values))  # fmt: skip
                e = k @ args.query[sequence, head] / np.sqrt(FEATURES)
                e = np.exp(e - e.max())
                args.out[sequence, head] = e / e.sum() @ v


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestPagedAttention(PagedAttention):
    pass


@scene_test(level=2, runtime="host_build_graph")
class TestPagedAttentionBuiltAhead(PagedAttention):
    pass


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

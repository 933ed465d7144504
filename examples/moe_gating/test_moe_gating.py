"""Gating of a mixture of experts: the best 8 of 128 experts for each token, by sorting, and their weights."""

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIMULATORS = ["a2a3sim", "a5sim"]
EXPERTS, CHOSEN = 128, 8


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestMoeGating(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "kernels/gating_orch.cpp",
            "function_name": "gating",
            "signature": [D.IN, D.OUT, D.OUT],
        },
        "incores": [
            {
                "func_id": 0,
                "name": "gating",
                "source": "kernels/gating.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.OUT, D.OUT],
            }
        ],
    }
    CASES = [
        {"name": "one_block", "platforms": SIMULATORS, "params": {"tokens": 16, "ties": False}},
        {"name": "many_blocks", "platforms": SIMULATORS, "params": {"tokens": 1024, "ties": False}},
        {"name": "ties_go_to_the_first", "platforms": SIMULATORS, "params": {"tokens": 64, "ties": True}},
    ]
    RTOL, ATOL = 1e-5, 1e-7

    def generate_args(self, params):
        logits = np.random.default_rng(seed=1).standard_normal((params["tokens"], EXPERTS), dtype=np.float32)
        if params["ties"]:
            logits = np.round(logits)
        chosen = (params["tokens"], CHOSEN)
        return TaskArgsBuilder(
            TensorArg("logits", logits),
            TensorArg("experts", np.zeros(chosen, dtype=np.int32)),
            TensorArg("weights", np.zeros(chosen, dtype=np.float32)),
        )

    def compute_golden(self, args, params):
        args.experts[:] = np.argsort(-args.logits, axis=1, kind="stable")[:, :CHOSEN]
        best = np.take_along_axis(args.logits.astype(np.float64), args.experts, axis=1)
        e = np.exp(best - best.max(axis=1, keepdims=True))
        args.weights[:] = e / e.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

"""Attention with an online softmax: one matrix core and two vector cores per block, joined by pipes."""

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIMULATORS = ["a2a3sim", "a5sim"]
FEATURES, QUERIES = 64, 64


def kernel(func_id, name, core_type):
    return {
        "func_id": func_id,
        "name": name,
        "source": f"kernels/attention_{name}.cpp",
        "core_type": core_type,
        "signature": [D.IN, D.IN, D.IN, D.IN, D.OUT, D.OUT],
    }


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestFlashAttention(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "kernels/attention_orch.cpp",
            "function_name": "attention",
            "signature": [D.IN, D.IN, D.IN, D.IN, D.OUT],
        },
        "incores": [kernel(0, "cube", "aic"), kernel(1, "vector", "aiv")],
    }
    CASES = [
        {"name": "one_step", "platforms": SIMULATORS, "params": {"heads": 1, "length": 64, "causal": 0}},
        {"name": "full", "platforms": SIMULATORS, "params": {"heads": 2, "length": 256, "causal": 0}},
        {"name": "causal", "platforms": SIMULATORS, "params": {"heads": 4, "length": 320, "causal": 1}},
    ]
    RTOL, ATOL = 1e-4, 1e-5

    def generate_args(self, params):
        random = np.random.default_rng(seed=1)
        shape = (params["heads"], params["length"], FEATURES)
        q, k, v = (2 * random.standard_normal(shape, dtype=np.float32) for _ in range(3))
        mask = np.triu(np.full((QUERIES, QUERIES), -np.inf, dtype=np.float32), k=1)
        tensors = {"q": q, "k": k, "v": v, "mask": mask, "out": np.zeros(shape, dtype=np.float32)}
        return TaskArgsBuilder(*(TensorArg(*item) for item in tensors.items()), Scalar("causal", params["causal"]))

    def compute_golden(self, args, params):
        q, k, v = (x.astype(np.float64) for x in (args.q, args.k, args.v))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(FEATURES)
        if params["causal"]:
            scores += np.triu(np.full(scores.shape[1:], -np.inf), k=1)
        e = np.exp(scores - scores.max(axis=2, keepdims=True))
        args.out[:] = e / e.sum(axis=2, keepdims=True) @ v


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

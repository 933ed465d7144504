"""Softmax of each row of a matrix: one kernel, one SPMD task, any number of columns."""

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIMULATORS = ["a2a3sim", "a5sim"]


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestSoftmax(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "kernels/softmax_orch.cpp",
            "function_name": "softmax",
            "signature": [D.IN, D.OUT],
        },
        "incores": [
            {
                "func_id": 0,
                "name": "softmax",
                "source": "kernels/softmax.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.OUT],
            }
        ],
    }
    CASES = [
        {"name": "one_block", "platforms": SIMULATORS, "params": {"rows": 16, "columns": 64, "scale": 1}},
        {"name": "odd_columns", "platforms": SIMULATORS, "params": {"rows": 96, "columns": 173, "scale": 5}},
        {"name": "large_values", "platforms": SIMULATORS, "params": {"rows": 512, "columns": 512, "scale": 300}},
    ]
    RTOL, ATOL = 1e-5, 1e-9

    def generate_args(self, params):
        random = np.random.default_rng(seed=1)
        x = params["scale"] * random.standard_normal((params["rows"], params["columns"]), dtype=np.float32)
        return TaskArgsBuilder(TensorArg("x", x), TensorArg("y", np.zeros_like(x)))

    def compute_golden(self, args, params):
        x = args.x.astype(np.float64)
        e = np.exp(x - x.max(axis=1, keepdims=True))
        args.y[:] = e / e.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

"""Layer norm with scale and shift: statistics per row, parameters per column."""

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIMULATORS = ["a2a3sim", "a5sim"]
COLUMNS = 256


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestLayerNorm(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "kernels/layer_norm_orch.cpp",
            "function_name": "layer_norm",
            "signature": [D.IN, D.IN, D.IN, D.OUT],
        },
        "incores": [
            {
                "func_id": 0,
                "name": "layer_norm",
                "source": "kernels/layer_norm.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.IN, D.IN, D.OUT],
            }
        ],
    }
    CASES = [
        {"name": "one_block", "platforms": SIMULATORS, "params": {"rows": 16, "shift": 0}},
        {"name": "many_blocks", "platforms": SIMULATORS, "params": {"rows": 320, "shift": 0}},
        {"name": "far_from_zero", "platforms": SIMULATORS, "params": {"rows": 64, "shift": 100}},
    ]
    RTOL, ATOL = 1e-4, 1e-4

    def generate_args(self, params):
        random = np.random.default_rng(seed=1)
        x = random.standard_normal((params["rows"], COLUMNS), dtype=np.float32) + np.float32(params["shift"])
        gamma, beta = random.standard_normal((2, COLUMNS), dtype=np.float32)
        return TaskArgsBuilder(
            TensorArg("x", x), TensorArg("gamma", gamma), TensorArg("beta", beta), TensorArg("y", np.zeros_like(x))
        )

    def compute_golden(self, args, params):
        x = args.x.astype(np.float64)
        spread = np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
        args.y[:] = (x - x.mean(axis=1, keepdims=True)) / spread * args.gamma + args.beta


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

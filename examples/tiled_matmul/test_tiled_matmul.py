"""A half precision product in one SPMD task: accumulators stay on the core, operands are double buffered."""

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIMULATORS = ["a2a3sim", "a5sim"]


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestTiledMatmul(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "kernels/tiled_matmul_orch.cpp",
            "function_name": "tiled_matmul",
            "signature": [D.IN, D.IN, D.OUT],
        },
        "incores": [
            {
                "func_id": 0,
                "name": "tiled_matmul",
                "source": "kernels/tiled_matmul.cpp",
                "core_type": "aic",
                "signature": [D.IN, D.IN, D.OUT],
            }
        ],
    }
    CASES = [
        {"name": "one_step", "platforms": SIMULATORS, "params": {"m": 128, "k": 64, "n": 128}},
        {"name": "odd_steps", "platforms": SIMULATORS, "params": {"m": 128, "k": 192, "n": 256}},
        {"name": "many_blocks", "platforms": SIMULATORS, "params": {"m": 512, "k": 512, "n": 384}},
    ]
    RTOL, ATOL = 1e-4, 1e-3

    def generate_args(self, params):
        random = np.random.default_rng(seed=1)

        def matrix(rows, columns):
            return random.standard_normal((params[rows], params[columns])).astype(np.float16)

        c = np.zeros((params["m"], params["n"]), dtype=np.float32)
        return TaskArgsBuilder(TensorArg("a", matrix("m", "k")), TensorArg("b", matrix("k", "n")), TensorArg("c", c))

    def compute_golden(self, args, params):
        args.c[:] = args.a.astype(np.float64) @ args.b.astype(np.float64)


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

"""Multiplies two matrices block by block: matrix cores multiply, vector cores sum up in place."""

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIMULATORS = ["a2a3sim", "a5sim"]


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestBlockedMatmul(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "kernels/matmul_orch.cpp",
            "function_name": "matmul",
            "config_name": "matmul_config",
            "signature": [D.IN, D.IN, D.INOUT],
        },
        "incores": [
            {
                "func_id": 0,
                "name": "multiply",
                "source": "kernels/multiply.cpp",
                "core_type": "aic",
                "signature": [D.IN, D.IN, D.OUT],
            },
            {
                "func_id": 1,
                "name": "accumulate",
                "source": "kernels/accumulate.cpp",
                "core_type": "aiv",
                "signature": [D.INOUT, D.IN],
            },
        ],
    }
    CASES = [
        {"name": "one_block", "platforms": SIMULATORS, "params": {"m": 64, "k": 64, "n": 64}},
        {"name": "many_blocks", "platforms": SIMULATORS, "params": {"m": 256, "k": 384, "n": 192}},
    ]
    RTOL = ATOL = 1e-3

    def generate_args(self, params):
        random = np.random.default_rng(seed=1)

        def matrix(rows, columns):
            return random.standard_normal((params[rows], params[columns]), dtype=np.float32)

        return TaskArgsBuilder(
            TensorArg("a", matrix("m", "k")), TensorArg("b", matrix("k", "n")), TensorArg("c", matrix("m", "n"))
        )

    def compute_golden(self, args, params):
        args.c += args.a @ args.b


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

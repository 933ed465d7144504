"""Adds two vectors piece by piece: independent tasks on the vector cores."""

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIMULATORS = ["a2a3sim", "a5sim"]


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestVectorAdd(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "kernels/add_orch.cpp",
            "function_name": "vector_add",
            "config_name": "vector_add_config",
            "signature": [D.IN, D.IN, D.OUT],
        },
        "incores": [
            {
                "func_id": 0,
                "name": "add",
                "source": "kernels/add.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.IN, D.OUT],
            }
        ],
    }
    CASES = [
        {"name": "one_piece", "platforms": SIMULATORS, "params": {"count": 8192}},
        {"name": "many_pieces_and_a_rest", "platforms": SIMULATORS, "params": {"count": 1_000_003}},
    ]
    RTOL = ATOL = 0.0  # one rounding per element, the same as NumPy's

    def generate_args(self, params):
        random = np.random.default_rng(seed=1)
        a = random.standard_normal(params["count"], dtype=np.float32)
        b = random.standard_normal(params["count"], dtype=np.float32)
        return TaskArgsBuilder(TensorArg("a", a), TensorArg("b", b), TensorArg("out", np.zeros_like(a)))

    def compute_golden(self, args, params):
        args.out[:] = args.a + args.b


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

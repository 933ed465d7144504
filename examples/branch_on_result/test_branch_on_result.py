"""Square roots by iteration: the orchestration reads what a task computed and decides what to submit next."""

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIMULATORS = ["a2a3sim", "a5sim"]
COUNT = 1024  # as in the kernels


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestBranchOnResult(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "kernels/newton_orch.cpp",
            "function_name": "newton",
            "config_name": "newton_config",
            "signature": [D.IN, D.INOUT, D.OUT, D.SCALAR, D.SCALAR],
        },
        "incores": [
            {
                "func_id": 0,
                "name": "newton",
                "source": "kernels/newton.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.INOUT, D.OUT],
            },
            {
                "func_id": 1,
                "name": "root",
                "source": "kernels/root.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.OUT],
            },
        ],
    }
    CASES = [
        {"name": "iterates_until_nothing_changes", "platforms": SIMULATORS, "params": {"max_steps": 50}},
        {"name": "takes_the_direct_way_after_three_steps", "platforms": SIMULATORS, "params": {"max_steps": 3}},
    ]
    TOLERANCE = 1e-3

    def generate_args(self, params):
        a = np.random.default_rng(seed=1).uniform(1, 100, COUNT).astype(np.float32)
        return TaskArgsBuilder(
            TensorArg("a", a),
            TensorArg("x", np.ones_like(a)),
            TensorArg("steps", np.zeros(1, dtype=np.int32)),
            Scalar("tolerance", self.TOLERANCE),
            Scalar("max_steps", params["max_steps"]),
        )

    def compute_golden(self, args, params):
        x = args.x.copy()
        for step in range(1, params["max_steps"] + 1):
            before, x = x, (x + args.a / x) / 2
            if np.abs(x - before).max() < self.TOLERANCE:
                args.x[:], args.steps[0] = x, step
                return
        args.x[:], args.steps[0] = np.sqrt(args.a), -1


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

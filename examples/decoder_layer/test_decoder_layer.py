"""A transformer's decode loop: the layers are recorded once and replayed for every token."""

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIMULATORS = ["a2a3sim", "a5sim"]
BATCH, HIDDEN, FEATURES, INNER, MOST = 16, 512, 64, 1024, 128  # as in kernels/decoder.h
HEADS = HIDDEN // FEATURES


def kernel(func_id, name, core_type, signature):
    source = f"kernels/{name}.cpp"
    return {"func_id": func_id, "name": name, "source": source, "core_type": core_type, "signature": signature}


def rms_norm(x, gain):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * gain


def rotate(x, cosine, sine):
    low, high = x[..., : FEATURES // 2], x[..., FEATURES // 2 :]
    return np.concatenate([low * cosine - high * sine, high * cosine + low * sine], axis=-1)


@scene_test(level=2, runtime="host_build_graph")
class TestDecoderLayer(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "kernels/decoder_orch.cpp",
            "function_name": "decode",
            "signature": [D.IN, D.INOUT, *[D.IN] * 8, D.INOUT, D.INOUT, D.OUT],
        },
        "incores": [
            kernel(0, "norm", "aiv", [D.IN, D.IN, D.OUT]),
            kernel(1, "project", "aic", [D.IN, D.IN, D.OUT]),
            kernel(2, "rotate", "aiv", [D.IN, D.IN, D.IN, D.INOUT]),
            kernel(3, "append", "aiv", [D.IN, D.INOUT]),
            kernel(4, "attend", "aiv", [D.IN, D.IN, D.IN, D.OUT]),
            kernel(5, "gate", "aiv", [D.IN, D.IN, D.OUT]),
            kernel(6, "add", "aiv", [D.INOUT, D.IN]),
        ],
    }
    CASES = [
        {"name": "one_layer", "platforms": SIMULATORS, "params": {"layers": 1, "steps": 6}},
        {"name": "two_layers", "platforms": SIMULATORS, "params": {"layers": 2, "steps": 3}},
    ]
    RTOL = ATOL = 1e-3

    def generate_args(self, params):
        layers, steps = params["layers"], params["steps"]
        random = np.random.default_rng(seed=1)

        def weights(*shape):
            return random.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(shape[-2]))

        angles = np.arange(steps)[:, None] * 10000.0 ** (-np.arange(FEATURES // 2) / (FEATURES // 2))
        cache = np.zeros((layers, BATCH, HEADS, MOST, FEATURES), dtype=np.float32)
        tensors = {
            "tokens": random.standard_normal((steps, BATCH, HIDDEN), dtype=np.float32),
            "x": np.zeros((BATCH, HIDDEN), dtype=np.float32),
            "norms": 1 + weights(layers, 2, HIDDEN),
            "qkv": weights(layers, HIDDEN, 3 * HIDDEN),
            "wo": weights(layers, HIDDEN, HIDDEN),
            "gate": weights(layers, HIDDEN, INNER),
            "up": weights(layers, HIDDEN, INNER),
            "down": weights(layers, INNER, HIDDEN),
            "cosine": np.cos(angles).astype(np.float32),
            "sine": np.sin(angles).astype(np.float32),
            "keys": cache,
            "values": cache.copy(),
            "calls": np.zeros(1, dtype=np.int32),
        }
        return TaskArgsBuilder(*(TensorArg(*item) for item in tensors.items()))

    def compute_golden(self, args, params):
        x = args.x.astype(np.float64)
        for step in range(params["steps"]):
            x = 0.5 * x + args.tokens[step]
            for layer in range(params["layers"]):
                self._layer(args, x, layer, step)
        args.x[:] = x
        args.calls[0] = 1  # the layer's function is called for the recording, and never again

    @staticmethod
    def _layer(args, x, layer, step):
        """One layer for the token at position `step`, in place."""
        cosine, sine = args.cosine[step], args.sine[step]
        qkv = (rms_norm(x, args.norms[layer, 0]) @ args.qkv[layer]).reshape(BATCH, 3, HEADS, FEATURES)
        query = rotate(qkv[:, 0], cosine, sine)
        args.keys[layer, :, :, step] = rotate(qkv[:, 1], cosine, sine)
        args.values[layer, :, :, step] = qkv[:, 2]
        keys, values = (c[layer, :, :, : step + 1].astype(np.float64) for c in (args.keys, args.values))
        scores = np.einsum("bhf,bhtf->bht", query, keys) / np.sqrt(FEATURES)
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        attended = np.einsum("bht,bhtf->bhf", e / e.sum(axis=-1, keepdims=True), values)
        x += attended.reshape(BATCH, HIDDEN) @ args.wo[layer]
        normed = rms_norm(x, args.norms[layer, 1])
        gate = normed @ args.gate[layer]
        x += (gate / (1 + np.exp(-gate)) * (normed @ args.up[layer])) @ args.down[layer]


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

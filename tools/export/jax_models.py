"""Export JAX models as SavedModels (jax2tf) and record TensorFlow's and JAX's answers.

Run in an environment that has tensorflow, jax, flax and keras, from the root of the repository:

    python tools/export/jax_models.py [name …]

Each model lies in tests/extras/jax/models/NAME/1, or in fixed_models if its sizes are fixed;
answers.npz beside it has the inputs of its signature `serving_default` as `in.NAME`,
TensorFlow's outputs as `out.NAME` and JAX's as `jax.NAME`. The weights are random: what is
compared is arithmetic.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "jax")

import flax.linen as nn
import jax
import jax.numpy as jnp
import keras
import numpy as np
import tensorflow as tf
from jax.experimental import jax2tf

# The folder of this file shall not be in the programs.
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
FOLDER = pathlib.Path(__file__).parents[2] / "tests" / "extras" / "jax"
ROWS = 5
Function = Callable[[Any, dict[str, Any]], Any]


class Exported:
    """A function of parameters and named inputs, and how its inputs vary."""

    def __init__(
        self,
        function: Function,
        parameters: Any,
        inputs: dict[str, np.ndarray],
        shapes: dict[str, str],
        platforms: Sequence[str] = ("cpu",),
        in_jax: Function | None = None,
    ) -> None:
        self.function, self.parameters, self.inputs = function, parameters, inputs
        self.shapes, self.platforms = shapes, platforms
        self.in_jax = in_jax or function  # what JAX alone can run


def perceptron() -> Exported:
    class Perceptron(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            for width in (32, 32):
                x = nn.gelu(nn.Dense(width)(x))
            return nn.softmax(nn.Dense(10)(x))

    x = random_array(ROWS, 20)
    model = Perceptron()
    parameters = model.init(jax.random.key(0), x)
    return Exported(
        lambda given, inputs: {"classes": model.apply(given, inputs["x"])},
        parameters, {"x": x}, {"x": "(b, 20)"},
    )  # fmt: skip


def transformer() -> Exported:
    class Block(nn.Module):
        @nn.compact
        def __call__(self, tokens: Any) -> Any:
            x = nn.Embed(50, 32)(tokens)
            x = x + nn.Embed(64, 32)(jnp.arange(tokens.shape[1]))
            mask = (tokens > 0)[:, None, None, :]
            for _ in range(2):
                attended = nn.MultiHeadDotProductAttention(num_heads=4)(
                    nn.LayerNorm()(x), mask=mask
                )
                x = x + attended
                x = x + nn.Dense(32)(nn.gelu(nn.Dense(64)(nn.LayerNorm()(x))))
            return nn.Dense(50)(nn.LayerNorm()(x))

    tokens = np.random.default_rng(1).integers(0, 50, (ROWS, 9)).astype(np.int32)
    model = Block()
    parameters = model.init(jax.random.key(0), tokens)
    return Exported(
        lambda given, inputs: {"logits": model.apply(given, inputs["tokens"])},
        parameters, {"tokens": tokens}, {"tokens": "(b, t)"},
    )  # fmt: skip


def convolutions() -> Exported:
    class Convolutions(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            for width in (8, 16):
                x = nn.Conv(width, (3, 3))(x)
                x = nn.relu(nn.GroupNorm(num_groups=4)(x))
                x = nn.max_pool(x, (2, 2), strides=(2, 2))
            return nn.Dense(5)(x.mean(axis=(1, 2)))

    image = random_array(ROWS, 16, 16, 3)
    model = Convolutions()
    parameters = model.init(jax.random.key(0), image)
    return Exported(
        lambda given, inputs: {"classes": model.apply(given, inputs["image"])},
        parameters, {"image": image}, {"image": "(b, 16, 16, 3)"},
    )  # fmt: skip


def recurrent() -> Exported:
    """A scan, sorted and reduced; several outputs of several types."""

    def function(given: Any, inputs: dict[str, Any]) -> Any:
        def step(state: Any, x: Any) -> Any:
            state = jnp.tanh(x @ given["w"] + state @ given["u"])
            return state, state

        x = inputs["x"]
        last, states = jax.lax.scan(step, jnp.zeros((x.shape[0], 8)), jnp.swapaxes(x, 0, 1))
        top, places = jnp.sort(last), jnp.argsort(last, axis=-1)[:, :3]
        return {"last": last, "top": top, "places": places, "sum": states.sum((0, 2))}

    parameters = {"w": random_array(4, 8), "u": random_array(8, 8)}
    return Exported(function, parameters, {"x": random_array(ROWS, 6, 4)}, {"x": "(b, 6, 4)"})


def types() -> Exported:
    """Integers, booleans, bfloat16 and complex numbers, for the CPU and two other platforms."""

    def function(given: Any, inputs: dict[str, Any]) -> Any:
        x, keep = inputs["x"], inputs["keep"]
        half = (x * given["scale"]).astype(jnp.bfloat16)
        spectrum = jnp.fft.rfft(x.astype(jnp.float32), axis=-1)
        return {
            "kept": jnp.where(keep, x, -1), "any": keep.any(axis=-1), "half": half,
            "spectrum": spectrum, "bits": x.astype(jnp.uint8) ^ jnp.uint8(255),
            "order": jnp.argsort(x, axis=-1),
        }  # fmt: skip

    random = np.random.default_rng(2)
    inputs = {
        "x": random.integers(-100, 100, (ROWS, 8)).astype(np.int32),
        "keep": random.random((ROWS, 8)) < 0.5,
    }
    shapes = {"x": "(b, 8)", "keep": "(b, 8)"}
    scale = {"scale": np.float32(0.25)}
    return Exported(function, scale, inputs, shapes, ("cpu", "cuda", "tpu"))


def keras_on_jax() -> Exported:
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.layers.Input((12,)),
            keras.layers.Dense(16, "swish"),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(3, "sigmoid"),
        ]
    )
    parameters = [variable.value for variable in model.variables]

    def function(given: Any, inputs: dict[str, Any]) -> Any:
        count = len(model.trainable_variables)
        by_name = {v.path: value for v, value in zip(model.variables, given, strict=True)}
        trainable = [by_name[v.path] for v in model.trainable_variables]
        others = [by_name[v.path] for v in model.non_trainable_variables]
        assert len(trainable) == count
        result, _ = model.stateless_call(trainable, others, inputs["x"], training=False)
        return {"result": result}

    return Exported(function, parameters, {"x": random_array(ROWS, 12)}, {"x": "(b, 12)"})


def attention_over_any_length() -> Exported:
    """Two polymorphic sizes, of which one must be even."""

    def function(given: Any, inputs: dict[str, Any]) -> Any:
        x = inputs["x"]
        pairs = x.reshape(x.shape[0], -1, 2, x.shape[2])  # needs an even length
        weights = jax.nn.softmax(pairs @ given["q"], axis=1)
        return {"mean": (weights * pairs).mean(axis=(1, 2))}

    return Exported(
        function, {"q": random_array(6, 6)}, {"x": random_array(ROWS, 4, 6)}, {"x": "(b, 2*t, 6)"}
    )


def calls_tensorflow() -> Exported:
    """A layer between two calls of TensorFlow functions, which stay calls in the program.

    TensorFlow refuses such programs with polymorphic sizes: "Module has dynamic shapes".
    """

    def scaled(x: Any) -> Any:
        return tf.math.l2_normalize(x, axis=-1) * 2.0

    def summed(x: Any) -> Any:
        return tf.cumsum(tf.nn.relu(x), axis=-1, reverse=True)

    def function(given: Any, inputs: dict[str, Any]) -> Any:
        x = inputs["x"]
        shape = jax.ShapeDtypeStruct((x.shape[0], 6), jnp.float32)
        call = {"call_tf_graph": True, "output_shape_dtype": shape}
        first = jax2tf.call_tf(scaled, **call)(x) @ given["w"]
        return {"sums": jax2tf.call_tf(summed, **call)(first), "first": first}

    def in_jax(given: Any, inputs: dict[str, Any]) -> Any:
        x = inputs["x"]
        first = (x / jnp.linalg.norm(x, axis=-1, keepdims=True) * 2.0) @ given["w"]
        sums = jnp.cumsum(jax.nn.relu(first)[:, ::-1], axis=-1)[:, ::-1]
        return {"sums": sums, "first": first}

    return Exported(
        function, {"w": random_array(6, 6)}, {"x": random_array(ROWS, 6)}, {"x": f"({ROWS}, 6)"},
        in_jax=in_jax,
    )  # fmt: skip


def random_array(*shape: int) -> np.ndarray:
    seed = sum(size * (place + 1) for place, size in enumerate(shape))
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


EXPORTS = {
    made.__name__: made
    for made in (perceptron, transformer, convolutions, recurrent, types, keras_on_jax,
                 attention_over_any_length, calls_tensorflow)
}  # fmt: skip


def save(name: str, exported: Exported) -> None:
    is_fixed = not any(letter.isalpha() for text in exported.shapes.values() for letter in text)
    folder = FOLDER / ("fixed_models" if is_fixed else "models") / name
    shutil.rmtree(folder, ignore_errors=True)
    converted = jax2tf.convert(
        exported.function,
        polymorphic_shapes=[None, exported.shapes],
        with_gradient=False,
        native_serialization_platforms=exported.platforms,
    )
    module = tf.Module()
    module.parameters = tf.nest.map_structure(tf.Variable, exported.parameters)
    sizes = {
        key: [int(size) if size.strip().isdigit() else None for size in text[1:-1].split(",")]
        for key, text in exported.shapes.items()
    }
    specs = {
        key: tf.TensorSpec(sizes[key], value.dtype, name=key)
        for key, value in exported.inputs.items()
    }
    module.call = tf.function(
        lambda **inputs: converted(module.parameters, inputs), autograph=False
    ).get_concrete_function(**specs)
    tf.saved_model.save(module, str(folder / "1"), signatures={"serving_default": module.call})
    loaded = tf.saved_model.load(str(folder / "1")).signatures["serving_default"]
    given = {key: tf.constant(value) for key, value in exported.inputs.items()}
    outputs = loaded(**given)
    by_jax = jax.jit(exported.in_jax)(exported.parameters, exported.inputs)
    arrays = {f"in.{key}": value for key, value in exported.inputs.items()}
    arrays |= {f"out.{key}": as_saved(value.numpy()) for key, value in outputs.items()}
    arrays |= {f"jax.{key}": as_saved(np.asarray(value)) for key, value in by_jax.items()}
    np.savez_compressed(folder / "answers.npz", **arrays)
    (folder / "1" / "fingerprint.pb").unlink(missing_ok=True)


def as_saved(array: np.ndarray) -> np.ndarray:
    """Return the array; bfloat16 as float32, because files of numpy can't have it."""
    return array.astype(np.float32) if array.dtype.kind == "V" else array


if __name__ == "__main__":
    for name in sys.argv[1:] or EXPORTS:
        save(name, EXPORTS[name]())

"""Keras models of the corpus, exported by `Model.export`: layers that are common in serving.

Every function takes the folder to export to and returns the calls whose answers are recorded.
Weights are random but not degenerate: batch normalisation has random statistics, and the last
layer is scaled so that a softmax is far from uniform.
"""

import functools
import pathlib
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from tools.corpus.call import Call

Export = Callable[[pathlib.Path], list[Call]]


def export(model: keras.Model, folder: pathlib.Path, inputs: list[np.ndarray]) -> list[Call]:
    """Export a model with one input; return a call of `serving_default` for each array."""
    model.export(str(folder), verbose=False)
    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    return [Call("serving_default", {name: value}) for value in inputs]


def randomise_statistics(model: keras.Model, rng: np.random.Generator) -> None:
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            shape = layer.moving_mean.shape
            layer.moving_mean.assign(rng.normal(0, 0.1, shape))
            layer.moving_variance.assign(rng.uniform(0.5, 1.5, shape))
            if layer.gamma is not None:
                layer.gamma.assign(rng.uniform(0.8, 1.2, shape))
            if layer.beta is not None:
                layer.beta.assign(rng.normal(0, 0.1, shape))


def spread_logits(model: keras.Model, example: np.ndarray) -> None:
    """Scale the last kernel so that the logits of `example` have a standard deviation of 3."""
    last = model.layers[-1]
    before = keras.Model(model.inputs, last.input).predict(example, verbose=0)
    kernel = last.kernel.numpy()
    deviation = float(np.std(before @ kernel)) or 1.0
    last.kernel.assign(kernel * (3.0 / deviation))


def mlp(folder: pathlib.Path, sizes: tuple[int, ...]) -> list[Call]:
    rng = np.random.default_rng(1)
    first, *hidden, last = sizes
    stack = [keras.Input((first,)), *(layers.Dense(size, activation="relu") for size in hidden)]
    model = keras.Sequential([*stack, layers.Dense(last, activation="softmax")])
    batches = [rng.normal(size=(n, first)).astype(np.float32) for n in (1, 8)]
    spread_logits(model, batches[1])
    return export(model, folder, batches)


def cnn(folder: pathlib.Path, size: int, width: int) -> list[Call]:
    rng = np.random.default_rng(2)
    inputs = keras.Input((size, size, 3))
    x = layers.Conv2D(width, 3, strides=2, padding="same", use_bias=False)(inputs)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.SeparableConv2D(2 * width, 3, padding="same")(x)
    x = layers.Activation("swish")(layers.BatchNormalization(scale=False)(x))
    skip = x
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(2 * width, 3, dilation_rate=2, padding="same", activation="gelu")(x)
    x = layers.Conv2DTranspose(width, 3, strides=2, padding="same")(x)
    x = layers.Concatenate()([x, skip])
    x = layers.AveragePooling2D(2)(x)
    x = layers.UpSampling2D(interpolation="bilinear")(x)
    x = layers.LeakyReLU()(layers.ZeroPadding2D()(x))
    x = layers.GlobalAveragePooling2D()(layers.DepthwiseConv2D(3, strides=2)(x))
    model = keras.Model(inputs, layers.Dense(10, activation="softmax")(layers.Dropout(0.5)(x)))
    randomise_statistics(model, rng)
    batches = [rng.normal(size=(n, size, size, 3)).astype(np.float32) for n in (1, 4)]
    spread_logits(model, batches[1])
    return export(model, folder, batches)


def application(folder: pathlib.Path, name: str, size: int) -> list[Call]:
    rng = np.random.default_rng(3)
    model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3))
    randomise_statistics(model, rng)
    scale = 255.0 if name.startswith("Efficient") else 1.0  # its first layers rescale 0..255
    batches = [(scale * rng.uniform(size=(n, size, size, 3))).astype(np.float32) for n in (1, 8)]
    spread_logits(model, batches[0])
    return export(model, folder, batches)


def lstm(folder: pathlib.Path, steps: int, units: int) -> list[Call]:
    rng = np.random.default_rng(4)
    stack = [keras.Input((steps, units // 2)), layers.LSTM(units), layers.Dense(5)]
    batches = [rng.normal(size=(n, steps, units // 2)).astype(np.float32) for n in (1, 8)]
    return export(keras.Sequential(stack), folder, batches)


def bidirectional_gru(folder: pathlib.Path, steps: int, units: int) -> list[Call]:
    rng = np.random.default_rng(5)
    stack = [
        keras.Input((None, 8)),  # any number of time steps
        layers.Bidirectional(layers.GRU(units, return_sequences=True)),
        layers.GRU(units, go_backwards=True),
        layers.Dense(3, activation="tanh"),
    ]
    batches = [rng.normal(size=(n, steps + n, 8)).astype(np.float32) for n in (1, 4)]
    return export(keras.Sequential(stack), folder, batches)


def masked_lstm(folder: pathlib.Path, words: int, units: int) -> list[Call]:
    rng = np.random.default_rng(6)
    stack = [
        keras.Input((20,), dtype="int32"),
        layers.Embedding(words, units, mask_zero=True),
        layers.LSTM(units),
        layers.Dense(2, activation="softmax"),
    ]
    batches = [rng.integers(1, words, (n, 20)).astype(np.int32) for n in (1, 4)]
    for row, batch in enumerate(batches):
        batch[:, 12 + row :] = 0
    return export(keras.Sequential(stack), folder, batches)


def transformer(
    folder: pathlib.Path, blocks: int, width: int, tokens: int, words: int
) -> list[Call]:
    rng = np.random.default_rng(7)
    inputs = keras.Input((tokens,), dtype="int32")
    x = layers.Embedding(words, width)(inputs)
    x = x + layers.Embedding(tokens, width)(keras.ops.arange(tokens))
    for _ in range(blocks):
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.MultiHeadAttention(4, width // 4)(y, y)
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(y))
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    model = keras.Model(inputs, layers.Dense(4, activation="softmax")(x))
    batches = [rng.integers(0, words, (n, tokens)).astype(np.int32) for n in (1, 8)]
    spread_logits(model, batches[1])
    return export(model, folder, batches)


def string_lookup(folder: pathlib.Path) -> list[Call]:
    layer = layers.StringLookup(vocabulary=["red", "green", "blue"], num_oov_indices=2)
    model = keras.Sequential([keras.Input((3,), dtype="string"), layer, layers.Embedding(5, 2)])
    words = np.array([[b"red", b"blue", b"pink"], [b"", b"green", b"greenish"]])
    return export(model, folder, [words])


def hashing(folder: pathlib.Path) -> list[Call]:
    layer = layers.Hashing(num_bins=7)
    salted = layers.Hashing(num_bins=11, salt=[1337, 42])
    inputs = keras.Input((2,), dtype="string")
    model = keras.Model(inputs, layers.Concatenate()([layer(inputs), salted(inputs)]))
    return export(model, folder, [np.array([[b"a", b"bc"], [b"", "grün".encode()]])])


def text_vectorization(folder: pathlib.Path) -> list[Call]:
    layer = layers.TextVectorization(output_sequence_length=6, ngrams=2)
    layer.adapt(["the quick brown fox", "jumps over the lazy dog", "the dog sleeps"])
    model = keras.Sequential([keras.Input((1,), dtype="string"), layer])
    texts = np.array([[b"The quick, brown DOG!"], [b"jumps over"], [b""]])
    return export(model, folder, [texts])


def tabular(folder: pathlib.Path) -> list[Call]:
    inputs = keras.Input((2,))
    bucket = layers.Discretization(bin_boundaries=[-1.0, 0.0, 2.5])(inputs)
    known = layers.IntegerLookup(vocabulary=[0, 1, 3])(bucket)
    encoded = layers.CategoryEncoding(num_tokens=4, output_mode="multi_hot")(known)
    scaled = layers.Normalization(mean=[0.5, -1.0], variance=[2.0, 0.25])(inputs)
    model = keras.Model(inputs, layers.Dense(3)(layers.Concatenate()([encoded, scaled])))
    rows = np.array([[-3.0, 0.5], [0.0, 2.5], [9.0, -1.0]], np.float32)
    return export(model, folder, [rows])


LARGE: dict[str, Export] = {
    "mlp": functools.partial(mlp, sizes=(784, 512, 512, 10)),
    "cnn": functools.partial(cnn, size=96, width=32),
    "mobilenet_v2_96": functools.partial(application, name="MobileNetV2", size=96),
    "mobilenet_v2_224": functools.partial(application, name="MobileNetV2", size=224),
    "resnet50": functools.partial(application, name="ResNet50", size=224),
    "efficientnet_b0": functools.partial(application, name="EfficientNetB0", size=224),
    "lstm": functools.partial(lstm, steps=64, units=128),
    "bidirectional_gru": functools.partial(bidirectional_gru, steps=40, units=64),
    "masked_lstm": functools.partial(masked_lstm, words=1000, units=64),
    "transformer": functools.partial(transformer, blocks=4, width=256, tokens=128, words=8000),
}
SMALL: dict[str, Export] = {
    "mlp_small": functools.partial(mlp, sizes=(12, 16, 4)),
    "cnn_small": functools.partial(cnn, size=12, width=4),
    "lstm_small": functools.partial(lstm, steps=6, units=8),
    "bidirectional_gru_small": functools.partial(bidirectional_gru, steps=5, units=4),
    "masked_lstm_small": functools.partial(masked_lstm, words=30, units=6),
    "transformer_small": functools.partial(transformer, blocks=1, width=16, tokens=8, words=50),
    "string_lookup": string_lookup,
    "hashing": hashing,
    "text_vectorization": text_vectorization,
    "tabular": tabular,
}

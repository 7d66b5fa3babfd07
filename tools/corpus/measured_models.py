"""The models that `python -m bench` measures, as Keras builds and exports them.

Every function takes a random generator and returns an `Exported`: a model with random weights of
realistic scale, and eight inputs. `tools/export/bench_models.py` writes them.

The signature `features` gives the activations below the last pooling (without a pooling: below the
last layer): differences between engines show there that a softmax hides.
"""

import dataclasses
from collections.abc import Callable, Mapping

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from tools.corpus.applications import (
    TAKES_PIXELS,
    calibrate_statistics,
    randomise_weights,
    spread_logits,
)
from tools.corpus.measured_model_inputs import LISTS, people, pictures, table_rows

BATCH = 8
Signatures = dict[str, Callable[..., object]]
Inputs = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Exported:
    """A model, the functions of its signatures, and their inputs `{name: [8, …]}`.

    All signatures take the same inputs. `specs` has their static shapes and types.
    """

    model: keras.Model
    signatures: Signatures
    specs: list[object]
    inputs: Inputs


def of_one_input(
    model: keras.Model, features: keras.KerasTensor, inputs: np.ndarray, logits: bool = True
) -> Exported:
    """Return the export of a model with one input; give its logits a fixed deviation if asked."""
    if logits:
        head = [layer for layer in model.layers if hasattr(layer, "kernel")][-1]
        spread_logits(model, head, inputs)
    (tensor,) = model.inputs
    spec = tf.TensorSpec(tensor.shape, tensor.dtype, tensor.name)
    below = keras.Model(model.inputs, features)
    signatures = {"serving_default": model, "features": below}
    return Exported(model, signatures, [spec], {tensor.name: inputs})


def application(rng: np.random.Generator, name: str) -> Exported:
    model = getattr(keras.applications, name)(weights=None, input_shape=(224, 224, 3))
    low, high = (0.0, 255.0) if name.startswith(TAKES_PIXELS) else (-1.0, 1.0)
    images = rng.uniform(low, high, (BATCH, 224, 224, 3)).astype(np.float32)
    randomise_weights(model, rng)
    calibrate_statistics(model, images, rng)
    poolings = [x for x in model.layers if isinstance(x, layers.GlobalAveragePooling2D)]
    return of_one_input(model, poolings[-1].input, images)


def transformer(rng: np.random.Generator) -> Exported:
    """Four blocks of width 256 and four heads over 128 tokens of 8,000 words."""
    width, tokens, words = 256, 128, 8000
    inputs = keras.Input((tokens,), dtype="int32", name="tokens")
    x = layers.Embedding(words, width)(inputs)
    x = x + layers.Embedding(tokens, width)(keras.ops.arange(tokens))
    for _ in range(4):
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.MultiHeadAttention(4, width // 4)(y, y)
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(y))
    features = layers.LayerNormalization()(x)
    pooled = layers.GlobalAveragePooling1D()(features)
    model = keras.Model(inputs, layers.Dense(4, activation="softmax")(pooled))
    return of_one_input(model, features, rng.integers(0, words, (BATCH, tokens)).astype(np.int32))


def recurrent(rng: np.random.Generator, layer: type[layers.Layer]) -> Exported:
    """A layer of 128 units over 64 steps of 64 numbers, and a dense layer without softmax."""
    inputs = keras.Input((64, 64), name="sequence")
    states = layer(128)(inputs)
    model = keras.Model(inputs, layers.Dense(5)(states))
    sequences = rng.normal(size=(BATCH, 64, 64)).astype(np.float32)
    return of_one_input(model, states, sequences, logits=False)


def unet(rng: np.random.Generator) -> Exported:
    """Three poolings from 128², 32 to 256 channels, transposed convolutions on the way up."""

    def twice(x: keras.KerasTensor, channels: int) -> keras.KerasTensor:
        for _ in range(2):
            x = layers.Conv2D(channels, 3, padding="same", use_bias=False)(x)
            x = layers.ReLU()(layers.BatchNormalization()(x))
        return x

    inputs = x = keras.Input((128, 128, 3), name="image")
    skips = []
    for channels in (32, 64, 128):
        x = twice(x, channels)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = twice(x, 256)
    for channels in (128, 64, 32):
        x = layers.Conv2DTranspose(channels, 2, strides=2)(x)
        x = twice(layers.Concatenate()([x, skips.pop()]), channels)
    model = keras.Model(inputs, layers.Conv2D(4, 1, activation="softmax")(x))
    images = rng.uniform(-1, 1, (BATCH, 128, 128, 3)).astype(np.float32)
    randomise_weights(model, rng)
    calibrate_statistics(model, images, rng)
    return of_one_input(model, x, images)


def mlp(rng: np.random.Generator) -> Exported:
    inputs = x = keras.Input((784,), name="pixels")
    for _ in range(2):
        x = layers.Dense(512, activation="relu")(x)
    model = keras.Model(inputs, layers.Dense(10, activation="softmax")(x))
    return of_one_input(model, x, rng.uniform(size=(BATCH, 784)).astype(np.float32))


def wide_and_deep(rng: np.random.Generator) -> Exported:
    """Four string columns, looked up in vocabularies of 20 to 5,000 words, and eight numbers.

    The wide part is a weight per word and number; the deep part has embeddings and three layers.
    """
    numbers = keras.Input((8,), name="numbers")
    columns = {name: keras.Input((1,), dtype="string", name=name) for name in LISTS}
    wide, deep = [layers.Dense(1)(numbers)], [layers.BatchNormalization()(numbers)]
    for name, words in LISTS.items():
        row = layers.StringLookup(vocabulary=words, num_oov_indices=1)(columns[name])
        wide.append(layers.Flatten()(layers.Embedding(len(words) + 1, 1)(row)))
        deep.append(layers.Flatten()(layers.Embedding(len(words) + 1, 16)(row)))
    x = layers.Concatenate()(deep)
    for size in (256, 128, 64):
        x = layers.Dense(size, activation="relu")(x)
    logit = layers.Add()([*wide, layers.Dense(1)(x)])
    output = layers.Activation("sigmoid")(logit)
    model = keras.Model({"numbers": numbers, **columns}, output)
    randomise_weights(model, rng)
    specs = {
        name: tf.TensorSpec(x.shape, x.dtype, name)
        for name, x in {"numbers": numbers, **columns}.items()
    }
    below = keras.Model(model.input, {"deep": x, "logit": logit})
    signatures = {"serving_default": model, "features": below}
    return Exported(model, signatures, [specs], table_rows(rng, BATCH))


def example_classifier(rng: np.random.Generator) -> Exported:
    """Serialized tf.Examples of dense, string and ragged features → classes by name, scores.

    The mean over an example's tags leaves out those that pad it to the longest of the batch.
    """
    numbers = keras.Input((16,), name="numbers")
    town = keras.Input((1,), dtype="string", name="town")
    tags = keras.Input((None,), dtype="int64", name="tags")
    where = layers.StringLookup(vocabulary=LISTS["town"])(town)
    x = layers.Concatenate()(
        [
            numbers,
            layers.Flatten()(layers.Embedding(len(LISTS["town"]) + 1, 16)(where)),
            layers.GlobalAveragePooling1D()(layers.Embedding(1000, 16, mask_zero=True)(tags)),
        ]
    )
    for size in (128, 64):
        x = layers.Dense(size, activation="relu")(x)
    scores = layers.Dense(5, activation="softmax")(x)
    model = keras.Model({"numbers": numbers, "town": town, "tags": tags}, scores)
    below = keras.Model(model.input, x)
    randomise_weights(model, rng)
    columns = {
        "numbers": tf.io.FixedLenFeature([16], tf.float32),
        "town": tf.io.FixedLenFeature([1], tf.string, ""),
        "tags": tf.io.VarLenFeature(tf.int64),
    }

    def parsed(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        features = tf.io.parse_example(examples, columns)
        return features | {"tags": tf.sparse.to_dense(features["tags"])}

    def classify(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        names = tf.constant([["bird", "boat", "car", "cat", "dog"]])
        classes = tf.tile(names, [tf.shape(examples)[0], 1])
        return {"classes": classes, "scores": model(parsed(examples))}

    def features(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"features": below(parsed(examples))}

    spec = tf.TensorSpec([None], tf.string, "examples")
    signatures = {"serving_default": classify, "features": features}
    return Exported(model, signatures, [spec], {"examples": people(rng, BATCH)})


def jpeg_classifier(rng: np.random.Generator) -> Exported:
    """JPEG files → decoded and resized to 96² one by one → a small convolutional net."""
    inputs = x = keras.Input((96, 96, 3), name="pixels")
    for channels in (32, 64, 128):
        x = layers.Conv2D(channels, 3, strides=2, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    pooled = layers.GlobalAveragePooling2D()(x)
    model = keras.Model(inputs, layers.Dense(10, activation="softmax")(pooled))
    below = keras.Model(inputs, x)
    files = pictures(rng, BATCH)

    def decoded(file: tf.Tensor) -> tf.Tensor:
        # The default method, a faster one, depends on the JPEG library.
        pixels = tf.io.decode_jpeg(file, channels=3, dct_method="INTEGER_ACCURATE")
        return tf.image.resize(tf.cast(pixels, tf.float32), [96, 96]) / 127.5 - 1.0

    def batch(images: tf.Tensor) -> tf.Tensor:
        return tf.map_fn(decoded, images, fn_output_signature=tf.TensorSpec([96, 96, 3]))

    randomise_weights(model, rng)
    pixels = batch(tf.constant(files)).numpy()
    calibrate_statistics(model, pixels, rng)
    spread_logits(model, model.layers[-1], pixels)
    signatures = {
        "serving_default": lambda images: model(batch(images)),
        "features": lambda images: below(batch(images)),
    }
    return Exported(model, signatures, [tf.TensorSpec([None], tf.string, "images")],
                    {"images": files})  # fmt: skip


MODELS: dict[str, Callable[[np.random.Generator], Exported]] = {
    "mobilenet_v2": lambda rng: application(rng, "MobileNetV2"),
    "resnet50": lambda rng: application(rng, "ResNet50"),
    "efficientnet_b0": lambda rng: application(rng, "EfficientNetB0"),
    "transformer": transformer,
    "lstm": lambda rng: recurrent(rng, layers.LSTM),
    "gru": lambda rng: recurrent(rng, layers.GRU),
    "unet": unet,
    "mlp": mlp,
    "wide_and_deep": wide_and_deep,
    "example_classifier": example_classifier,
    "jpeg_classifier": jpeg_classifier,
}

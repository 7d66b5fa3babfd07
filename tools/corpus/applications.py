"""At least one member of every family of `keras.applications`, with random non-trivial weights.

Kernels are He-normal, biases and scales random. The batch statistics are those of a random batch,
shifted and scaled at random: activations keep their magnitude through the deepest network, and no
normalisation is the identity. The logits have a standard deviation of 2, so that the softmax is
neither uniform nor saturated. Each model outputs the probabilities and the input of its last layer.
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
LOGIT_DEVIATION = 2.0
# Models with preprocessing layers: their inputs are pixels of 0 to 255.
TAKES_PIXELS = ("EfficientNet", "MobileNetV3", "ConvNeXt")


def application(folder: pathlib.Path, name: str, size: int) -> list[Call]:
    rng = np.random.default_rng(3)
    model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3))
    low, high = (0.0, 255.0) if name.startswith(TAKES_PIXELS) else (-1.0, 1.0)
    one, several = (
        rng.uniform(low, high, (count, size, size, 3)).astype(np.float32) for count in (1, 3)
    )
    randomise_weights(model, rng)
    calibrate_statistics(model, several, rng)
    head = [layer for layer in model.layers if hasattr(layer, "kernel")][-1]
    spread_logits(model, head, several)
    outputs = {"probabilities": model.output, "features": head.input}
    keras.Model(model.input, outputs).export(str(folder), verbose=False)
    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]
    (key,) = signature.structured_input_signature[1]
    return [Call("serving_default", {key: images}) for images in (one, several)]


def randomise_weights(model: keras.Model, rng: np.random.Generator) -> None:
    """Assign random values to all trainable variables."""
    for variable in model.trainable_weights:
        shape = tuple(variable.shape)
        if "kernel" in variable.name:
            is_depthwise = variable.name == "depthwise_kernel" or shape[2:3] == (1,)
            fan_in = np.prod(shape[:2] if is_depthwise else shape[:-1])
            value = rng.normal(0, np.sqrt(2 / fan_in), shape)
        elif "gamma" in variable.name:
            value = rng.uniform(0.3, 0.7, shape)  # a residual block adds less than its input
        else:
            value = rng.normal(0, 0.1, shape)
        variable.assign(value.astype(np.float32))


def calibrate_statistics(model: keras.Model, images: np.ndarray, rng: np.random.Generator) -> None:
    """Set the statistics of every batch normalisation to those of `images`, perturbed."""
    normalisations = [
        layer for layer in model.layers if isinstance(layer, layers.BatchNormalization)
    ]
    for layer in normalisations:
        layer.momentum = 0.0
    model(images, training=True)
    for layer in normalisations:
        mean, variance = layer.moving_mean.numpy(), layer.moving_variance.numpy()
        variance += 0.1 * variance.mean()  # bounds the output of channels with almost no variance
        shift = rng.normal(0, 0.2, mean.shape) * np.sqrt(variance)
        layer.moving_mean.assign((mean + shift).astype(np.float32))
        layer.moving_variance.assign(variance * rng.uniform(0.6, 1.6, mean.shape))


def spread_logits(model: keras.Model, head: layers.Layer, images: np.ndarray) -> None:
    """Scale the last kernel so that the logits of `images` have the deviation LOGIT_DEVIATION."""
    activation, head.activation = head.activation, keras.activations.linear
    logits = keras.Model(model.input, head.output)(images).numpy()
    head.activation = activation
    if not np.isfinite(logits).all():
        raise ValueError(f"the logits of {model.name} are not finite")
    head.kernel.assign(head.kernel.numpy() * (LOGIT_DEVIATION / logits.std()))


# name → (model, input size); the smallest sizes that leave several pixels in the last layers.
MEMBERS: dict[str, tuple[str, int]] = {
    "xception": ("Xception", 96),
    "vgg16": ("VGG16", 64),
    "vgg19": ("VGG19", 64),
    "resnet101": ("ResNet101", 96),
    "resnet50_v2": ("ResNet50V2", 96),
    "inception_v3": ("InceptionV3", 96),
    "inception_resnet_v2": ("InceptionResNetV2", 96),
    "mobilenet": ("MobileNet", 96),
    "mobilenet_v2": ("MobileNetV2", 96),
    "mobilenet_v3_small": ("MobileNetV3Small", 96),
    "mobilenet_v3_large": ("MobileNetV3Large", 96),
    "densenet121": ("DenseNet121", 96),
    "nasnet_mobile": ("NASNetMobile", 96),
    "efficientnet_b1": ("EfficientNetB1", 96),
    "efficientnet_v2_b0": ("EfficientNetV2B0", 96),
    "efficientnet_v2_s": ("EfficientNetV2S", 96),
    "convnext_tiny": ("ConvNeXtTiny", 96),
}
LARGE: dict[str, Export] = {
    key: functools.partial(application, name=name, size=size)
    for key, (name, size) in MEMBERS.items()
}

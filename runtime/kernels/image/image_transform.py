"""Geometric transforms of images: projective, and scaling with translation.

TF: tensorflow/core/kernels/image/image_ops.h, scale_and_translate_op.cc, sampling_kernels.h
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES, REAL_NUMBER_TYPES
from runtime.framework.shapes import shape_text
from runtime.kernels.image.resampling import Taps, check_size


def image_projective_transform_v3(
    images: np.ndarray,
    transforms: np.ndarray,
    output_shape: np.ndarray,
    fill_value: np.ndarray | np.float32,
    *,
    interpolation: str,
    fill_mode: str,
) -> np.ndarray:
    """ImageProjectiveTransformV3: warp `images` by projective transforms.

    `images` is `[n, h, w, c]`, `transforms` is `[n or 1, 8]`. If a transform is
    `[a0, a1, a2, b0, b1, b2, c0, c1]`, output pixel (x, y) is the input at
    `((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)`, where `k = c0 x + c1 y + 1`.
    """
    mode, method = fill_mode.upper(), interpolation.upper()
    if images.ndim != 4:
        raise InvalidArgumentError("Input images must have rank 4")
    if transforms.ndim != 2 or transforms.shape[1] != 8:
        raise InvalidArgumentError("Input transform should be num_images x 8 or 1 x 8")
    if transforms.shape[0] not in (1, images.shape[0]):
        raise InvalidArgumentError("Input transform should be num_images x 8 or 1 x 8")
    if np.ndim(output_shape) != 1 or np.size(output_shape) != 2:
        raise InvalidArgumentError(
            f"output shape must have two elements{shape_text(np.shape(output_shape))}"
        )
    height, width = check_size(output_shape, "output shape")
    if np.ndim(fill_value):
        raise InvalidArgumentError(f"fill_value must be a scalar{shape_text(np.shape(fill_value))}")
    if mode not in _FOLDS:
        raise InvalidArgumentError(f"Invalid fill_mode {fill_mode}. Known are {sorted(_FOLDS)}")
    if method not in ("NEAREST", "BILINEAR"):
        raise InvalidArgumentError(
            f"Invalid interpolation {interpolation}. Supported types: NEAREST, BILINEAR"
        )
    shape = (images.shape[0], height, width, images.shape[3])
    check_allocation(shape, np.float64)
    fill = np.asarray(fill_value, np.float32).astype(images.dtype)
    if 0 in images.shape:
        return np.full(shape, fill, images.dtype)
    x, y, is_defined = _source_positions(transforms, height, width)
    fold = _FOLDS[mode]
    x, y = fold(x, images.shape[2]), fold(y, images.shape[1])
    sample = _sample_nearest if method == "NEAREST" else _sample_bilinear
    result = sample(images, x, y, fill).astype(images.dtype, copy=False)
    return np.where(is_defined[..., None], result, fill)


def image_projective_transform_v2(
    images: np.ndarray,
    transforms: np.ndarray,
    output_shape: np.ndarray,
    *,
    interpolation: str,
    fill_mode: str,
) -> np.ndarray:
    """ImageProjectiveTransformV2: compute ImageProjectiveTransformV3 with a `fill_value` of 0."""
    return image_projective_transform_v3(
        images,
        transforms,
        output_shape,
        np.float32(0),
        interpolation=interpolation,
        fill_mode=fill_mode,
    )


def _source_positions(
    transforms: np.ndarray, height: int, width: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the input position (x and y) of each output pixel, and whether it is defined.

    Each is `[n, height, width]`. A position is undefined if its denominator k is 0.
    """
    columns = np.arange(width, dtype=np.float32)
    rows = np.arange(height, dtype=np.float32)[:, None]
    a0, a1, a2, b0, b1, b2, c0, c1 = (each[:, None, None] for each in transforms.T)
    k = c0 * columns + c1 * rows + np.float32(1)
    is_defined = k != 0
    k = np.where(is_defined, k, np.float32(1))
    return (a0 * columns + a1 * rows + a2) / k, (b0 * columns + b1 * rows + b2) / k, is_defined


def _reflect(position: np.ndarray, size: int) -> np.ndarray:
    """Map positions on an axis of `size` pixels into the image, which is continued by mirroring.

    The mirrors are the outer edges of the outermost pixels.
    """
    if size <= 1:
        return np.zeros_like(position)
    period = np.float32(2 * size)
    below = period * np.trunc(-position / period) + position
    below = np.where(below < -size, below + period, -below - 1)
    above = position - period * np.trunc(position / period)
    above = np.where(above >= size, period - above - 1, above)
    folded = np.where(position < 0, below, np.where(position > size - 1, above, position))
    return np.clip(folded, 0, size - 1)


def _wrap(position: np.ndarray, size: int) -> np.ndarray:
    """Map positions on an axis of `size` pixels into the image, which is continued by repeating."""
    if size <= 1:
        return np.zeros_like(position)
    period = np.float32(size - 1)
    below = position + size * (np.trunc(-position / period) + 1)
    above = position - size * np.trunc(position / period)
    folded = np.where(position < 0, below, np.where(position > size - 1, above, position))
    return np.clip(folded, 0, size - 1)


_FOLDS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "CONSTANT": lambda position, size: position,
    "NEAREST": lambda position, size: np.clip(position, 0, size - 1),
    "REFLECT": _reflect,
    "WRAP": _wrap,
}


def _pixels(images: np.ndarray, x: np.ndarray, y: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """Return the pixels `[n, h, w, c]` at integer positions `x`, `y`.

    A pixel outside the image is `fill`.
    """
    is_inside = (x >= 0) & (x < images.shape[2]) & (y >= 0) & (y < images.shape[1])
    columns = np.where(is_inside, x, 0).astype(np.int64)
    rows = np.where(is_inside, y, 0).astype(np.int64)
    batch = np.arange(images.shape[0])[:, None, None]
    return np.where(is_inside[..., None], images[batch, rows, columns], fill)


def _sample_nearest(
    images: np.ndarray, x: np.ndarray, y: np.ndarray, fill: np.ndarray
) -> np.ndarray:
    # As C's round, halves are rounded away from zero.
    x, y = (np.copysign(np.floor(np.abs(each) + np.float32(0.5)), each) for each in (x, y))
    return _pixels(images, x, y, fill)


def _sample_bilinear(
    images: np.ndarray, x: np.ndarray, y: np.ndarray, fill: np.ndarray
) -> np.ndarray:
    left, top = np.floor(x), np.floor(y)
    right, bottom = left + 1, top + 1

    def along(row: np.ndarray) -> np.ndarray:
        first = _pixels(images, left, row, fill).astype(np.float32, copy=False)
        second = _pixels(images, right, row, fill).astype(np.float32, copy=False)
        return (right - x)[..., None] * first + (x - left)[..., None] * second

    return (bottom - y)[..., None] * along(top) + (y - top)[..., None] * along(bottom)


def scale_and_translate(
    images: np.ndarray,
    size: np.ndarray,
    scale: np.ndarray,
    translation: np.ndarray,
    *,
    kernel_type: str,
    antialias: bool,
) -> np.ndarray:
    """ScaleAndTranslate: scale `images` `[n, h, w, c]`, then translate them; float32.

    `scale` and `translation` are (y, x). The result has the height and width `size`.
    """
    _check_scaling(images, scale, translation, kernel_type)
    height, width = check_size(size, "output_shape_t")
    if not (np.asarray(scale) > 0).all():
        raise InvalidArgumentError("Scale must be greater than zero.")
    if 0 in images.shape[1:3]:
        raise InvalidArgumentError("input image must be of non-zero size")
    if not images.shape[3]:
        raise InvalidArgumentError("image must have at least one channel")
    check_allocation((images.shape[0], height, width, images.shape[3]), np.float32)
    rows, columns = (
        _spans(outputs, inputs, factor, offset, kernel_type, antialias)
        for outputs, inputs, factor, offset in zip(
            (height, width), images.shape[1:3], scale, translation, strict=True
        )
    )
    return columns.apply(rows.apply(images.astype(np.float32, copy=False), 1), 2)


def _check_scaling(
    images: np.ndarray,
    scale: np.ndarray,
    translation: np.ndarray,
    kernel_type: str,
    name: str = "input",
) -> None:
    if kernel_type not in KERNEL_FUNCTIONS:
        raise InvalidArgumentError(f"Unrecognized kernel type: {kernel_type}")
    if images.ndim != 4:
        raise InvalidArgumentError(f"{name} must be 4-dimensional{shape_text(images.shape)}")
    for vector in (scale, translation):
        if np.ndim(vector) != 1 or np.size(vector) != 2:
            raise InvalidArgumentError(f"t must have two elements{shape_text(np.shape(vector))}")


def scale_and_translate_grad(
    grads: np.ndarray,
    original_image: np.ndarray,
    scale: np.ndarray,
    translation: np.ndarray,
    *,
    kernel_type: str,
    antialias: bool,
) -> np.ndarray:
    """ScaleAndTranslateGrad: return the gradient of ScaleAndTranslate with respect to its images.

    It has the height and width of `original_image`.
    """
    _check_scaling(grads, scale, translation, kernel_type, "input_grad")
    if original_image.ndim != 4:
        raise InvalidArgumentError(
            f"original_image must be 4-dimensional{shape_text(original_image.shape)}"
        )
    if not (np.asarray(scale) > 0).all():
        raise InvalidArgumentError("Scale must be greater than zero.")
    lengths = original_image.shape[1:3]
    check_allocation((grads.shape[0], *lengths, grads.shape[3]), np.float32)
    if 0 in lengths or not grads.size:
        return np.zeros((grads.shape[0], *lengths, grads.shape[3]), np.float32)
    rows, columns = (
        _spans(outputs, inputs, factor, offset, kernel_type, antialias)
        for outputs, inputs, factor, offset in zip(
            grads.shape[1:3], lengths, scale, translation, strict=True
        )
    )
    wide = rows.apply_transposed(grads.astype(np.float32, copy=False), 1, lengths[0])
    return columns.apply_transposed(wide, 2, lengths[1])


def _lanczos(radius: int) -> Callable[[np.ndarray], np.ndarray]:
    def kernel(x: np.ndarray) -> np.ndarray:
        value = np.sinc(x) * np.sinc(x / radius)
        return np.where(x > radius, 0, value)

    return kernel


def _cubic(x: np.ndarray, near: tuple[float, ...], far: tuple[float, ...]) -> np.ndarray:
    return np.where(x >= 2, 0, np.where(x < 1, np.polyval(near, x), np.polyval(far, x)))


# For each kernel type: the radius in input pixels, and the weight as a function of the distance.
KERNEL_FUNCTIONS: dict[str, tuple[float, Callable[[np.ndarray], np.ndarray]]] = {
    "lanczos1": (1, _lanczos(1)),
    "lanczos3": (3, _lanczos(3)),
    "lanczos5": (5, _lanczos(5)),
    "gaussian": (1.5, lambda x: np.where(x >= 1.5, 0, np.exp(-np.square(x) * 2))),
    "box": (1, lambda x: np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0.0))),
    "triangle": (1, lambda x: np.maximum(1 - x, 0)),
    "keyscubic": (2, lambda x: _cubic(x, (1.5, -2.5, 0, 1), (-0.5, 2.5, -4, 2))),
    "mitchellcubic": (
        2,
        lambda x: _cubic(x, (7 / 6, -2, 0, 8 / 9), (-7 / 18, 2, -10 / 3, 16 / 9)),
    ),
}


def _spans(
    outputs: int, inputs: int, scale: float, translation: float, kernel_type: str, antialias: bool
) -> Taps:
    """Return the inputs of each output along one axis, and their normalised weights.

    TF: ComputeSpansCore
    """
    radius, weigh = KERNEL_FUNCTIONS[kernel_type]
    inverse = np.float32(1) / np.float32(scale)
    widening = max(float(inverse), 1.0) if antialias else 1.0
    steps = np.arange(outputs, dtype=np.float32) + np.float32(0.5)
    centres = steps * inverse - inverse * np.float32(translation)
    if not np.isfinite(centres).all():
        raise InvalidArgumentError("scale and translation must be finite and not vanish")
    reach = radius * widening
    starts = np.clip(np.ceil(centres - reach - 0.5), 0, inputs - 1).astype(np.int64)
    ends = np.clip(np.floor(centres + reach - 0.5), 0, inputs - 1).astype(np.int64)
    count = int((ends - starts).max()) + 1
    check_allocation((outputs, count), np.float64)
    wanted = starts[:, None] + np.arange(count)
    weights = weigh(np.abs((wanted + 0.5 - centres[:, None]) / widening))
    is_seen = (centres >= 0) & (centres <= inputs)  # outputs centred outside have no inputs
    weights = np.where((wanted <= ends[:, None]) & is_seen[:, None], weights, 0)
    total = weights.sum(axis=1, keepdims=True)
    usable = np.abs(total) >= 1000 * np.finfo(np.float32).tiny
    weights = np.where(usable, weights / np.where(usable, total, 1), weights)
    return Taps(np.minimum(wanted, inputs - 1), weights.astype(np.float32))


_PROJECTIVE = {"dtype": (*FLOAT_TYPES, DataType.INT32, DataType.INT64, DataType.UINT8)}

KERNELS = (
    KernelDef("ImageProjectiveTransformV2", image_projective_transform_v2, _PROJECTIVE),
    KernelDef("ImageProjectiveTransformV3", image_projective_transform_v3, _PROJECTIVE),
    KernelDef("ScaleAndTranslate", scale_and_translate, {"T": REAL_NUMBER_TYPES}),
    KernelDef("ScaleAndTranslateGrad", scale_and_translate_grad, {"T": (DataType.FLOAT,)}),
)

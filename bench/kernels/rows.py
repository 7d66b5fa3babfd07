"""Inputs of a realistic size for each kernel that `bench.kernels` times, by family.

The inputs of a row are constants of its graph, so that no time is spent on feeding or fetching.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from PIL import Image

import protos as pb
from runtime.framework.dtypes import DataType
from tests.conformance.case import Graph

rng = np.random.default_rng(20)
MILLION = 1 << 20
IMAGES = (8, 56, 56, 64)
SECOND = {"strides": [1, 2, 2, 1], "padding": "SAME"}
WINDOW = {"ksize": [1, 3, 3, 1], **SECOND}
SAME = {"strides": [1, 1, 1, 1], "padding": "SAME"}


@dataclasses.dataclass(frozen=True)
class Row:
    """A graph whose node `result` is timed after the nodes named in `setup` have run once."""

    family: str
    name: str
    graph: pb.GraphDef
    setup: tuple[str, ...] = ()


def f32(*shape: int) -> np.ndarray:
    """Return normally distributed float32 numbers of the given shape."""
    return rng.standard_normal(shape, np.float32)


def positive(*shape: int) -> np.ndarray:
    """Return uniform float32 numbers in [0.1, 1) of the given shape."""
    return rng.random(shape, np.float32) * np.float32(0.9) + np.float32(0.1)


def i32(limit: int, *shape: int) -> np.ndarray:
    """Return uniform int32 numbers in [0, limit) of the given shape."""
    return rng.integers(0, limit, shape, np.int32)


def i64(limit: int, *shape: int) -> np.ndarray:
    """Return uniform int64 numbers in [0, limit) of the given shape."""
    return rng.integers(0, limit, shape, np.int64)


def words(count: int, of: int = 3) -> np.ndarray:
    """Return `count` strings of `of` words each, an array of bytes objects [count]."""
    texts = [" ".join(f"w{n}" for n in rng.integers(0, 10_000, of)) for _ in range(count)]
    return np.array([text.encode() for text in texts], object)


def one(family: str, op: str, *inputs: Any, label: str = "", **attrs: Any) -> Row:
    """Return a row whose graph is the node `result` and constants for its inputs."""
    graph = Graph()
    graph.add(op, *inputs, name="result", **attrs)
    return Row(family, f"{op} {label}".strip(), graph.graph_def)


def elementwise() -> Iterator[Row]:
    x, y, p, q = f32(MILLION), f32(MILLION), positive(MILLION), positive(MILLION)
    for op in ("AddV2", "Mul", "RealDiv", "Maximum", "SquaredDifference", "FloorDiv", "FloorMod"):
        yield one("elementwise", op, x, y)
    yield one("elementwise", "AddV2", f32(1024, 1024), f32(1024), label="row")
    yield one("elementwise", "Mul", f32(8, 56, 56, 64), f32(64), label="channels")
    for op in ("Pow", "Atan2", "Xlogy", "DivNoNan", "NextAfter", "TruncateMod"):
        yield one("elementwise", op, p, q)
    for op in ("Exp", "Tanh", "Sigmoid", "Erf", "Erfc", "Relu", "Relu6", "Elu", "Selu"):
        yield one("elementwise", op, x)
    for op in ("Softplus", "Softsign", "LeakyRelu", "Sin", "Sign", "Round", "IsNan", "Neg"):
        yield one("elementwise", op, x)
    for op in ("Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal", "Lgamma", "Digamma", "Erfinv"):
        yield one("elementwise", op, p)
    for op in ("Ndtri", "BesselI0e", "Asinh", "Acos"):
        yield one("elementwise", op, p)
    small = positive(1 << 16)
    yield one("elementwise", "Igamma", small, positive(1 << 16), label="64k")
    yield one("elementwise", "Betainc", small, small, small, label="64k")
    yield one("elementwise", "Zeta", small + np.float32(1.5), small, label="64k")
    yield one("elementwise", "FloorDiv", i32(1000, MILLION), i32(99, MILLION) + 1, label="int32")
    yield one("elementwise", "BitwiseAnd", i32(1000, MILLION), i32(1000, MILLION))
    yield one("elementwise", "Greater", x, y)
    yield one("elementwise", "LogicalAnd", x > 0, y > 0)
    yield one("elementwise", "SelectV2", x > 0, x, y)
    yield one("elementwise", "ClipByValue", x, np.float32(-1), np.float32(1))
    yield one("elementwise", "AddN", [x, y, p, q])
    yield one("elementwise", "Cast", x, DstT=DataType.INT32, label="to int32")
    yield one("elementwise", "Cast", x, DstT=DataType.BFLOAT16, label="to bfloat16")
    yield one("elementwise", "Cast", x, DstT=DataType.HALF, label="to half")
    half = x.astype(np.float16)
    yield one("elementwise", "AddV2", half, half, label="half")
    yield one("elementwise", "Tanh", half, label="half")


def reductions() -> Iterator[Row]:
    x = f32(1024, 1024)
    for op in ("Sum", "Mean", "Max", "Prod"):
        for axes in ([0], [1], [0, 1]):
            yield one("reductions", op, x, np.int32(axes), label=f"axes {axes}")
    for axis in (0, 1):
        index = np.int32(axis)
        yield one("reductions", "ArgMax", x, index, output_type=DataType.INT64, label=f"{axis}")
    yield one("reductions", "All", x < 9, np.int32([1]))
    yield one("reductions", "L2Loss", x)
    yield one("reductions", "EuclideanNorm", x, np.int32([1]))
    yield one("reductions", "Sum", x.astype(np.float16), np.int32([1]), label="half")
    yield one("reductions", "Mean", f32(*IMAGES), np.int32([1, 2]), label="of images")
    for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp"):
        yield one("reductions", op, x, np.int32(1))
    yield one("reductions", "Cumsum", x, np.int32(0), label="axis 0")
    yield one("reductions", "Bincount", i32(1000, MILLION), np.int32(1000), np.float32([]))
    weights = np.float32([])
    yield one("reductions", "DenseBincount", i32(99, 64, 4096), np.int32(100), weights)
    limits = np.float32([-2, 2])
    yield one("reductions", "HistogramFixedWidth", f32(MILLION), limits, np.int32(100))


def products() -> Iterator[Row]:
    yield one("products", "MatMul", f32(512, 512), f32(512, 512))
    yield one("products", "MatMul", f32(512, 512), f32(512, 512), transpose_b=True, label="of bᵀ")
    yield one("products", "MatMul", f32(1, 2048), f32(2048, 1000), label="vector")
    yield one("products", "MatMul", i32(9, 256, 256), i32(9, 256, 256), label="int32")
    half = f32(256, 256).astype(DataType.BFLOAT16.numpy)
    yield one("products", "MatMul", half, half, label="bfloat16")
    yield one("products", "BatchMatMulV2", f32(32, 128, 64), f32(32, 64, 128))
    yield one("products", "BatchMatMulV2", f32(32, 128, 64), f32(64, 128), label="shared")
    four = [f32(8, 128, 4, 64), f32(8, 128, 4, 64)]
    yield one("products", "Einsum", four, equation="abcd,aecd->acbe")
    thin = np.where(rng.random((512, 512)) < 0.05, f32(512, 512), np.float32(0))
    yield one("products", "SparseMatMul", thin, f32(512, 512), a_is_sparse=True)
    for op in ("Softmax", "LogSoftmax"):
        yield one("products", op, f32(1024, 1000))
    logits, labels = f32(512, 1000), positive(512, 1000)
    yield one("products", "SoftmaxCrossEntropyWithLogits", logits, labels)
    yield one("products", "SparseSoftmaxCrossEntropyWithLogits", logits, i32(1000, 512))


def normalization() -> Iterator[Row]:
    x, channels = f32(*IMAGES), positive(64)
    four = (channels, channels, channels, channels)
    yield one("normalization", "FusedBatchNormV3", x, *four, is_training=False)
    empty = np.float32([])
    yield one("normalization", "FusedBatchNormV3", x, *four[:2], empty, empty, label="training")
    yield one("normalization", "FusedBatchNormGradV3", x, x, *four)
    yield one("normalization", "LRN", x)
    yield one("normalization", "BiasAdd", x, channels)
    yield one("normalization", "BiasAddGrad", x)
    for op in ("ReluGrad", "SigmoidGrad", "TanhGrad", "EluGrad"):
        yield one("normalization", op, x, x)


def convolutions() -> Iterator[Row]:
    x, kernel = f32(*IMAGES), f32(3, 3, 64, 64)
    yield one("convolution", "Conv2D", x, kernel, **SAME)
    yield one("convolution", "Conv2D", x, kernel, **SECOND, label="stride 2")
    yield one("convolution", "Conv2D", x, f32(1, 1, 64, 256), **SAME, label="1x1")
    yield one("convolution", "Conv2D", f32(8, 224, 224, 3), f32(7, 7, 3, 64), **SECOND, label="7x7")
    yield one("convolution", "Conv2D", x, f32(3, 3, 16, 64), **SAME, label="4 groups")
    size = np.int32(IMAGES)
    yield one("convolution", "Conv2DBackpropInput", size, kernel, x, **SAME)
    yield one("convolution", "Conv2DBackpropFilter", x, np.int32(kernel.shape), x, **SAME)
    each = f32(3, 3, 64, 1)
    yield one("convolution", "DepthwiseConv2dNative", x, each, **SAME)
    yield one("convolution", "DepthwiseConv2dNative", x, each, **SECOND, label="stride 2")
    yield one("convolution", "DepthwiseConv2dNativeBackpropInput", size, each, x, **SAME)
    shape = np.int32(each.shape)
    yield one("convolution", "DepthwiseConv2dNativeBackpropFilter", x, shape, x, **SAME)
    cube, cube_kernel = f32(2, 16, 28, 28, 32), f32(3, 3, 3, 32, 32)
    steps = {"strides": [1] * 5, "padding": "SAME"}
    yield one("convolution", "Conv3D", cube, cube_kernel, **steps)
    yield one("convolution", "Dilation2D", x, f32(3, 3, 64), rates=[1] * 4, **SAME)


def pooling() -> Iterator[Row]:
    x = f32(8, 112, 112, 64)
    yield one("pooling", "MaxPool", x, **WINDOW)
    yield one("pooling", "AvgPool", x, **WINDOW)
    yield one("pooling", "MaxPoolWithArgmax", x, **WINDOW)
    pooled = f32(8, 56, 56, 64)
    yield one("pooling", "MaxPoolGrad", x, pooled, pooled, **WINDOW)
    yield one("pooling", "AvgPoolGrad", np.int32(x.shape), pooled, **WINDOW)
    cubes = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    yield one("pooling", "MaxPool3D", f32(2, 16, 56, 56, 32), **cubes)
    ratio = [1.0, 1.44, 1.73, 1.0]
    yield one("pooling", "FractionalMaxPool", x, pooling_ratio=ratio, deterministic=True, seed=1)


def images() -> Iterator[Row]:
    photos, size = rng.random((4, 224, 224, 3), np.float32) * np.float32(255), np.int32([299, 299])
    for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"):
        yield one("images", op, photos, size)
    yield one("images", "ResizeBilinear", photos, size, half_pixel_centers=True, label="centres")
    yield one("images", "ResizeBilinear", photos.astype(np.uint8), size, label="uint8")
    large = f32(4, 299, 299, 3)
    yield one("images", "ResizeBilinearGrad", large, photos)
    yield one("images", "ResizeNearestNeighborGrad", large, np.int32([224, 224]))
    scale = np.float32([1.3, 1.3])
    yield one("images", "ScaleAndTranslate", photos, size, scale, np.float32([0, 0]))
    boxes = np.sort(rng.random((256, 2, 2), np.float32), axis=1).reshape(256, 4)
    fourteen = np.int32([14, 14])
    yield one("images", "CropAndResize", f32(4, 56, 56, 64), boxes, i32(4, 256), fourteen)
    turn = np.float32([[0.9, 0.1, 0, -0.1, 0.9, 0, 0, 0]] * 4)
    place = (photos, turn, np.int32([224, 224]), np.float32(0))
    yield one("images", "ImageProjectiveTransformV3", *place, interpolation="BILINEAR")
    patches = {"ksizes": [1, 16, 16, 1], "strides": [1, 16, 16, 1], "rates": [1] * 4}
    yield one("images", "ExtractImagePatches", photos, **patches, padding="VALID")
    unit = photos / np.float32(255)
    for op in ("RGBToHSV", "HSVToRGB"):
        yield one("images", op, unit)
    for op in ("AdjustContrastv2", "AdjustHue", "AdjustSaturation"):
        yield one("images", op, unit, np.float32(0.3))
    corners = np.sort(rng.random((2000, 2, 2), np.float32), axis=1).reshape(2000, 4)
    limits = np.int32(100), np.float32(0.5), np.float32(0.1)
    yield one("images", "NonMaxSuppressionV3", corners, positive(2000), *limits)
    many = corners[:1000].reshape(1, 1000, 1, 4), positive(1, 1000, 20)
    hundred = np.int32(100)
    thresholds = np.float32(0.5), np.float32(0.3)
    yield one("images", "CombinedNonMaxSuppression", *many, hundred, hundred, *thresholds)
    yield from codecs()


def codecs() -> Iterator[Row]:
    smooth = np.add.outer(np.arange(512), np.arange(512))[..., np.newaxis] // np.array([4, 5, 6])
    photo = (smooth + rng.integers(0, 16, (512, 512, 3))).astype(np.uint8)
    for kind, decode, encode in (
        ("JPEG", "DecodeJpeg", "EncodeJpeg"),
        ("PNG", "DecodePng", "EncodePng"),
    ):
        file = io.BytesIO()
        Image.fromarray(photo).save(file, kind)
        yield one("images", decode, file.getvalue(), channels=3)
        yield one("images", encode, photo)


FAMILIES: tuple[Callable[[], Iterator[Row]], ...] = (
    elementwise,
    reductions,
    products,
    normalization,
    convolutions,
    pooling,
    images,
)

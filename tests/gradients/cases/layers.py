"""Neural network ops: convolutions, pooling, normalisation, losses, images."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.client import ops
from tests.gradients.gradient_case import Body, GradientCase, case

M = [[1.0, 2.0, 0.5], [3.0, 5.0, 0.25]]


def _wave(*shape: int) -> np.ndarray:
    count = int(np.prod(shape))
    return np.sin(np.arange(count) * 1.3 + 0.4).astype(np.float32).reshape(shape)


IMAGE = _wave(2, 5, 5, 2)
FILTER = _wave(3, 2, 2, 3)
SOLID = _wave(1, 4, 4, 4, 2)
SOLID_FILTER = _wave(2, 2, 2, 2, 3)
ONES = [1, 1, 1, 1]
_PADDED = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 0, 2, 0, 0]}
# name → attributes of a convolution
_WAYS: dict[str, dict[str, Any]] = {
    "same": {"strides": ONES, "padding": "SAME"},
    "strided": {"strides": [1, 2, 2, 1], "padding": "VALID"},
    "explicit": {"strides": ONES, **_PADDED},
}
_WINDOW = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "padding": "SAME"}
_SOLID_WINDOW = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 1, 2, 1], "padding": "SAME"}


def _with(op: str, **attrs: Any) -> Body:
    return lambda *inputs: getattr(ops, op)(*inputs, **attrs)


def _batch_norm(version: str, is_training: bool, **attrs: Any) -> Body:
    def normalise(x: Any, scale: Any, offset: Any) -> Any:
        statistics = [np.zeros(0, np.float32)] * 2
        if not is_training:
            statistics = [np.array([0.1, -0.2], np.float32), np.array([0.5, 1.5], np.float32)]
        op = getattr(ops, f"FusedBatchNorm{version}")
        return op(x, scale, offset, *statistics, is_training=is_training, **attrs)[0]

    return normalise


def _ctc(logits: Any) -> Any:
    indices = np.array([[0, 0], [0, 1], [1, 0]], np.int64)
    labels, lengths = np.array([0, 1, 2], np.int32), np.array([4, 3], np.int32)
    return ops.CTCLoss(logits, indices, labels, lengths)[0]


def _block_lstm(version: str, use_peephole: bool) -> Body:
    def body(x: Any, cs: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any) -> Any:
        op = getattr(ops, f"BlockLSTM{version}")
        found = op(np.int64(3), x, cs, h, w, wci, wcf, wco, b, use_peephole=use_peephole)
        return [found[1], found[6]]

    return body


LSTM_INPUTS = tuple(
    _wave(*shape) for shape in ((3, 2, 4), (2, 3), (2, 3), (7, 12), (3,), (3,), (3,), (12,))
)

CASES: dict[str, GradientCase] = {
    "BiasAdd": case(ops.BiasAdd, M, [1.0, 2.0, 3.0]),
    "BiasAdd_channels_first":
        case(_with("BiasAdd", data_format="NCHW"), IMAGE, np.arange(5, dtype=np.float32)),
    "BiasAddV1": case(ops.BiasAddV1, M, [1.0, 2.0, 3.0]),
    **{f"BlockLSTM{version}_{peephole}": case(_block_lstm(version, peephole), *LSTM_INPUTS)
       for version in ("", "V2") for peephole in (False, True)},
    "BiasAddGrad": case(ops.BiasAddGrad, IMAGE),
    "BiasAddGrad_channels_first": case(_with("BiasAddGrad", data_format="NCHW"), IMAGE),
    **{f"Conv2D_{name}": case(_with("Conv2D", **attrs), IMAGE, FILTER)
       for name, attrs in _WAYS.items()},
    "Conv2D_dilated": case(
        _with("Conv2D", strides=ONES, padding="SAME", dilations=[1, 2, 2, 1]), IMAGE, FILTER
    ),
    "Conv2D_twice": case(_with("Conv2D", strides=ONES, padding="SAME"), IMAGE, FILTER, order=2),
    "Conv2DBackpropInput": case(
        lambda w, dy: ops.Conv2DBackpropInput([2, 6, 6, 2], w, dy, [1, 2, 2, 1], "SAME"),
        FILTER, _wave(2, 3, 3, 3),
    ),
    "Conv2DBackpropFilter": case(
        lambda x, dy: ops.Conv2DBackpropFilter(x, [3, 2, 2, 3], dy, ONES, "SAME"),
        IMAGE, _wave(2, 5, 5, 3),
    ),
    **{f"DepthwiseConv2dNative_{name}":
       case(_with("DepthwiseConv2dNative", **attrs), IMAGE, FILTER)
       for name, attrs in _WAYS.items()},
    "DepthwiseConv2dNativeBackpropInput": case(
        lambda w, dy: ops.DepthwiseConv2dNativeBackpropInput([2, 5, 5, 2], w, dy, ONES, "SAME"),
        FILTER, _wave(2, 5, 5, 6),
    ),
    "DepthwiseConv2dNativeBackpropFilter": case(
        lambda x, dy: ops.DepthwiseConv2dNativeBackpropFilter(x, [3, 2, 2, 3], dy, ONES, "SAME"),
        IMAGE, _wave(2, 5, 5, 6),
    ),
    "Conv3D": case(_with("Conv3D", strides=[1] * 5, padding="SAME"), SOLID, SOLID_FILTER),
    "Conv3D_strided":
        case(_with("Conv3D", strides=[1, 2, 1, 2, 1], padding="VALID"), SOLID, SOLID_FILTER),
    "Conv3DBackpropInputV2": case(
        lambda w, dy: ops.Conv3DBackpropInputV2([1, 4, 4, 4, 2], w, dy, [1] * 5, "SAME"),
        SOLID_FILTER, _wave(1, 4, 4, 4, 3),
    ),
    "Conv3DBackpropFilterV2": case(
        lambda x, dy: ops.Conv3DBackpropFilterV2(x, [2, 2, 2, 2, 3], dy, [1] * 5, "SAME"),
        SOLID, _wave(1, 4, 4, 4, 3),
    ),
    "Dilation2D": case(
        _with("Dilation2D", strides=ONES, rates=[1, 2, 2, 1], padding="SAME"), IMAGE, _wave(2, 2, 2)
    ),
    "MaxPool": case(_with("MaxPool", **_WINDOW), IMAGE),
    "MaxPool_twice": case(_with("MaxPool", **_WINDOW), IMAGE, order=2),
    "MaxPoolV2": case(lambda x: ops.MaxPoolV2(x, [1, 2, 2, 1], [1, 2, 1, 1], "VALID"), IMAGE),
    "MaxPool_of_squares": case(lambda x: ops.Square(ops.MaxPool(x, **_WINDOW)), IMAGE, order=2),
    "AvgPool": case(_with("AvgPool", **_WINDOW), IMAGE),
    "AvgPool_of_squares": case(lambda x: ops.Square(ops.AvgPool(x, **_WINDOW)), IMAGE, order=2),
    "MaxPool3D": case(_with("MaxPool3D", **_SOLID_WINDOW), SOLID),
    "AvgPool3D": case(_with("AvgPool3D", **_SOLID_WINDOW), SOLID),
    "MaxPoolV2_of_squares": case(
        lambda x: ops.Square(ops.MaxPoolV2(x, [1, 2, 2, 1], [1, 2, 1, 1], "VALID")), IMAGE, order=2
    ),
    "MaxPool3D_of_squares":
        case(lambda x: ops.Square(ops.MaxPool3D(x, **_SOLID_WINDOW)), SOLID, order=2),
    "AvgPool3D_of_squares":
        case(lambda x: ops.Square(ops.AvgPool3D(x, **_SOLID_WINDOW)), SOLID, order=2),
    "CropAndResize": case(
        lambda x, boxes: ops.CropAndResize(x, boxes, np.array([1, 0, 1], np.int32), [3, 2]),
        IMAGE, [[0.1, 0.2, 0.7, 0.9], [0.0, 0.3, 1.1, 0.6], [0.8, 0.1, 0.2, 0.5]], tolerance=1e-4,
    ),
    "FakeQuantWithMinMaxArgs": case(_with("FakeQuantWithMinMaxArgs", min=-0.5, max=0.5), IMAGE),
    "FakeQuantWithMinMaxVars": case(ops.FakeQuantWithMinMaxVars, IMAGE, -0.5, 0.75),
    "FakeQuantWithMinMaxVarsPerChannel":
        case(ops.FakeQuantWithMinMaxVarsPerChannel, IMAGE, [-0.5, -0.25], [0.75, 0.5]),
    "QuantizeAndDequantizeV4":
        case(_with("QuantizeAndDequantizeV4", range_given=True), IMAGE, -0.5, 0.75),
    "QuantizeAndDequantizeV2":
        case(_with("QuantizeAndDequantizeV2", range_given=True), IMAGE, -0.5, 0.75),
    "QuantizeAndDequantizeV3":
        case(lambda x: ops.QuantizeAndDequantizeV3(x, -0.5, 0.75, 8, range_given=True), IMAGE),
    **{f"FusedBatchNorm{version}_{name}":
       case(_batch_norm(version, training), IMAGE, [1.5, 0.5], [0.25, -1.0], tolerance=1e-4)
       for version in ("", "V2", "V3") for name, training in (("batch", True), ("given", False))},
    "FusedBatchNormV3_small_epsilon":
        case(_batch_norm("V3", True, epsilon=1e-5), IMAGE, [1.5, 0.5], [0.25, -1.0],
             tolerance=1e-4),
    "LRN": case(_with("LRN", depth_radius=1, bias=1.5, alpha=0.5, beta=0.75), IMAGE),
    "Softmax": case(ops.Softmax, M),
    "Softmax_twice": case(ops.Softmax, M, order=2),
    "LogSoftmax": case(ops.LogSoftmax, M),
    "LogSoftmax_twice": case(ops.LogSoftmax, M, order=2),
    "SoftmaxCrossEntropyWithLogits": case(
        lambda x, y: ops.SoftmaxCrossEntropyWithLogits(x, y)[0], M,
        [[0.25, 0.25, 0.5], [1.0, 0.0, 0.0]],
    ),
    "SoftmaxCrossEntropyWithLogits_twice": case(
        lambda x: ops.SoftmaxCrossEntropyWithLogits(
            x, np.array([[0.25, 0.25, 0.5], [1.0, 0.0, 0.0]], np.float32)
        )[0],
        M, order=2,
    ),
    "SparseSoftmaxCrossEntropyWithLogits": case(
        lambda x: ops.SparseSoftmaxCrossEntropyWithLogits(x, np.array([2, 0]))[0], M
    ),
    "SparseSoftmaxCrossEntropyWithLogits_twice": case(
        lambda x: ops.SparseSoftmaxCrossEntropyWithLogits(x, np.array([2, 0]))[0], M, order=2
    ),
    "CTCLoss": case(_ctc, _wave(4, 2, 4)),
    **{f"{op}{'_aligned' if aligned else '_centred' if centred else ''}":
       case(lambda x, op=op, a=aligned, c=centred: getattr(ops, op)(
           x, [3, 8], align_corners=a, half_pixel_centers=c), IMAGE)
       for op in ("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor")
       for aligned, centred in ((False, False), (True, False), (False, True))},
}  # fmt: skip

"""What the kernels of this room allocate.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import (
    broadcast_elements,
    dense,
    elements,
    itemsize,
    numbers_in,
    shape_of,
    size_of,
)
from runtime.kernels.nn.convolution_memory import CONVOLUTIONS
from runtime.kernels.nn.pooling_memory import POOLINGS

V = TensorValue
DOUBLE = 8
CLASS = 200  # bytes of a sampled class: numbers in float64, and a Python integer in a dictionary
BEAM = 1000  # bytes of a beam of the search, with the dictionary of its children


def _sampled(count: int, true_classes: V) -> int:
    return count * CLASS + elements(true_classes) * 12 * DOUBLE


def _sampler(true_classes: V, *, num_sampled: int) -> int:
    return _sampled(max(num_sampled, 0), true_classes)


def _unigram_sampler(true_classes: V, *, num_sampled: int, range_max: int) -> int:
    return _sampled(max(num_sampled, 0), true_classes) + max(range_max, 0) * 8 * DOUBLE


def _fixed_sampler(
    true_classes: V, *, num_sampled: int, range_max: int, num_reserved_ids: int,
    unigrams: Sequence[float],
) -> int:  # fmt: skip
    weights = max(num_reserved_ids, 0) + max(len(unigrams), range_max)
    return _sampled(max(num_sampled, 0), true_classes) + weights * 12 * DOUBLE


def _ctc_loss(inputs: V, labels_indices: V, labels_values: V, sequence_length: V) -> int:
    time, _, classes = shape_of(inputs)
    path = 2 * min(elements(labels_values), time) + 1
    return time * (path + classes) * 10 * DOUBLE + 2 * size_of(inputs) + _labels(labels_values)


def _labels(labels_values: V) -> int:
    return elements(labels_values) * 20 * DOUBLE


def _beam_search(inputs: V, sequence_length: V, *, beam_width: int, top_paths: int) -> int:
    time, batch, classes = shape_of(inputs)
    width = max(beam_width, 1)
    # no more beams than there are sequences of classes
    possible = min(max(classes, 1) ** min(time, 64), width)
    paths = batch * max(top_paths, 0) * (time * 10 * DOUBLE + 30 * DOUBLE)
    return time * possible * BEAM + classes * 8 * DOUBLE + paths + 2 * size_of(inputs)


def _lstm(seq_len_max: V, x: V, cs_prev: V) -> int:
    steps, batch = shape_of(x)[:2]
    cells = shape_of(cs_prev)[1]
    return batch * cells * max(itemsize(x), 4) * (18 * steps + 30)


def _block_lstm(
    seq_len_max: V, x: V, cs_prev: V, h_prev: V, w: V, wci: V, wcf: V, wco: V, b: V
) -> int:
    return _lstm(seq_len_max, x, cs_prev) + 2 * size_of(x, cs_prev, h_prev, w, wci, wcf, wco, b)


def _softmax_loss(features: V, labels: V) -> int:
    return broadcast_elements(features, labels) * max(itemsize(features), 4) * 8


def _lrn(x: V, *others: V) -> int:
    channels = min((shape_of(x) or (0,))[-1], 512)  # the band of neighbouring channels
    return elements(x, *others) * 4 * 8 + channels * channels * 4 * DOUBLE


def _dim_map(x: V) -> int:
    return elements(x) * (2 * itemsize(x) + 2 * DOUBLE)


def _dilation(
    x: V, filter: V, *, strides: Sequence[int], rates: Sequence[int], padding: str
) -> int:
    return _dilated(x, filter, strides, rates, padding) * (2 * itemsize(x))


def _dilation_gradient(
    x: V, filter: V, out_backprop: V, *, strides: Sequence[int], rates: Sequence[int], padding: str
) -> int:
    each = 4 * itemsize(x) + DOUBLE + 2
    return _dilated(x, filter, strides, rates, padding) * each + size_of(x, filter)


def _dilated(
    x: V, filter: V, strides: Sequence[int], rates: Sequence[int], padding: str
) -> int:  # fmt: skip
    """Return the number of elements of the output of a dilation."""
    batch, *spatial, depth = shape_of(x)
    counts = []
    for size, window, stride, rate in zip(
        spatial, shape_of(filter), strides[1:], rates[1:], strict=False
    ):
        reach = 1 if padding == "SAME" else (window - 1) * rate + 1
        counts.append(max(-(-(size - reach + 1) // stride), 0))
    return batch * math.prod(counts) * depth


def _fractional_avg_grad(orig_input_tensor_shape: V, out_backprop: V) -> int:
    size = dense(numbers_in(orig_input_tensor_shape), max(itemsize(out_backprop), 4))
    return 3 * size + 4 * size_of(out_backprop)


def _fractional_avg_gradient(shape: V, out_backprop: V, rows: V, columns: V) -> int:
    return _fractional_avg_grad(shape, out_backprop) + 8 * size_of(rows, columns)


def _in_top_k(predictions: V, targets: V, k: V = None) -> int:
    return 2 * elements(predictions) + elements(targets) * 12 * DOUBLE


def _hits(true_classes: V, sampled_candidates: V) -> int:
    return elements(true_classes, sampled_candidates) * 12 * DOUBLE


def _greedy(inputs: V, sequence_length: V) -> int:
    time, batch, _ = shape_of(inputs)
    return time * batch * 20 * DOUBLE + batch * 40 * DOUBLE


def _cell(x: V, cs_prev: V, h_prev: V) -> int:
    return elements(cs_prev) * max(itemsize(x), 4) * 50


def _lstm_cell(x: V, cs_prev: V, h_prev: V, *weights: V) -> int:
    return _cell(x, cs_prev, h_prev) + 2 * size_of(x, cs_prev, h_prev, *weights)


MEMORY_NEEDS: dict[str, MemoryNeed] = {
    **CONVOLUTIONS,
    **POOLINGS,
    **dict.fromkeys(
        ("AllCandidateSampler", "LogUniformCandidateSampler", "UniformCandidateSampler"), _sampler
    ),
    **dict.fromkeys(
        ("LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler"),
        _unigram_sampler,
    ),
    "FixedUnigramCandidateSampler": _fixed_sampler,
    "ComputeAccidentalHits": _hits,
    "CTCBeamSearchDecoder": _beam_search,
    "CTCGreedyDecoder": _greedy,
    "CTCLoss": _ctc_loss,
    "BlockLSTM": _block_lstm,
    "BlockLSTMV2": _block_lstm,
    "LSTMBlockCell": _lstm_cell,
    "SoftmaxCrossEntropyWithLogits": _softmax_loss,
    "LRN": _lrn,
    "LRNGrad": _lrn,
    "DataFormatDimMap": _dim_map,
    "Dilation2D": _dilation,
    "Dilation2DBackpropFilter": _dilation_gradient,
    "Dilation2DBackpropInput": _dilation_gradient,
    "FractionalAvgPoolGrad": _fractional_avg_gradient,
    "InTopK": _in_top_k,
    "InTopKV2": _in_top_k,
}

INPUT_MULTIPLES: dict[str, int] = {
    **dict.fromkeys(
        (
            "BiasAdd", "BiasAddGrad", "BiasAddV1", "DataFormatVecPermute", "LeakyRelu", "Relu",
            "Relu6", "Relu6Grad", "ReluGrad",
        ),
        3,
    ),
    **dict.fromkeys(
        (
            "BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad",
            "BlockLSTMGrad", "BlockLSTMGradV2", "Elu", "EluGrad", "FractionalAvgPool",
            "FractionalMaxPool", "FractionalMaxPoolGrad", "FusedBatchNorm", "FusedBatchNormGrad",
            "FusedBatchNormGradV2", "FusedBatchNormGradV3", "FusedBatchNormV2",
            "FusedBatchNormV3", "GRUBlockCell", "GRUBlockCellGrad", "LSTMBlockCellGrad",
            "LeakyReluGrad", "LogSoftmax", "Selu", "SeluGrad", "Softmax", "Softplus",
            "SoftplusGrad", "Softsign", "SoftsignGrad", "SparseSoftmaxCrossEntropyWithLogits",
        ),
        12,
    ),
}  # fmt: skip

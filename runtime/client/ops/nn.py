"""Neural network functions: those functions of `tf.compat.v1.nn` that need one op or a few.

TF: tensorflow/python/ops/nn_ops.py, nn_impl.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from runtime.client.framework.argument_types import SizesLike, TensorLike
from runtime.client.framework.op_call import OpResult
from runtime.client.framework.operation import Operand, Tensor
from runtime.client.ops import math_ops, op_function
from runtime.client.ops.array_ops import concat, gather, reshape, zeros_like
from runtime.client.ops.construction import convert_to_tensor, identity
from runtime.client.ops.random_ops import random_uniform

# function name → op that has the same parameters
_OPS = {
    "elu": "Elu", "erf": "Erf", "in_top_k": "InTopK", "l2_loss": "L2Loss", "lrn": "LRN",
    "local_response_normalization": "LRN", "relu": "Relu", "relu6": "Relu6", "selu": "Selu",
    "sigmoid": "Sigmoid", "softplus": "Softplus", "softsign": "Softsign", "tanh": "Tanh",
}  # fmt: skip


# "SAME", "VALID", or the pair (elements before, elements after) for each dimension.
Padding: TypeAlias = str | Sequence[Sequence[int]]


def __getattr__(name: str) -> Callable[..., OpResult]:
    if name not in _OPS:
        raise AttributeError(f"nn has no {name!r}; `ops` has every op")
    return op_function(_OPS[name])


def bias_add(
    value: TensorLike, bias: TensorLike, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Add `bias` `[channels]` along the last axis, or axis 1 if `data_format` starts with "NC"."""
    layout = "NCHW" if data_format and data_format.startswith("NC") else "NHWC"
    return _one("BiasAdd", value, bias, data_format=layout, name=name or "BiasAdd")


def xw_plus_b(
    x: TensorLike, weights: TensorLike, biases: TensorLike, name: str = "xw_plus_b"
) -> Tensor:
    """Return matmul(x, weights) + biases."""
    return _one("BiasAdd", math_ops.matmul(x, weights), biases, name=name)


def softmax(
    logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """Return exp(logits) / sum(exp(logits)) along `axis` (default: the last)."""
    return _along_axis("Softmax", logits, dim if axis is None else axis, name)


def log_softmax(
    logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """Return log(softmax(logits)) along `axis` (default: the last)."""
    return _along_axis("LogSoftmax", logits, dim if axis is None else axis, name)


def _along_axis(op: str, logits: TensorLike, axis: int | None, name: str | None) -> Tensor:
    """Apply an op that works along the last axis to `axis`, by transposing there and back."""
    values = convert_to_tensor(logits, name="logits")
    rank = values.shape.rank
    if axis in (None, -1) or rank is None or axis == rank - 1:
        return _one(op, values, name=name)
    assert axis is not None
    order = [*range(rank)]
    order[axis], order[-1] = order[-1], order[axis]
    moved = _one(op, op_function("Transpose")(values, order))
    return _one("Transpose", moved, order, name=name or op)


def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """Return max(x, alpha × x) for each element x; `alpha` is below 1."""
    return _one("LeakyRelu", features, alpha, name=name)


def softmax_cross_entropy_with_logits_v2(
    labels: TensorLike,
    logits: TensorLike,
    axis: int | None = None,
    name: str | None = None,
    dim: int | None = None,
) -> Tensor:
    """Return the cross entropy `[…]` of `labels` and softmax(logits), both `[…, classes]`.

    Raises ValueError if `axis` is not the last.
    """
    axis = dim if axis is None else axis
    scores = convert_to_tensor(logits, name="logits")
    if axis not in (None, -1):
        raise ValueError(f"The classes are along the last axis here, got axis {axis}")
    with scores.graph.as_default(), scores.graph.name_scope(name or "softmax_cross_entropy") as s:
        rows = _rows(scores)
        flat_labels = reshape(math_ops.cast(labels, scores.dtype), rows)
        found = op_function("SoftmaxCrossEntropyWithLogits")(reshape(scores, rows), flat_labels)
        return _one("Reshape", found.loss, op_function("Shape")(scores)[:-1], name=s)


def _rows(scores: Tensor) -> Tensor:
    """Return the shape `[-1, classes]`, for a reshape to two dimensions."""
    return concat([[-1], op_function("Shape")(scores)[-1:]], 0)


def softmax_cross_entropy_with_logits(
    _sentinel: object = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    dim: int = -1,
    name: str | None = None,
) -> Tensor:
    """Do what `softmax_cross_entropy_with_logits_v2` does; `labels` get no gradient."""
    _check_named("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    constant_labels = op_function("StopGradient")(labels)
    return softmax_cross_entropy_with_logits_v2(constant_labels, logits, dim, name)


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: object = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the cross entropy `[…]` of classes `labels` `[…]` and `logits` `[…, classes]`."""
    _check_named("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    scores, right = convert_to_tensor(logits, name="logits"), convert_to_tensor(labels)
    op = op_function("SparseSoftmaxCrossEntropyWithLogits")
    if scores.shape.rank == 2:
        loss: Tensor = op(scores, right, name=name).loss
        return loss
    rows = _rows(scores)
    found = op(reshape(scores, rows), reshape(right, [-1]))
    return reshape(found.loss, op_function("Shape")(right), name=name)


def sigmoid_cross_entropy_with_logits(
    _sentinel: object = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the cross entropy of `labels` and sigmoid(logits), elementwise.

    It is max(x, 0) − x × z + log(1 + exp(−|x|)), where x is the logit and z the label.
    """
    _check_named("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    x = convert_to_tensor(logits, name="logits")
    with x.graph.as_default(), x.graph.name_scope(name or "logistic_loss") as scope:
        positive = op_function("Relu")(x) - x * labels
        return _one(
            "AddV2", positive, op_function("Log1p")(op_function("Exp")(-abs(x))), name=scope
        )


def _check_named(function: str, sentinel: object, *given: object) -> None:
    if sentinel is not None:
        raise ValueError(
            f"Only call `{function}` with named arguments (labels=..., logits=..., ...). "
            f"Received unnamed argument: {sentinel}"
        )
    if any(each is None for each in given):
        raise ValueError("Both `labels` and `logits` must be provided.")


def conv2d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: int | Sequence[int] | None = None,
    padding: Padding | None = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: int | Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
    filters: TensorLike | None = None,
) -> Tensor:
    """Convolve images `[batch, height, width, in]` with filters `[height, width, in, out]`.

    If `data_format` is "NCHW", the images are `[batch, in, height, width]`.
    """
    del use_cudnn_on_gpu
    return _one(
        "Conv2D",
        input,
        filters if filter is None else filter,
        strides=_of_image(strides, data_format),
        data_format=data_format,
        dilations=_of_image(dilations, data_format),
        name=name,
        **_padding(padding),
    )


def depthwise_conv2d_native(
    input: TensorLike,
    filter: TensorLike,
    strides: Sequence[int],
    padding: Padding,
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """Convolve each channel with its own filters, `[height, width, in, multiplier]`."""
    attributes = {"strides": strides, "data_format": data_format, "dilations": list(dilations)}
    op = "DepthwiseConv2dNative"
    return _one(op, input, filter, **attributes, **_padding(padding), name=name)


def max_pool(
    value: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Padding,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """Return the largest value of each window of size `ksize`, per channel."""
    return _pool(
        "MaxPool", input if value is None else value, ksize, strides, padding, data_format, name
    )


def avg_pool(
    value: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Padding,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """Return the mean of each window of size `ksize`, per channel."""
    return _pool(
        "AvgPool", input if value is None else value, ksize, strides, padding, data_format, name
    )


def _pool(
    op: str,
    value: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Padding,
    data_format: str,
    name: str | None,
) -> Tensor:
    sizes = {"ksize": _of_image(ksize, data_format), "strides": _of_image(strides, data_format)}
    attributes = {"padding": padding, "data_format": data_format}
    return _one(op, value, **sizes, **attributes, name=name or op)


def _of_image(sizes: int | Sequence[int] | None, data_format: str) -> list[int]:
    """Return one number per image dimension, given four, (height, width), or one for both."""
    numbers = list(sizes) if isinstance(sizes, Sequence) else [1 if sizes is None else sizes]
    if len(numbers) == 4:
        return numbers
    height, width = numbers * 2 if len(numbers) == 1 else numbers
    return [1, 1, height, width] if data_format == "NCHW" else [1, height, width, 1]


def _padding(padding: Padding | None) -> dict[str, object]:
    """Convert "SAME", "VALID" or explicit (before, after) pairs to the padding attributes."""
    if isinstance(padding, str):
        return {"padding": padding}
    if padding is None:
        raise TypeError("Argument `padding` is required")
    return {"padding": "EXPLICIT", "explicit_paddings": [size for pair in padding for size in pair]}


def dropout(
    x: TensorLike,
    keep_prob: Operand | None = None,
    noise_shape: SizesLike | None = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Operand | None = None,
) -> Tensor:
    """Set each value to zero with probability `rate`, and scale the others by 1 / (1 − rate).

    `keep_prob` is 1 − rate. Raises ValueError if neither is given or the rate is not in [0, 1).
    """
    values = convert_to_tensor(x, name="x")
    if keep_prob is None and rate is None:
        raise ValueError(
            "`rate` must be a scalar tensor or a float in the range [0, 1). Received: None"
        )
    if isinstance(rate, int | float) and not 0 <= rate < 1:
        raise ValueError(
            f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}"
        )
    with values.graph.as_default(), values.graph.name_scope(name or "dropout") as scope:
        dropped: Operand
        if rate is None:
            assert keep_prob is not None  # checked above
            dropped = 1 - keep_prob
        else:
            dropped = rate
        if isinstance(dropped, int | float) and dropped == 0:
            return values
        probability = convert_to_tensor(dropped, values.dtype, "rate")
        shape = op_function("Shape")(values) if noise_shape is None else noise_shape
        kept = random_uniform(shape, seed=seed, dtype=values.dtype) >= probability
        return _one("SelectV2", kept, values / (1 - probability), zeros_like(values), name=scope)


def embedding_lookup(
    params: TensorLike,
    ids: TensorLike,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """Return the rows `ids` of `params`.

    Raises ValueError if `params` is several tables or `max_norm` is given.
    """
    del partition_strategy, validate_indices
    tables = params if isinstance(params, list | tuple) else [params]
    if len(tables) != 1 or max_norm is not None:
        raise ValueError("embedding_lookup takes one table here, and no max_norm")
    return identity(gather(tables[0], ids), name=name or "embedding_lookup")


def moments(
    x: TensorLike,
    axes: TensorLike,
    shift: TensorLike | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (mean, variance) of `x` along `axes`."""
    del shift  # has no effect in TensorFlow either
    values = convert_to_tensor(x, name="x")
    keep = bool(keep_dims if keepdims is None else keepdims)
    with values.graph.as_default(), values.graph.name_scope(name or "moments"):
        mean = math_ops.reduce_mean(values, axes, True, name="mean")
        squares = op_function("SquaredDifference")(values, op_function("StopGradient")(mean))
        variance = math_ops.reduce_mean(squares, axes, True, name="variance")
        if keep:
            return mean, variance
        axes = list(axes) if isinstance(axes, list | tuple) else [axes]
        return _one("Squeeze", mean, axes), _one("Squeeze", variance, axes)


def batch_normalization(
    x: TensorLike,
    mean: Operand,
    variance: Operand,
    offset: Operand | None,
    scale: Operand | None,
    variance_epsilon: float,
    name: str | None = None,
) -> Tensor:
    """Return (x − mean) / √(variance + ε) × scale + offset; `scale` and `offset` may be None."""
    values = convert_to_tensor(x, name="x")
    with values.graph.as_default(), values.graph.name_scope(name or "batchnorm") as scope:
        factor = op_function("Rsqrt")(variance + variance_epsilon)
        factor = factor if scale is None else factor * scale
        shift = -mean * factor if offset is None else offset - mean * factor
        return _one("AddV2", values * factor, shift, name=scope)


def top_k(
    input: TensorLike, k: TensorLike = 1, sorted: bool = True, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the values `[…, k]` and indices `[…, k]` of the k largest elements of each row."""
    found: tuple[Tensor, Tensor] = op_function("TopKV2")(input, k, sorted, name=name)
    return found


def l2_normalize(
    x: TensorLike,
    axis: TensorLike | None = None,
    epsilon: float = 1e-12,
    name: str | None = None,
    dim: int | None = None,
) -> Tensor:
    """Return x / √max(sum(x²), epsilon), where the sum is along `axis`."""
    values = convert_to_tensor(x, name="x")
    axis = dim if axis is None else axis
    with values.graph.as_default(), values.graph.name_scope(name or "l2_normalize") as scope:
        total = math_ops.reduce_sum(op_function("Square")(values), axis, True)
        length = op_function("Rsqrt")(op_function("Maximum")(total, epsilon))
        return _one("Mul", values, length, name=scope)


def _one(op: str, *arguments: TensorLike, **attributes: object) -> Tensor:
    result = op_function(op)(*arguments, **attributes)
    assert isinstance(result, Tensor)
    return result

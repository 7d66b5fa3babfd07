"""Debug ops: identities, and statistics of tensors such as the number of NaN elements.

Nothing is sent to debug URLs. Tensors can be observed through fetches and traces instead.

TF: tensorflow/core/kernels/debug_ops.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import UnimplementedError
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import POD_TYPES, REAL_NUMBER_TYPES
from runtime.kernels.array.identity import identity


def debug_identity(input: np.ndarray, *, gated_grpc: bool) -> np.ndarray:
    """DebugIdentity: return `input`, or an empty vector if `gated_grpc` is true.

    In TensorFlow a gated op sends its value only to an attached gRPC debugger; here there is none.
    """
    return np.empty(0, np.asarray(input).dtype) if gated_grpc else input


def debug_nan_count(input: np.ndarray, *, gated_grpc: bool) -> np.ndarray:
    """DebugNanCount: return the number of NaN elements, `[1]` int64.

    Returns an empty vector if `gated_grpc` is true.
    """
    if gated_grpc:
        return np.empty(0, np.int64)
    return np.array([np.count_nonzero(input != input)], np.int64)


def debug_numeric_summary(
    input: np.ndarray, *, lower_bound: float, upper_bound: float, gated_grpc: bool
) -> np.ndarray:
    """DebugNumericSummary: return statistics of `input`, `[14 + rank]` float64.

    The entries are: 1; the number of elements; the counts of NaN elements, of elements ≤
    `lower_bound` or −∞, of negative, zero and positive elements within the bounds, and of elements
    ≥ `upper_bound` or ∞; minimum, maximum, mean and variance of the finite elements; data type;
    rank; the size of each dimension. Returns an empty vector if `gated_grpc` is true.
    """
    if gated_grpc:
        return np.empty(0, np.float64)
    array = np.asarray(input)
    values = array.astype(np.float64).ravel()
    is_nan = np.isnan(values)
    is_finite = np.isfinite(values)
    # An infinite bound, whatever its sign, means that there is no bound.
    below = is_finite & (values <= lower_bound) & (not np.isinf(lower_bound))
    above = is_finite & (values >= upper_bound) & (not np.isinf(upper_bound)) & ~below
    inside = is_finite & ~(below | above)
    below |= values == -np.inf
    above |= values == np.inf
    finite = values[is_finite]
    counts = (
        1.0, values.size, is_nan.sum(), below.sum(), (inside & (values < 0)).sum(),
        (inside & (values == 0)).sum(), (inside & (values > 0)).sum(), above.sum(),
    )  # fmt: skip
    if finite.size:
        extremes = finite.min(), finite.max(), finite.mean(), finite.var()
    else:
        extremes = np.inf, -np.inf, np.nan, np.nan
    kind = from_numpy(array.dtype).value
    return np.array([*counts, *extremes, kind, array.ndim, *array.shape], np.float64)


def _non_finite_counts(values: np.ndarray) -> tuple[float, ...]:
    """Return the numbers of elements that are −∞, ∞ and NaN."""
    return (values == -np.inf).sum(), (values == np.inf).sum(), np.isnan(values).sum()


def _curt_health(values: np.ndarray, array: np.ndarray) -> tuple[float, ...]:
    return (any(_non_finite_counts(values)),)


def _concise_health(values: np.ndarray, array: np.ndarray) -> tuple[float, ...]:
    return (values.size, *_non_finite_counts(values))


def _full_health(values: np.ndarray, array: np.ndarray) -> tuple[float, ...]:
    finite = values[np.isfinite(values)]
    signs = (finite < 0).sum(), (finite == 0).sum(), (finite > 0).sum()
    no_device = -1
    return (no_device, _type(array), array.ndim, values.size, *_non_finite_counts(values), *signs)


def _shape(values: np.ndarray, array: np.ndarray) -> tuple[float, ...]:
    sizes = (*array.shape[-_REPORTED_SIZES:], *[0] * _REPORTED_SIZES)[:_REPORTED_SIZES]
    return (_type(array), array.ndim, values.size, *sizes)


def _type(array: np.ndarray) -> int:
    return from_numpy(array.dtype).value


_REPORTED_SIZES = 6  # number of last dimensions whose sizes mode 5 reports
# TF: debug_event.proto (TensorDebugMode)
_MODES = {2: _curt_health, 3: _concise_health, 4: _full_health, 5: _shape}
_REDUCE_INF_NAN = 8


def debug_numeric_summary_v2(
    input: np.ndarray, *, output_dtype: DataType, tensor_debug_mode: int, tensor_id: int
) -> np.ndarray:
    """DebugNumericSummaryV2: return the statistics that `tensor_debug_mode` selects.

    Raises UnimplementedError if the mode is not implemented.
    """
    array = np.asarray(input)
    values = array.astype(np.float64).ravel()
    if tensor_debug_mode == _REDUCE_INF_NAN:
        found = zip(_non_finite_counts(values), (-np.inf, np.inf, np.nan), strict=True)
        return np.array([each if count else 0 for count, each in found], output_dtype.numpy)
    if tensor_debug_mode not in _MODES:
        raise UnimplementedError(f"Unimplemented tensor debug mode: {tensor_debug_mode}")
    return np.array([tensor_id, *_MODES[tensor_debug_mode](values, array)], output_dtype.numpy)


KERNELS = (
    KernelDef("DebugGradientIdentity", identity),
    KernelDef("DebugGradientRefIdentity", identity),
    KernelDef("DebugIdentity", debug_identity),
    KernelDef("DebugIdentityV2", identity),
    KernelDef("DebugIdentityV3", debug_identity),
    KernelDef("DebugNanCount", debug_nan_count, {"T": REAL_NUMBER_TYPES}),
    KernelDef("DebugNumericSummary", debug_numeric_summary, {"T": POD_TYPES}),
    KernelDef("DebugNumericSummaryV2", debug_numeric_summary_v2, {"T": POD_TYPES}),
)

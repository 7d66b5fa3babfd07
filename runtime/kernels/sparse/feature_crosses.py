"""Kernels for crosses of categorical features.

A cross consists of combinations: for each row, every way to take one value from each column.

TF: tensorflow/core/kernels/sparse_cross_op.cc
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.farmhash import fingerprint64
from runtime.foundation.keyed_hashes import siphash64
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import scalar_string
from runtime.framework.tensor_text import debug_text

SEPARATOR = b"_X_"
INT64_MAX = np.uint64((1 << 63) - 1)
MIX = np.uint64(0xC6A4A7935BD1E995)  # the multiplier of FingerprintCat64. TF: FingerprintCat64

Sparse = tuple[np.ndarray, np.ndarray, np.ndarray]
Words = np.ndarray  # uint64 [n]


@dataclasses.dataclass(frozen=True)
class Column:
    """One feature of all rows.

    The values of row i are `lengths[i]` elements of `values`, from index `starts[i]` on.
    """

    values: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    dense: bool = False


def sparse_column(indices: np.ndarray, values: np.ndarray, batch: int) -> Column:
    """Return the column of a sparse matrix.

    An element is invalid if its row is out of bounds or less than the previous row. The first
    invalid element and all elements after it are ignored.
    """
    of_rows = indices[:, 0]
    odd = (of_rows < 0) | (of_rows >= batch)
    odd[1:] |= of_rows[1:] < of_rows[:-1]
    of_rows = of_rows[: odd.argmax()] if odd.any() else of_rows
    starts = np.searchsorted(of_rows, np.arange(batch), side="left")
    ends = np.searchsorted(of_rows, np.arange(batch), side="right")
    return Column(values, starts, ends - starts)


def dense_column(values: np.ndarray) -> Column:
    """Return the column of a dense matrix `[batch, width]`."""
    batch, width = values.shape
    return Column(values.ravel(), np.arange(batch) * width, np.full(batch, width), dense=True)


def combinations(columns: Sequence[Column], batch: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return (counts, places) of the combinations.

    `counts` is int64 `[batch]`, the number of combinations of each row. `places` has for each
    column an int64 vector `[combinations]` of indices into the column's `values`.
    """
    counts = np.full(batch, 1 if columns else 0, np.float64)
    for column in columns:
        counts *= column.lengths
    check_allocation((int(min(counts.sum(), 1e18)), 2 + len(columns)), np.int64)
    totals = counts.astype(np.int64)
    rows = np.repeat(np.arange(batch), totals)
    rank = np.arange(rows.size) - np.repeat(np.cumsum(totals) - totals, totals)
    places = []
    for column in reversed(columns):  # the value of the last column changes fastest
        lengths = column.lengths[rows]
        places.append(column.starts[rows] + rank % lengths)
        rank = rank // lengths
    return totals, places[::-1]


def joined(columns: Sequence[Column], places: list[np.ndarray], separator: bytes) -> np.ndarray:
    """Return the values of each combination as one string, joined with `separator`."""
    result: np.ndarray | None = None
    for column, place in zip(columns, places, strict=True):
        part = _texts(column.values)[place]
        result = part if result is None else result + separator + part
    return np.empty(0, object) if result is None else result


def _texts(values: np.ndarray) -> np.ndarray:
    if values.dtype == object:
        return values
    texts = np.empty(values.size, object)
    texts[:] = [b"%d" % value for value in values.tolist()]
    return texts


def _shift_mix(words: Words) -> Words:
    return np.asarray(words ^ (words >> np.uint64(47)))


def fingerprint_cat64(first: Words, second: Words) -> Words:
    """Return the fingerprint of two fingerprints, as if they were concatenated."""
    result = (first ^ MIX) ^ (_shift_mix(second * MIX) * MIX)
    result = _shift_mix(result * MIX) * MIX
    return _shift_mix(result)


def plain_words(column: Column) -> Words:
    """Return the fingerprints of the column's values; an integer is its own fingerprint."""
    values = column.values
    return fingerprint64(values.tolist()) if values.dtype == object else values.astype(np.uint64)


def _salted_words(column: Column, strong_hash: bool, salt: tuple[int, int]) -> Words:
    values = column.values
    if values.dtype == object:
        items = values.tolist()
    elif column.dense and not strong_hash:
        return plain_words(column)
    else:  # TensorFlow hashes only the low four bytes of an integer.
        items = [value.tobytes() for value in values.astype("<i4")]
    return siphash64(items, salt) if strong_hash else fingerprint64(items)


def hashed(
    words: Sequence[Words], places: list[np.ndarray], start: int | None, num_buckets: int
) -> np.ndarray:
    """Return the hash of each combination: int64 in [0, num_buckets).

    `words` are the fingerprints of each column. The hash of a combination begins with `start`, or
    with the first column if `start` is None; the fingerprints of the other columns follow. If
    `num_buckets` is 0, the limit is 2**63 - 1.
    """
    size = places[0].size if places else 0
    total = None if start is None else np.full(size, start & (1 << 64) - 1, np.uint64)
    for column, place in zip(words, places, strict=True):
        part = column[place]
        total = part if total is None else fingerprint_cat64(total, part)
    if total is None:
        return np.empty(0, np.int64)
    divisor = np.uint64(num_buckets) if num_buckets > 0 else INT64_MAX
    return (total % divisor).astype(np.int64)


def split_inputs(
    inputs: Sequence[np.ndarray], count: int, dense: int
) -> tuple[list[Sparse], list[np.ndarray]]:
    """Split op inputs; return ((indices, values, shape) of each sparse input, dense inputs)."""
    sparse = [
        (inputs[each], inputs[count + each], inputs[2 * count + each]) for each in range(count)
    ]
    return sparse, list(inputs[3 * count : 3 * count + dense])


def _check_ranks(what: str, ndim: int, shapes: Sequence[tuple[int, ...]]) -> None:
    noun = {1: "vector", 2: "matrix"}[ndim]
    for place, shape in enumerate(shapes):
        if len(shape) != ndim:
            raise InvalidArgumentError(
                f"{what} should be a {noun} but received shape {shape_text(shape)} "
                f"at position {place}"
            )


def _check_types(what: str, internal_type: DataType | None, tensors: Sequence[np.ndarray]) -> None:
    """Raise InvalidArgumentError if `internal_type` is string but a tensor is int64."""
    if internal_type == DataType.STRING and any(each.dtype == np.int64 for each in tensors):
        raise InvalidArgumentError(
            f"{what} should be of internal type {DataType.STRING:d} but received {DataType.INT64:d}"
        )


def _check_sparse(sparse: Sequence[Sparse]) -> None:
    for place, (indices, values, shape) in enumerate(sparse):
        where = f"at position {place}"
        if indices.shape[1] != 2:
            raise InvalidArgumentError(
                f"Expected D2 of index to be 2 got {indices.shape[1]} {where}"
            )
        if len(values) != len(indices):
            raise InvalidArgumentError(
                f"Expected size of values to be {len(indices)} got {len(values)} {where}"
            )
        if shape.size != 2:
            raise InvalidArgumentError(
                f"shape should imply a 2D tensor, but got {shape_text(shape.shape)} {where}"
            )


def _check_crossed(
    sparse: Sequence[Sparse], dense: Sequence[np.ndarray], internal_type: DataType | None
) -> int:
    """Check all columns and return the number of rows, which must be the same for each of them."""
    indices, values, shapes = zip(*sparse, strict=True) if sparse else ((), (), ())
    _check_ranks("Input indices", 2, [np.shape(each) for each in indices])
    _check_types("Input values", internal_type, values)
    _check_ranks("Input values", 1, [np.shape(each) for each in values])
    _check_ranks("Input shapes", 1, [np.shape(each) for each in shapes])
    _check_sparse(sparse)
    _check_types("Dense inputs", internal_type, dense)
    _check_ranks("Dense inputs", 2, [np.shape(each) for each in dense])
    batches = [
        *((int(shape[0]), f"position {place}") for place, shape in enumerate(shapes)),
        *((len(values), f"dense tensor {place}") for place, values in enumerate(dense)),
    ]
    for size, where in batches:
        if size != batches[0][0]:
            raise InvalidArgumentError(f"Expected batch size {batches[0][0]} got {size} at {where}")
    batch = batches[0][0] if batches else 0
    check_allocation((batch, 2), np.int64)
    return batch


def _columns(
    sparse: Sequence[Sparse], dense: Sequence[np.ndarray], internal_type: DataType | None = None
) -> tuple[list[Column], np.ndarray, list[np.ndarray]]:
    batch = _check_crossed(sparse, dense, internal_type)
    columns = [
        *(sparse_column(indices, values, batch) for indices, values, _ in sparse),
        *map(dense_column, dense),
    ]
    return columns, *combinations(columns, batch)


def _as_sparse(totals: np.ndarray, values: np.ndarray) -> Sparse:
    """Return the combinations, which are ordered by row, as a sparse matrix.

    The matrix is `[batch, most combinations of a row]`.
    """
    rows = np.repeat(np.arange(totals.size), totals)
    rank = np.arange(rows.size) - np.repeat(np.cumsum(totals) - totals, totals)
    shape = np.array([totals.size, totals.max(initial=0)], np.int64)
    return np.stack([rows, rank], axis=1).astype(np.int64), values, shape


def sparse_cross(
    *inputs: np.ndarray,
    N: int,  # noqa: N803 # the attribute's name
    dense_types: tuple[DataType, ...],
    num_buckets: int,
    hash_key: int,
    out_type: DataType,
    internal_type: DataType,
) -> Sparse:
    """SparseCross: return the combinations of each row.

    A combination is a string, joined with `_X_`, or a hash that begins with `hash_key`.
    """
    sparse, dense = split_inputs(inputs, N, len(dense_types))
    columns, totals, places = _columns(sparse, dense, internal_type)
    if out_type == DataType.INT64:
        words = [plain_words(column) for column in columns]
        return _as_sparse(totals, hashed(words, places, hash_key, num_buckets))
    return _as_sparse(totals, joined(columns, places, SEPARATOR))


def sparse_cross_v2(
    *inputs: np.ndarray,
    N: int,  # noqa: N803
    dense_types: tuple[DataType, ...],
) -> Sparse:
    """SparseCrossV2: return the combinations of each row as strings.

    The values of a combination are joined with the last input, the separator.
    """
    *tensors, separator = inputs
    sparse, dense = split_inputs(tensors, N, len(dense_types))
    columns, totals, places = _columns(sparse, dense)
    if np.ndim(separator):
        raise InvalidArgumentError(
            "Input separator should be a scalar. Received: "
            f"{debug_text(separator, DataType.STRING)}"
        )
    return _as_sparse(totals, joined(columns, places, scalar_string(separator)))


def sparse_cross_hashed(
    *inputs: np.ndarray,
    N: int,  # noqa: N803
    dense_types: tuple[DataType, ...],
) -> Sparse:
    """SparseCrossHashed: return the hashes of the combinations of each row.

    If `strong_hash` is true, the salt is the key of the hash.
    """
    *tensors, num_buckets, strong_hash, salt = inputs
    if np.size(num_buckets) != 1 or np.size(strong_hash) != 1:
        raise InvalidArgumentError("num_buckets and strong_hash should be scalars")
    if np.size(salt) != 2:
        raise InvalidArgumentError(
            f'Input "salt" must have length 2 but has length {np.size(salt)}'
        )
    sparse, dense = split_inputs(tensors, N, len(dense_types))
    columns, totals, places = _columns(sparse, dense)
    first, second = map(int, np.ravel(salt))
    strong = bool(np.all(strong_hash))
    words = [_salted_words(column, strong, (first, second)) for column in columns]
    return _as_sparse(totals, hashed(words, places, None, int(np.max(num_buckets))))


KERNELS = (
    KernelDef("SparseCross", sparse_cross),
    KernelDef("SparseCrossHashed", sparse_cross_hashed),
    KernelDef("SparseCrossV2", sparse_cross_v2),
)

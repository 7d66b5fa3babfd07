"""Kernels for a warm start from a checkpoint whose vocabulary is different.

They reorder the rows and columns of the checkpoint's matrices to match the new vocabulary.

TF: tensorflow/core/kernels/generate_vocab_remapping_op.cc, load_and_remap_matrix_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.foundation.running_task import check_task
from runtime.framework.allocation import check_allocation
from runtime.framework.attr_value import text
from runtime.framework.dtypes import DataType
from runtime.framework.io.tensor_bundle_reader import TensorBundleReader
from runtime.framework.io.tensor_slice import TensorSlice
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resources.lookup_table import HashTable
from runtime.framework.shapes import shape_text
from runtime.kernels.state.lookup_table_files import LINE_NUMBER, WHOLE_LINE, read_text_file

_MISSING = -1  # in a remapping: the new entry does not exist in the old vocabulary
_NUMBER_TO_LINE = ((LINE_NUMBER, DataType.INT64), (WHOLE_LINE, DataType.STRING))
_LINE_TO_NUMBER = ((WHOLE_LINE, DataType.STRING), (LINE_NUMBER, DataType.INT64))


def generate_vocab_remapping(
    context: OpKernelContext,
    new_vocab_file: np.ndarray,
    old_vocab_file: np.ndarray,
    *,
    new_vocab_offset: int,
    num_new_vocab: int,
    old_vocab_size: int,
) -> tuple[np.ndarray, np.int32]:
    """GenerateVocabRemapping: find each entry of a new vocabulary in an old one.

    Return (old line number of each new entry, or −1 if it is not in the old vocabulary; number of
    entries that are in the old one). The new entries are `num_new_vocab` lines from line
    `new_vocab_offset` on. Only the first `old_vocab_size` lines of the old vocabulary are used; −1
    means all lines.
    """
    new_path = _path(context, new_vocab_file, "new")
    old_path = _path(context, old_vocab_file, "old")
    _, words = read_text_file(new_path, _NUMBER_TO_LINE, -1, b"\t", 0)
    end = new_vocab_offset + num_new_vocab
    if end > len(words):
        raise InvalidArgumentError(
            "lookup table size must be larger than last new vocab entry's line"
        )
    table = HashTable(DataType.STRING, DataType.INT64)
    table.initialize(*read_text_file(old_path, _LINE_TO_NUMBER, old_vocab_size, b"\t", 0))
    missing = np.array(_MISSING, np.int64)
    remapping = table.find(words[new_vocab_offset:end], missing)
    return remapping, np.int32(np.count_nonzero(remapping != _MISSING))


def _path(context: OpKernelContext, value: np.ndarray, which: str) -> str:
    if np.ndim(value) != 0:
        raise InvalidArgumentError(
            f"{which}_vocab_file should be a single string, but got {shape_text(np.shape(value))}"
        )
    path = text(value.item())
    if not path:
        raise InvalidArgumentError(f"{which} vocab filename cannot be empty.")
    context.step.files.check_read(path)
    return path


def load_and_remap_matrix(
    context: OpKernelContext,
    ckpt_path: np.ndarray,
    old_tensor_name: np.ndarray,
    row_remapping: np.ndarray,
    col_remapping: np.ndarray,
    initializing_values: np.ndarray,
    *,
    num_rows: int,
    num_cols: int,
) -> np.ndarray:
    """LoadAndRemapMatrix: read a matrix of a checkpoint and reorder its rows and columns.

    The result is [num_rows, num_cols]. Row i is the old row `row_remapping[i]`, column j is the old
    column `col_remapping[j]`. If one of these two numbers is negative, the element is the next
    unused element of `initializing_values`. If `col_remapping` is empty, the columns keep their
    order.
    """
    _check_vector("row_remapping", row_remapping)
    if len(row_remapping) != num_rows:
        raise InvalidArgumentError(
            f"Size of row_remapping is {len(row_remapping)} instead of being equal to "
            f"num_rows={num_rows}"
        )
    _check_vector("col_remapping", col_remapping)
    has_columns = len(col_remapping) > 0
    if has_columns and len(col_remapping) != num_cols:
        raise InvalidArgumentError(
            f"Provided col_remapping, but its size is {len(col_remapping)} instead of being equal "
            f"to num_cols={num_cols}"
        )
    check_allocation((num_rows, num_cols), np.float32)
    columns = col_remapping if has_columns else np.arange(num_cols)
    name = text(_single(old_tensor_name, "old_tensor_name"))
    with TensorBundleReader(text(_single(ckpt_path, "ckpt_path")), context.step.files) as reader:
        width = _check_tensor(reader, name, num_cols, has_columns)
        _check_unique(row_remapping)
        _check_unique(columns)
        if np.max(columns, initial=_MISSING) >= width:
            raise InvalidArgumentError(
                f"col_remapping has an entry {np.max(columns)}, but tensor {name} has {width} "
                "columns"
            )
        return _remap(reader, name, row_remapping, columns, initializing_values.ravel())


def _remap(
    reader: TensorBundleReader,
    name: str,
    rows: np.ndarray,
    columns: np.ndarray,
    initial: np.ndarray,
) -> np.ndarray:
    known_rows, known_columns = rows >= 0, columns >= 0
    missing = ~(known_rows[:, None] & known_columns)
    needed = np.count_nonzero(missing)
    if needed > len(initial):
        raise InvalidArgumentError(
            f"initializing_values contained {len(initial)} elements, but more missing values "
            "remain."
        )
    result = np.empty(missing.shape, np.float32)
    if known_rows.any():
        wanted = rows[known_rows]
        first, last = int(wanted.min()), int(wanted.max())
        stored = reader.read_slice(name, TensorSlice(((first, last - first + 1), (0, -1))))
        result[np.ix_(known_rows, known_columns)] = stored[
            np.ix_(wanted - first, columns[known_columns])
        ]
    if needed < len(initial):
        raise InvalidArgumentError(
            f"initializing_values contained {len(initial)} elements, but only {needed} elements "
            "were used to fill in missing values."
        )
    result[missing] = initial
    return result


def _check_tensor(reader: TensorBundleReader, name: str, num_cols: int, has_columns: bool) -> int:
    """Return the column count of the stored matrix.

    Raises InvalidArgumentError if the type or shape of the stored tensor does not fit.
    """
    entry = reader.entry(name)
    if entry.dtype is not DataType.FLOAT:
        raise InvalidArgumentError(
            f"Tensor {name} has invalid type {entry.dtype.tf_name} instead of expected type float"
        )
    if len(entry.shape) != 2:
        raise InvalidArgumentError(
            f"Tensor {name} has shape {shape_text(entry.shape)} of invalid rank "
            f"{len(entry.shape)} instead of expected shape of rank 2."
        )
    if not has_columns and entry.shape[1] != num_cols:
        raise InvalidArgumentError(
            f"Tensor {name} has shape {shape_text(entry.shape)}, where the size of its 2nd "
            f"dimension is {entry.shape[1]} instead of being equal to num_cols={num_cols}"
        )
    return entry.shape[1]


def _check_unique(remapping: np.ndarray) -> None:
    """Raise UnimplementedError if two new entries map to the same old entry."""
    first_of: dict[int, int] = {}
    for new, old in enumerate(remapping.tolist()):
        check_task()
        if old >= 0 and first_of.setdefault(old, new) != new:
            raise UnimplementedError(
                f"Old ID {old} is mapped to both new ID {first_of[old]} and {new}, which is not "
                "supported."
            )


def _check_vector(name: str, value: np.ndarray) -> None:
    if np.ndim(value) != 1:
        raise InvalidArgumentError(
            f"The `{name}` tensor must be 1-D, got a tensor of shape {shape_text(np.shape(value))}"
        )


def _single(value: np.ndarray, name: str) -> bytes:
    if np.size(value) != 1:
        raise InvalidArgumentError(
            f"The `{name}` tensor must have exactly one element, got tensor of shape "
            f"{shape_text(np.shape(value))}"
        )
    found: bytes = value.item()
    return found


KERNELS = (
    KernelDef("GenerateVocabRemapping", generate_vocab_remapping),
    KernelDef("LoadAndRemapMatrix", load_and_remap_matrix, expensive=True),
)

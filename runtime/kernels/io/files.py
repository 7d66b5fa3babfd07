"""Kernels that read, write and list files; the file gate of the step checks every path first.

TF: tensorflow/core/kernels/whole_file_read_ops.cc, matching_files_op.cc
"""

from __future__ import annotations

import errno
import fnmatch
import math
import os
import pathlib
from collections.abc import Iterator

import numpy as np

from runtime.foundation.errors import (
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)
from runtime.framework.allocation import check_allocation, tensor_limit
from runtime.framework.dtypes import DataType
from runtime.framework.io import new_files
from runtime.framework.io.bounded_reads import read_at_most
from runtime.framework.io.file_errors import file_error
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import PartialShape, is_fully_defined
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings, items_of, string_tensor

_WILDCARDS = frozenset("*?[")


def file_name(value: np.ndarray, what: str) -> str:
    """Return the path in a scalar string tensor.

    Raises InvalidArgumentError if `value` is not a scalar.
    """
    array = as_strings(value)
    if array.ndim:
        raise InvalidArgumentError(
            f"{what} tensor must be scalar, but had shape: {shape_text(array.shape)}"
        )
    return os.fsdecode(array.item())


def read_whole_file(path: str) -> bytes:
    """Return the contents of a file.

    Raises ResourceExhaustedError if the file is larger than a tensor may be.
    """
    try:
        with pathlib.Path(path).open("rb") as file:
            contents = read_at_most(file, tensor_limit() + 1)
    except OSError as error:
        raise file_error(error, path) from None
    except ValueError as error:  # open raises it if the path contains a NUL byte
        raise InvalidArgumentError(f"{path!r}; {error}") from None
    if len(contents) > tensor_limit():
        raise ResourceExhaustedError(f"{path}; larger than the {tensor_limit()} bytes of a tensor")
    return contents


def read_file(context: OpKernelContext, filename: np.ndarray) -> np.ndarray:
    """ReadFile: return the contents of a file as a scalar string."""
    path = file_name(filename, "Input filename")
    context.step.files.check_read(path)
    return string_tensor([read_whole_file(path)], ())


def write_file(context: OpKernelContext, filename: np.ndarray, contents: np.ndarray) -> None:
    """WriteFile: write a file, whole or not at all; create its folder if it does not exist."""
    path = file_name(filename, "Input filename")
    text = as_strings(contents)
    if text.ndim:
        raise InvalidArgumentError(
            f"Contents tensor must be scalar, but had shape: {shape_text(text.shape)}"
        )
    context.step.files.check_write(path)
    try:
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        new_files.write_file(path, text.item())
    except OSError as error:
        raise file_error(error, path) from None
    except ValueError as error:
        raise InvalidArgumentError(f"{path!r}; {error}") from None


def matching_files(context: OpKernelContext, pattern: np.ndarray) -> np.ndarray:
    """MatchingFiles: return the sorted paths that match any pattern; `*` does not match `/`."""
    if as_strings(pattern).ndim > 1:
        raise InvalidArgumentError(
            "Input patterns tensor must be scalar or vector, "
            f"but had shape: {shape_text(as_strings(pattern).shape)}"
        )
    found: list[str] = []
    for item in items_of(pattern):
        parts = pathlib.PurePath(os.fsdecode(item)).parts
        fixed = next((i for i, part in enumerate(parts) if _WILDCARDS & set(part)), len(parts))
        root = str(pathlib.Path(*parts[:fixed])) if fixed else "."
        context.step.files.check_read(root)
        found += _matches(root if fixed else "", parts[fixed:])
    return string_tensor(sorted(os.fsencode(path) for path in found))


def _matches(folder: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths below `folder` whose remaining components match the patterns `parts`."""
    if not parts:
        if os.path.lexists(folder):
            yield folder
        return
    try:
        names = sorted(os.listdir(folder or "."))
    except (OSError, ValueError):
        return  # there is no such folder, so nothing matches
    for name in names:
        if fnmatch.fnmatchcase(name, parts[0]):
            yield from _matches(os.path.join(folder, name), parts[1:])


def immutable_const(
    context: OpKernelContext, *, dtype: DataType, shape: PartialShape, memory_region_name: str
) -> np.ndarray:
    """ImmutableConst: return the first bytes of a file as a tensor.

    The file is read, not mapped: a mapped file that shrinks would end the process. Raises
    InternalError if the file has fewer bytes than the tensor, UnimplementedError for strings.
    """
    if dtype in (DataType.RESOURCE, DataType.VARIANT):
        raise InvalidArgumentError("Resource and variant dtypes are invalid for this op.")
    if not is_fully_defined(shape):
        raise InvalidArgumentError(f"Shape {shape_text(shape)} is not fully defined")
    context.step.files.check_read(memory_region_name)
    strings = dtype is DataType.STRING
    count = 0 if strings else math.prod(shape) * dtype.numpy.itemsize
    data = _first_bytes(memory_region_name, count)
    if strings:
        raise UnimplementedError(
            "Sorry, DT_STRING is not currently supported for ImmutableConstOp."
        )
    if dtype is DataType.BOOL:  # a byte that is not 0 or 1 is no bool of numpy
        return (np.frombuffer(data, np.uint8) != 0).reshape(shape)
    return np.frombuffer(data, dtype.numpy).reshape(shape)


def _first_bytes(path: str, count: int) -> bytes:
    try:
        if os.path.isdir(path):  # here and below: the answers of mmap, which TensorFlow calls
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        with pathlib.Path(path).open("rb") as file:
            available = os.fstat(file.fileno()).st_size
            if not available:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            if available < count:
                raise InternalError(
                    f"Readonly memory region has wrong length ({available}) when allocating {count}"
                )
            check_allocation((count,), np.dtype(np.uint8))
            data = read_at_most(file, count)
    except OSError as error:
        raise file_error(error, path) from None
    except ValueError as error:  # open raises it if the path contains a NUL byte
        raise InvalidArgumentError(f"{path!r}; {error}") from None
    if len(data) < count:  # another process has cut the file
        raise InternalError(
            f"Readonly memory region has wrong length ({len(data)}) when allocating {count}"
        )
    return data


KERNELS = (
    KernelDef("ImmutableConst", immutable_const),
    KernelDef("MatchingFiles", matching_files),
    KernelDef("ReadFile", read_file),
    KernelDef("WriteFile", write_file),
)

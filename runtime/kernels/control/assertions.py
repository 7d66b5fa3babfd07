"""Assert, Print, PrintV2 and StringFormat: ops that write tensors as text.

TF: tensorflow/core/kernels/logging_ops.cc, string_format_op.cc
"""

from __future__ import annotations

import itertools
import logging
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import raw_bytes
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_errors import file_error
from runtime.framework.io.new_files import append
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings, string_tensor
from runtime.framework.tensor_text import readable, summarize, summarize_ends
from runtime.framework.tensor_value import TensorValue

_log = logging.getLogger(__name__)


def assert_(
    condition: np.ndarray,
    *data: TensorValue,
    T: tuple[DataType, ...],  # noqa: N803
    summarize: int,
) -> None:
    """Assert: raise InvalidArgumentError with a summary of `data` if `condition` is false."""
    if np.ndim(condition):
        raise InvalidArgumentError(f"In[0] should be a scalar: {shape_text(np.shape(condition))}")
    if not condition:
        shown = " ".join(_bracketed_summaries(data, T, summarize))
        raise InvalidArgumentError(f"assertion failed: {shown}")


def _bracketed_summaries(
    data: Sequence[TensorValue], data_types: Sequence[DataType], max_entries: int
) -> list[str]:
    pairs = zip(data, data_types, strict=True)
    return [f"[{readable(summarize(each, kind, max_entries))}]" for each, kind in pairs]


def print_(
    context: OpKernelContext,
    input: TensorValue,
    *data: TensorValue,
    U: tuple[DataType, ...],  # noqa: N803
    message: str,
    first_n: int,
    summarize: int,
) -> TensorValue:
    """Print: return `input`, and log `data` on each of the first `first_n` calls.

    If `first_n` is negative, `data` is logged on every call.
    """
    calls = context.kernel_state(itertools.count)  # next() is atomic, so that no lock is needed
    if first_n < 0 or next(calls) < first_n:
        shown = "".join(_bracketed_summaries(data, U, summarize))
        _log.info("%s%s", message, shown)
    return input


def _log_writer(level: int) -> Callable[[OpKernelContext, str], None]:
    return lambda context, text: _log.log(level, "%s", text)


# Standard output and error belong to the serving process, so output of a graph is logged.
_STREAMS: dict[str, Callable[[OpKernelContext, str], None]] = {
    "stdout": _log_writer(logging.INFO),
    "stderr": _log_writer(logging.INFO),
    "log(info)": _log_writer(logging.INFO),
    "log(warning)": _log_writer(logging.WARNING),
    "log(error)": _log_writer(logging.ERROR),
}
_FILE_PREFIX = "file://"


def print_v2(context: OpKernelContext, input: np.ndarray, *, output_stream: str, end: str) -> None:
    """PrintV2: log the scalar string `input`, or append it to a file.

    The string is appended to a file if `output_stream` is `file://` followed by the file's path.
    """
    given = as_strings(input)
    if given.ndim:
        raise InvalidArgumentError(
            f"Input is expected to be scalar, but got {shape_text(given.shape)}"
        )
    text = readable(given.item())
    if output_stream.startswith(_FILE_PREFIX):
        path = output_stream[len(_FILE_PREFIX) :]
        context.step.files.check_write(path)
        try:
            with pathlib.Path(path).open("ab", buffering=0) as file:
                append(file, path, (text + end).encode())
        except OSError as error:
            raise file_error(error, path) from None
        return
    write = _STREAMS.get(output_stream)
    if write is None:
        raise InvalidArgumentError(
            f"Unknown output stream: {output_stream}; known are {sorted(_STREAMS)} and file://…"
        )
    write(context, text + end.rstrip("\n"))


def string_format(
    *inputs: TensorValue,
    T: tuple[DataType, ...],  # noqa: N803
    template: str,
    placeholder: str,
    summarize: int,
) -> np.ndarray:
    """StringFormat: return `template` with each `placeholder` replaced by one input's summary."""
    parts = raw_bytes(template).split(raw_bytes(placeholder)) if placeholder else []
    if len(parts) - 1 != len(inputs):
        raise InvalidArgumentError(
            "num placeholders in template and num inputs must match: "
            f"{len(parts) - 1} vs. {len(inputs)}"
        )
    written = [parts[0]]
    for tensor, data_type, rest in zip(inputs, T, parts[1:], strict=True):
        written += [summarize_ends(tensor, data_type, summarize), rest]
    return string_tensor([b"".join(written)], ())


KERNELS = (
    KernelDef("Assert", assert_),
    KernelDef("Print", print_),
    KernelDef("PrintV2", print_v2),
    KernelDef("StringFormat", string_format),
)

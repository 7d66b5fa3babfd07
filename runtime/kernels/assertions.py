"""Assert, and the ops that write tensors to the log.

TF: tensorflow/core/kernels/logging_ops.cc, string_format_op.cc
"""

from __future__ import annotations

import itertools
import logging
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import raw_bytes
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.string_tensor import as_strings, show_shape, string_tensor
from runtime.framework.tensor_text import readable, summarize, summarize_ends

_log = logging.getLogger(__name__)


def assert_(
    condition: Any,
    *data: Any,
    T: tuple[DataType, ...],  # noqa: N803
    summarize: int,
) -> None:
    """Raise InvalidArgumentError with the beginnings of `data` unless `condition` is true."""
    if np.ndim(condition):
        raise InvalidArgumentError(f"In[0] should be a scalar: {show_shape(np.shape(condition))}")
    if not condition:
        shown = " ".join(_in_brackets(data, T, summarize))
        raise InvalidArgumentError(f"assertion failed: {shown}")


def _in_brackets(
    data: Sequence[Any], data_types: Sequence[DataType], max_entries: int
) -> list[str]:
    pairs = zip(data, data_types, strict=True)
    return [f"[{readable(summarize(each, kind, max_entries))}]" for each, kind in pairs]


def print_(
    context: OpKernelContext,
    input: Any,
    *data: Any,
    U: tuple[DataType, ...],  # noqa: N803
    message: str,
    first_n: int,
    summarize: int,
) -> Any:
    """Log `data` (the first `first_n` times, always when negative) and hand `input` on."""
    times = context.kernel_state(itertools.count)  # next() is atomic
    if first_n < 0 or next(times) < first_n:
        shown = "".join(_in_brackets(data, U, summarize))
        _log.info("%s%s", message, shown)
    return input


def _to_log(level: int) -> Callable[[OpKernelContext, str], None]:
    return lambda context, text: _log.log(level, "%s", text)


# Standard output and error belong to the process that serves: what a graph prints is logged.
_STREAMS: dict[str, Callable[[OpKernelContext, str], None]] = {
    "stdout": _to_log(logging.INFO),
    "stderr": _to_log(logging.INFO),
    "log(info)": _to_log(logging.INFO),
    "log(warning)": _to_log(logging.WARNING),
    "log(error)": _to_log(logging.ERROR),
}
_FILE_PREFIX = "file://"


def print_v2(context: OpKernelContext, input: Any, *, output_stream: str, end: str) -> None:
    """Log a string, or append it to the file of a `file://` stream."""
    given = as_strings(input)
    if given.ndim:
        raise InvalidArgumentError(
            f"Input is expected to be scalar, but got {show_shape(given.shape)}"
        )
    text = readable(given.item())
    if output_stream.startswith(_FILE_PREFIX):
        path = output_stream[len(_FILE_PREFIX) :]
        context.step.files.check_write(path)
        with pathlib.Path(path).open("a", encoding="utf-8") as file:
            file.write(text + end)
        return
    write = _STREAMS.get(output_stream)
    if write is None:
        raise InvalidArgumentError(
            f"Unknown output stream: {output_stream}; known are {sorted(_STREAMS)} and file://…"
        )
    write(context, text + end.rstrip("\n"))


def string_format(
    *inputs: Any,
    T: tuple[DataType, ...],  # noqa: N803
    template: str,
    placeholder: str,
    summarize: int,
) -> np.ndarray:
    """The template with each placeholder replaced by one tensor's summary."""
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

"""BatchParameters: how the steps of a signature are batched, in TensorFlow Serving's parameters.

TF: tensorflow_serving/servables/tensorflow/session_bundle_config.proto (BatchingParameters),
bundle_factory_util.h, tensorflow/core/kernels/batching_util/shared_batch_scheduler.h
"""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

from google.protobuf import text_format

import protos as pb
from runtime.api import schedulable_cores
from runtime.errors import InvalidArgumentError, NotFoundError

SERVER_THREADS = "model_server_batch_threads"  # TF: model_servers/server.cc
_WRAPPED = (
    "max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads",
    "thread_pool_name", "enable_large_batch_splitting", "max_execution_batch_size",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class BatchParameters:
    """The parameters of TensorFlow Serving, with its defaults.

    Sizes are in rows. `num_batch_threads` bounds how many batches run at the same time on the pool
    of one priority; `thread_pool_name` is a label of metrics. `max_execution_batch_size` counts
    only if large tasks are split.
    """

    max_batch_size: int = 1000
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 10
    num_batch_threads: int = dataclasses.field(default_factory=schedulable_cores)
    thread_pool_name: str = SERVER_THREADS
    allowed_batch_sizes: tuple[int, ...] = ()
    pad_variable_length_inputs: bool = False
    enable_large_batch_splitting: bool = False
    max_execution_batch_size: int | None = None

    def __post_init__(self) -> None:
        _check_sizes(self)
        _check_allowed(self)

    @property
    def execution_size(self) -> int:
        """The largest number of rows of one batch."""
        if self.enable_large_batch_splitting and self.max_execution_batch_size is not None:
            return self.max_execution_batch_size
        return self.max_batch_size

    def padded_size(self, rows: int) -> int:
        """Return the smallest allowed batch size for `rows` rows; `rows` if there is none."""
        return next((size for size in self.allowed_batch_sizes if size >= rows), rows)


def _check_sizes(parameters: BatchParameters) -> None:
    """Raise InvalidArgumentError, with TensorFlow Serving's text where it has one."""
    for name, value in (
        ("input_batch_size_limit", parameters.max_batch_size),
        ("max_enqueued_batches", parameters.max_enqueued_batches),
        ("num_batch_threads", parameters.num_batch_threads),
    ):
        if value < 1:
            raise InvalidArgumentError(f"{name} must be positive; was {value}")
    if parameters.batch_timeout_micros < 0:
        raise InvalidArgumentError(
            f"batch_timeout_micros must be non-negative; was {parameters.batch_timeout_micros}"
        )
    size, limit = parameters.execution_size, parameters.max_batch_size
    if not 1 <= size <= limit:
        raise InvalidArgumentError(
            "When enable_large_batch_splitting is true, max_execution_batch_size must be positive "
            f"and at most max_batch_size; was {size}, max_batch_size is {limit}"
        )


def _check_allowed(parameters: BatchParameters) -> None:
    sizes = parameters.allowed_batch_sizes
    if not sizes:
        return
    if sizes[0] < 1 or any(first >= second for first, second in itertools.pairwise(sizes)):
        raise InvalidArgumentError("allowed_batch_sizes entries must be monotonically increasing")
    splits = parameters.enable_large_batch_splitting
    if sizes[-1] != parameters.execution_size:
        rule = "be equal to max_execution_batch_size" if splits else "match max_batch_size"
        raise InvalidArgumentError(
            f"Last entry in allowed_batch_sizes must {rule}; last entry was {sizes[-1]}; "
            f"expected {parameters.execution_size}"
        )


def read_parameters(path: Path) -> BatchParameters:
    """Read a text BatchingParameters, TensorFlow Serving's `--batching_parameters_file`.

    Raises NotFoundError if the file cannot be read, and InvalidArgumentError that names the file if
    it does not parse or a value is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f"Cannot read the batching parameters {path}: {error}") from error
    message = pb.server_config.BatchingParameters()
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        raise InvalidArgumentError(f"Invalid protobuf file {path}: {error}") from error
    try:
        return from_proto(message)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{error.message} ({path})") from error


def from_proto(message: pb.server_config.BatchingParameters) -> BatchParameters:
    """Convert a BatchingParameters; raise InvalidArgumentError if a value is wrong."""
    values: dict[str, Any] = {
        name: getattr(message, name).value for name in _WRAPPED if message.HasField(name)
    }
    # TF: SharedBatchScheduler::AddQueue makes this 1, because models exist that have 0.
    if values.get("max_enqueued_batches") == 0 and not values.get("enable_large_batch_splitting"):
        values["max_enqueued_batches"] = 1
    return BatchParameters(
        **values,
        allowed_batch_sizes=tuple(message.allowed_batch_sizes),
        pad_variable_length_inputs=message.pad_variable_length_inputs,
    )

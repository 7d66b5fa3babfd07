"""PreparedStep: a step with its executor, its arguments and its report, ready to run.

TF: tensorflow/core/common_runtime/direct_session.cc (RunInternal, DirectSessionCallFrame)
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np

from runtime.executors.step import Step
from runtime.foundation.errors import InvalidArgumentError, OpError
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.resource_manager import ResourceHandle, ResourceManager
from runtime.framework.tensor_codec import as_bytes
from runtime.kernels.state.session_tensors import session_tensor
from runtime.sessions.child_process.step_process import run_in_process
from runtime.sessions.direct.executor_cache import CompiledStep
from runtime.sessions.direct.run_metadata import MetadataRequest
from runtime.sessions.runtime_session import RunRequest, Tensor

_now = time.monotonic


@dataclasses.dataclass(frozen=True, slots=True)
class PreparedStep:
    """Everything that one run requires; to be used once."""

    compiled: CompiledStep
    step: Step
    arguments: list[Tensor]
    report: MetadataRequest | None
    began: float  # `_now()` before the feeds were read, which is part of the step's time

    def run(self) -> list[Tensor]:
        """Run in the calling thread; the fetched values in the request's order."""
        return self.results(self.compiled.executor.run(self.step, self.arguments))

    def run_measured(self) -> list[Tensor]:
        """Run as `run` does, and record the executor's duration even if this raises."""
        is_completed = False
        try:
            results = self.run()
            is_completed = True
        finally:
            self.compiled.executor.duration.note(_now() - self.began, is_completed=is_completed)
        return results

    def start(
        self,
        pool: ThreadPool | None,
        done: Callable[[list[Tensor] | None, OpError | None], None],
    ) -> None:
        """Start the step in this thread, or run it in a child process of `pool`.

        `done` is called as by `Executor.run_async`: once, in any thread.
        """
        executor, began = self.compiled.executor, self.began
        is_low_priority = self.step.is_low_priority
        if pool is not None and pool.own_process:
            values = run_in_process(pool, executor, self.step, self.arguments)
            if values is not None:
                done(values, None)
                return
            began = _now()  # without the time of `run_in_process`

        def ended(values: list[Tensor] | None, error: OpError | None) -> None:
            seconds = _now() - began
            if not is_low_priority:
                executor.duration.note(seconds, is_completed=error is None)
            if error is None:
                executor.runs += 1
                executor.last_seconds = seconds
            done(values, error)

        executor.run_async(self.step, self.arguments, ended)

    def results(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Write the report; the executor's values in the request's order."""
        if self.report is not None:
            self.report.fill()
        return [values[position] for position in self.compiled.fetch_positions]


def feed_arguments(
    compiled: CompiledStep, request: RunRequest, resources: ResourceManager
) -> list[Tensor]:
    """The feeds in the executor's order; Python numbers, strings and lists become arrays.

    The handle of a session tensor is replaced by the tensor. Raises InvalidArgumentError for an
    array of another element type, and for a handle of any other resource.
    """
    arguments = []
    for position, name in enumerate(compiled.feeds):
        value = request.feeds[name]
        wanted = compiled.feed_types[position]
        if isinstance(value, ResourceHandle):
            value = session_tensor(resources, value)
        if not isinstance(value, np.ndarray | np.generic):
            value = _as_array(value, wanted)
        elif value.dtype != wanted.numpy:
            raise InvalidArgumentError(
                f"Expects arg[{position}] to be {wanted.tf_name} but "
                f"{from_numpy(value.dtype).tf_name} is provided"
            )
        arguments.append(value)
    return arguments


def _as_array(value: Tensor, wanted: DataType) -> Tensor:
    if wanted is DataType.STRING:
        array = np.array(value, object)
        flat = np.empty(array.size, object)
        flat[:] = [as_bytes(item) for item in array.ravel()]
        return flat.reshape(array.shape)
    if wanted.numpy.kind == "O":  # a resource or a variant is a Python object
        return value
    return np.asarray(value, wanted.numpy)

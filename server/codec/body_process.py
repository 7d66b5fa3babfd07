"""BodyProcesses: child processes read large JSON bodies, and write the large responses to them.

Reading JSON holds the interpreter lock, in slices, for as long as a small step takes; other
requests would wait for it. A child has an interpreter of its own. Bodies of low-priority requests
are read by one of low priority, and very large ones of others by a second one.

Guarantees: used from one event loop. Whatever the child can't do, the caller does as if there were
no child: it reads the body itself. That is so for faulty bodies too, whose errors are therefore the
same.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

import protos as pb
from runtime.api import CallProcess, CallResult, DataType, ThreadPool, dtypes, make_way
from runtime.errors import ResourceExhaustedError
from server.codec.session.step_parts import Shape, set_options
from server.connections.large_body import Body
from server.steps.pool_calls import submit
from server.steps.step_request import StepRequest
from server.steps.time_limit import in_time

MODULE = "server.codec.body_calls"
# Smaller bodies take less than 1 ms to read, and about 0.3 ms to have read elsewhere.
LARGE_BYTES = 1 << 16
# Of normal priority, from this size on: 40 ms to read here. A child takes 60 MB of memory, which is
# more than reading the usual images is worth.
VERY_LARGE_BYTES = 1 << 22
# Arrays of a response; fewer are written here in less than 10 ms.
LARGE_RESPONSE_BYTES = 1 << 20
_MOST_TENSORS = 256  # that are known of a session; the child has to be told of each
_NEAR_ENDS = 256  # bytes in which a priority is looked for; clients write it first or last
_PRIORITY = re.compile(rb'"priority"\s*:\s*"([^"\\]*)"')


class BodyProcesses:
    """The child process of low-priority bodies, and that of very large ones of normal priority."""

    def __init__(self) -> None:
        self.low = BodyProcess("bodies", low_priority=True)
        self.normal = BodyProcess("bodies", low_priority=False)

    def of_body(self, size: int, *, has_child: bool) -> BodyProcess | None:
        """Return the process for a body of `size` bytes; None if it must be read here.

        `has_child` is whether it is of low priority, and its pool uses child processes.
        """
        if has_child:
            return self.low if size >= LARGE_BYTES else None
        return self.normal if size >= VERY_LARGE_BYTES else None

    def close(self) -> None:
        """Kill the children and end the threads."""
        self.low.close()
        self.normal.close()


class BodyProcess:
    """One child process, and a thread that waits for it; both are started when they are needed."""

    def __init__(self, name: str, *, low_priority: bool) -> None:
        self._is_low_priority = low_priority
        self._process = CallProcess(name, MODULE, low_priority=low_priority)
        self._pool: ThreadPool | None = None

    @property
    def process_id(self) -> int | None:
        """The process id of the child; None if there is none."""
        return self._process.process_id

    async def read_predict(
        self,
        body: Body,
        types: Mapping[str, Mapping[str, DataType]],
        deadline: float | None = None,
        *,
        strict: bool,
    ) -> tuple[Any, dict[str, np.ndarray]] | None:
        """Read a predict request; return what it says, and its inputs by alias.

        `types` has the types of inputs by signature and alias. What it says has the `signature`,
        the `priority`, which may be None, and the `form`. Raises DeadlineExceededError at the
        deadline.
        """
        numbers = {
            name: {alias: int(each) for alias, each in inputs.items()}
            for name, inputs in types.items()
        }
        data = {"strict": strict, "types": numbers}
        found = await self._read("predict", data, body, deadline)
        if found is None:
            return None
        return found.data, dict(zip(found.data["aliases"], found.arrays, strict=True))

    async def read_run(
        self,
        body: Body,
        step: StepRequest,
        tensors: Mapping[str, tuple[DataType, Shape]],
        deadline: float | None = None,
    ) -> bool:
        """Read a body of `:run` into `step`; return False if the caller must.

        `tensors` are those of the session's graph that are known already. Raises
        DeadlineExceededError at the deadline.
        """
        if len(tensors) > _MOST_TENSORS:
            return False
        known = {name: (int(kind), shape) for name, (kind, shape) in tensors.items()}
        found = await self._read("run", {"tensors": known}, body, deadline)
        if found is None:
            return False
        data, options = found.data, found.arrays.pop()
        step.feeds = dict(zip(data["feeds"], found.arrays, strict=True))
        step.fetches, step.targets = data["fetches"], data["targets"]
        step.fetch_types = [dtypes.from_number(each)[0] for each in data["fetch_types"]]
        step.priority = data["priority"] or step.priority
        if data["has_options"]:
            read = pb.RunOptions.FromString(options.tobytes())
            set_options(step, read, pool_is_chosen=data["pool_is_chosen"])
        return True

    async def write_predictions(
        self, outputs: Mapping[str, np.ndarray], form: str, non_finite: str
    ) -> bytes | None:
        """Write the response to a predict request; return None if the caller must.

        Outputs of strings, and responses with fewer than LARGE_RESPONSE_BYTES of tensors, are the
        caller's to write.
        """
        arrays = list(outputs.values())
        size = sum(array.nbytes for array in arrays)
        if size < LARGE_RESPONSE_BYTES or any(array.dtype == object for array in arrays):
            return None
        data = {"aliases": list(outputs), "form": form, "non_finite": non_finite}
        found = await self._call_with("write_predictions", data, arrays)
        # To make bytes of it would hold the interpreter lock for several milliseconds.
        return None if found is None else cast("bytes", found.arrays[0].data)

    async def _read(
        self, name: str, data: dict[str, Any], body: Body, deadline: float | None
    ) -> CallResult | None:
        seconds = None if deadline is None else deadline - time.monotonic()
        call = self._call_with(name, {**data, "seconds": seconds}, [np.frombuffer(body, np.uint8)])
        return await in_time(deadline, call)

    async def _call_with(
        self, name: str, data: Any, arrays: Sequence[np.ndarray]
    ) -> CallResult | None:
        if self._pool is None:
            is_low = self._is_low_priority
            self._pool = ThreadPool("bodies", 1, low_priority=is_low, own_process=is_low)

        def call() -> CallResult | None:
            if not self._is_low_priority:
                make_way()
            return self._process.call(name, data, arrays)

        try:
            future = submit(self._pool, call)
        except ResourceExhaustedError:
            return None
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Kill the child and end the thread."""
        self._process.close()
        if self._pool is not None:
            self._pool.shutdown()


def named_priority(body: Body) -> str | None:
    """Return the priority that a large JSON body seems to name, or None.

    It decides nothing but where the body is read.
    """
    found = _PRIORITY.search(body[:_NEAR_ENDS]) or _PRIORITY.search(body[-_NEAR_ENDS:])
    return None if found is None else found[1].decode(errors="replace")

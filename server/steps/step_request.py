"""StepRequest: one step as a front has read it, independent of the transport."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import protos as pb
from runtime.api import CancellationManager, CompiledStep, DataType

# Makes a context that cancels the given manager if the client disconnects within it.
ClientWatch = Callable[[CancellationManager], contextlib.AbstractContextManager[object]]


@dataclasses.dataclass(slots=True, eq=False)  # two requests are never the same, nor arrays equal
class StepRequest:
    """One step to run.

    What to run: `feeds` by tensor name, `fetches` and `targets`; `compiled` when the step is a
    callable's; `partial_run_handle` when it is a part of a partial run. For a signature of a model
    the inference service sets them.

    How to run it: `priority` is the name of an entry of `priorities:` or its number from 1; None
    or 0 is the default. `pool_is_chosen` is whether the client set `options.inter_op_thread_pool`,
    which excludes a priority. The deadline is `options.timeout_in_ms` after `received_at`, a
    `time.monotonic()` instant, or else `timeout_ms`, which the transport gives; 0 is not set.

    `request_id` is the id by which the step can be cancelled. `cancellation` is made by the runner
    for a step that does not end at once, unless the front sets it. `metadata`, if set, is filled.
    `fetch_types` are the element types of the fetches, for the codec that writes them.
    `body_bytes` is the size of the body that the inputs are still to be decoded from.
    """

    feeds: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    fetches: Sequence[str] = ()
    targets: Sequence[str] = ()
    fetch_types: Sequence[DataType] = ()
    options: pb.RunOptions | None = None
    metadata: pb.RunMetadata | None = None
    received_at: float = dataclasses.field(default_factory=time.monotonic)
    request_id: str = ""
    priority: str | int | None = None
    pool_is_chosen: bool = False
    timeout_ms: int = 0
    compiled: CompiledStep | None = None
    partial_run_handle: str = ""
    cancellation: CancellationManager | None = None
    watch_client: ClientWatch | None = None
    body_bytes: int = 0

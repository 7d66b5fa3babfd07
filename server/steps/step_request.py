"""StepRequest: one step as a front has read it, without anything of its transport."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import protos as pb
from runtime.api import CancellationManager, CompiledStep, DataType

# Makes what cancels the given manager when the client leaves while the block runs.
ClientWatch = Callable[[CancellationManager], contextlib.AbstractContextManager[object]]


@dataclasses.dataclass(slots=True, eq=False)  # two requests are never the same, nor arrays equal
class StepRequest:
    """One step to run.

    What to run: `feeds` by tensor name, `fetches` and `targets`; `compiled` when the step is a
    callable's; `partial_run_handle` when it is a part of a partial run. A request for a signature
    of a model begins with none of them: the inference service fills them in.

    How to run it: `priority` names an entry of `priorities:` or counts them from 1; None or 0 is
    the default one. `pool_is_chosen` says that the client set `options.inter_op_thread_pool`,
    which excludes a priority. The deadline counts from `received_at`, a `time.monotonic()`
    instant: `options.timeout_in_ms`, else `timeout_ms`, the transport's; 0 or less is not set.

    `request_id` is the id by which the step can be cancelled. `cancellation` is made by the runner
    when the step does not end at once, unless the front gives one. `metadata`, when given, is
    filled in place. `fetch_types` are the element types of the fetches, for the codec that writes
    them. `body_bytes` is the size of what is still to be decoded.
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

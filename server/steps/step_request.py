"""StepRequest: one step as a REST or gRPC endpoint has read it, independent of the transport."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import protos as pb
from runtime.api import CancellationManager, CompiledStep, DataType
from runtime.errors import Code
from server.access.caller import LOCAL, Caller

# Makes a context in which the given manager is cancelled if the client disconnects.
ClientWatch = Callable[[CancellationManager], contextlib.AbstractContextManager[object]]


@dataclasses.dataclass(slots=True, eq=False)  # two requests are never the same, nor arrays equal
class StepRequest:
    """One step to run; "step" means one call of Session.run.

    What to run: `feeds` maps tensor names to values; `fetches` and `targets` are names. `compiled`
    is set if the step is a callable's, and `partial_run_handle` if it is a part of a partial run.
    If the step runs a signature of a model, the inference service sets `feeds` and `fetches`.

    How to run it: `priority` is the name of an entry of the setting `priorities`, or its number
    from 1; None or 0 is the default. `pool_is_chosen` is whether the client set
    `options.inter_op_thread_pool`; `priority` must then be None. The deadline is
    `options.timeout_in_ms`, or else `timeout_ms`, which the transport sets, after `received_at`, an
    instant of `time.monotonic()`. A timeout of 0 is not set.

    `caller` is who makes the request; its limits decide whether the step may run now, and where.

    A client can cancel the step by `request_id`. `cancellation` may be set by the endpoint; if it
    is not set, the runner makes one for a step that does not end at once. `metadata`, if set, is
    filled by the step. `fetch_types` are the element types of the fetches, for the codec that
    writes them. `body_bytes` is the size of the request's body: if it is large, the inputs are
    decoded, and the step runs, on other threads. `model` is the name of the model whose version
    runs the step, for the metrics.

    When the step has ended, `code` is its outcome, `pool` the name of the pool it was for (empty if
    the client chose one by index), `wait_seconds` the time until a thread began it, and
    `run_seconds` the time after that.
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
    model: str = ""
    caller: Caller = LOCAL
    code: Code = Code.OK
    pool: str = ""
    wait_seconds: float = 0.0
    run_seconds: float = 0.0

"""RuntimeSession: what every session can do, whatever target it runs on.

TF: tensorflow/core/public/session.h (Session). The front end's conveniences (fetch structures,
default stacks) are in `runtime.client`, not here.
"""

from __future__ import annotations

import abc
import concurrent.futures
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import protos as pb
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import FileGate
from runtime.sessions.direct.executor_cache import CompiledStep

Tensor = Any  # numpy array or scalar; bytes-object array; ResourceHandle or variant object


@dataclasses.dataclass(slots=True)
class RunRequest:
    """One step to run.

    `feeds` maps tensor names (`x` means `x:0`) to arrays whose dtype is the graph's. `deadline` is
    a `time.monotonic()` instant and wins over `options.timeout_in_ms`. `pool` overrides the
    choice of `options.inter_op_thread_pool`. `metadata`, when given, is filled in place.
    `compiled` is the step when it has been looked up already: a callable's, or one that
    `run_if_short` found; it belongs to the session that runs the request.
    `files` decides about files in place of the session's gate: a loader's steps read the model.
    """

    feeds: Mapping[str, Tensor] = dataclasses.field(default_factory=dict)
    fetches: Sequence[str] = ()
    targets: Sequence[str] = ()
    options: pb.RunOptions | None = None
    metadata: pb.RunMetadata | None = None
    cancellation: CancellationManager | None = None
    deadline: float | None = None
    pool: ThreadPool | None = None
    compiled: CompiledStep | None = None
    files: FileGate | None = None


class RuntimeSession(abc.ABC):
    """A graph and its state; steps run on it. All methods may be called from any thread.

    After `close` every method but `close` raises CancelledError `Session has been closed.`
    """

    @abc.abstractmethod
    def create(self, graph_def: pb.GraphDef) -> None:
        """Give the session its graph; AlreadyExistsError when it has one. Empty: no-op."""

    @abc.abstractmethod
    def extend(self, graph_def: pb.GraphDef) -> None:
        """Add nodes; the graph is unchanged when this raises. On an empty session: `create`."""

    @abc.abstractmethod
    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Tensor]]:
        """Run one step; the future gives the fetched values in order, or an OpError."""

    def run_if_short(self, request: RunRequest) -> list[Tensor] | None:
        """Run one step in the caller's thread if it cannot block and has measured short.

        None when the caller has to use `run_async`, as a remote session's always has. Raises the
        step's error.
        """
        return None

    def run(
        self,
        feeds: Mapping[str, Tensor],
        fetches: Sequence[str] = (),
        targets: Sequence[str] = (),
        options: pb.RunOptions | None = None,
        metadata: pb.RunMetadata | None = None,
    ) -> list[Tensor]:
        """Run one step and wait for it; the fetched values in the order of `fetches`."""
        return self.run_async(RunRequest(feeds, fetches, targets, options, metadata)).result()

    @abc.abstractmethod
    def partial_run_setup(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str] = ()
    ) -> str:
        """Begin a step that is fed and fetched in parts; returns its handle."""

    @abc.abstractmethod
    def partial_run(
        self, handle: str, feeds: Mapping[str, Tensor], fetches: Sequence[str]
    ) -> list[Tensor]:
        """Feed and fetch a part of a step that `partial_run_setup` began."""

    @abc.abstractmethod
    def make_callable(self, options: pb.CallableOptions) -> int:
        """Prepare a step with fixed feeds, fetches and targets; returns its handle."""

    @abc.abstractmethod
    def run_callable(
        self, handle: int, feeds: Sequence[Tensor], metadata: pb.RunMetadata | None = None
    ) -> list[Tensor]:
        """Run a prepared step; feeds in the order of `CallableOptions.feed`."""

    @abc.abstractmethod
    def release_callable(self, handle: int) -> None:
        """Forget a prepared step."""

    @abc.abstractmethod
    def list_devices(self) -> list[pb.DeviceAttributes]:
        """The devices, the client device first."""

    @abc.abstractmethod
    def close(self) -> None:
        """Cancel running steps and refuse new ones; closing again is fine."""

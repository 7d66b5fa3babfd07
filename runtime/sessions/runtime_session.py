"""RuntimeSession: the interface of every session, whatever its target.

Fetch structures, the default session and other conveniences for programs are in `runtime.client`.

TF: tensorflow/core/public/session.h (Session)
"""

from __future__ import annotations

import abc
import concurrent.futures
import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.clusters.running.cluster_counts import ClusterSummary
from runtime.clusters.running.engine import EngineUse
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.cancellation import CancellationManager
from runtime.framework.op_kernel import FileGate
from runtime.sessions.direct.executor_cache import CompiledStep

Tensor = Any  # a numpy array or scalar (strings: object array of bytes), ResourceHandle or variant


@dataclasses.dataclass(slots=True)
class RunRequest:
    """One step to run.

    `feeds` maps tensor names (`x` means `x:0`) to arrays, which must have the dtype that the graph
    declares; masked arrays and matrices count as the plain arrays of their elements, and elements
    of text as their UTF-8. Names that are not strings, and options that are not RunOptions, raise
    InvalidArgumentError. `deadline` is an instant of `time.monotonic()` and overrides
    `options.timeout_in_ms`. `pool` overrides `options.inter_op_thread_pool`. If `metadata` is
    given, the session fills it. The step takes the turns of `owner` in the queue of its pool; steps
    without an owner are one. `compiled` is the compiled step if a callable or `run_if_short` has
    already looked it up; it must belong to the session that runs the request. If `files` is given,
    it replaces the file gate of the session, so that a loader's steps can read the model. The
    session sets `began_at`, an instant of `time.perf_counter()`, when a thread begins the step.

    The caller must not write into fed arrays before the step has ended. Afterwards it may: a step
    that may keep them, in a variable for example, gets copies. If the caller `gives_feeds`, which
    means that it will never write into them, there are none.
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
    owner: Hashable = None
    began_at: float | None = None
    gives_feeds: bool = False


class ShortStep(abc.ABC):
    """A step with fixed feeds, fetches and targets, for a caller that runs it often and at once.

    A run takes the values alone: no request is made and no name is looked up. Thread-safe.
    """

    @property
    @abc.abstractmethod
    def may_run(self) -> bool:
        """Whether a call of `run` is likely to run the step, so that values are worth reading."""

    @abc.abstractmethod
    def run(self, values: Sequence[np.ndarray]) -> list[Tensor] | None:
        """Run the step in this thread, with the feeds in the order of their names.

        Returns the fetched values in the order of their names; or None, without having run
        anything, if the step may not run in this thread: `run_async` must then be used. The step
        can't be cancelled, because it ends too soon. Raises InvalidArgumentError if a value has the
        wrong element type, and the error of the step.
        """


class RuntimeSession(abc.ABC):
    """A graph, its state and the steps that run on it. Methods may be called from any thread.

    After `close` every method but `close` raises CancelledError `Session has been closed.`
    """

    @abc.abstractmethod
    def create(self, graph_def: pb.GraphDef) -> None:
        """Set the session's graph; an empty graph changes nothing.

        Raises AlreadyExistsError if the session has a graph.
        """

    def create_from_saved_model(self, export_dir: str, tags: Sequence[str]) -> bool:
        """Set graph and state to those of a SavedModel right after loading, if the target keeps it.

        Return False, without having done anything, if the target keeps no loaded models.
        """
        return False

    @abc.abstractmethod
    def extend(self, graph_def: pb.GraphDef) -> None:
        """Add nodes to the graph; if there is no graph, set it. If this raises, nothing changes."""

    @abc.abstractmethod
    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Tensor]]:
        """Start one step; return a future of the values of `fetches` in order, or of an OpError.

        Arrays that the session keeps, such as the value of a variable, are read-only. `run` returns
        copies of them.
        """

    def run_if_short(self, request: RunRequest) -> list[Tensor] | None:
        """Run one step in the caller's thread if it can't block and its runs were short.

        Otherwise return None, so that the caller must use `run_async`. A remote session always
        returns None. Raises the error of the step.
        """
        return None

    def short_step(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str] = ()
    ) -> ShortStep | None:
        """Return the step of these names for a caller that runs it often in its own thread.

        Returns None if the session has no such steps, as a remote session. Nothing is checked or
        compiled: names that are unknown, or not compiled yet, make a step that never runs.
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
        """Run one step, wait for its end and return the values in the order of `fetches`."""
        return self.run_async(RunRequest(feeds, fetches, targets, options, metadata)).result()

    @abc.abstractmethod
    def partial_run_setup(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str] = ()
    ) -> str:
        """Start a step that several calls of `partial_run` feed and fetch; return its handle."""

    @abc.abstractmethod
    def partial_run(
        self, handle: str, feeds: Mapping[str, Tensor], fetches: Sequence[str]
    ) -> list[Tensor]:
        """Feed some inputs of the partial run `handle` and return the values of `fetches`."""

    @abc.abstractmethod
    def make_callable(self, options: pb.CallableOptions) -> int:
        """Prepare a step whose feeds, fetches and targets are fixed; return its handle."""

    @abc.abstractmethod
    def run_callable(
        self, handle: int, feeds: Sequence[Tensor], metadata: pb.RunMetadata | None = None
    ) -> list[Tensor]:
        """Run a prepared step; `feeds` must be in the order of `CallableOptions.feed`."""

    @abc.abstractmethod
    def release_callable(self, handle: int) -> None:
        """Release a prepared step; its handle becomes invalid."""

    def clusters(self) -> dict[tuple[str, ...], list[ClusterSummary]]:
        """Return the clusters of each compiled step that has some, by the step's fetches.

        A remote session returns none.
        """
        return {}

    def engine(self) -> EngineUse | None:
        """Return what computes the clusters; None if none was wanted until now, or if remote."""
        return None

    @abc.abstractmethod
    def list_devices(self) -> list[pb.DeviceAttributes]:
        """Return the devices of the session, the client device first."""

    @abc.abstractmethod
    def close(self) -> None:
        """Cancel running steps and refuse new ones. Closing again has no effect."""

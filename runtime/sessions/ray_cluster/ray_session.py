"""RaySession: a session in an actor of a Ray cluster.

The actor is the host of a node, in which many sessions live, or one of the session's own
(`isolation=actor`). Feeds and fetches are numpy arrays; large ones are in the object store, from
which both sides read them without a copy, so a large fetched array is read-only.

A session does not survive its actor: if the node or the actor ends, its calls raise AbortedError
with the reason. Whether a step that was running has had an effect is not known then.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import protos as pb
from runtime.foundation.deadline_timer import deadline_timer
from runtime.foundation.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    OpError,
    UnavailableError,
    UnimplementedError,
    as_op_error,
)
from runtime.sessions.ray_cluster.actor_values import (
    SessionLimits,
    sent_feeds,
    to_sent,
    values_of,
)
from runtime.sessions.ray_cluster.cluster_connection import cluster_connection
from runtime.sessions.ray_cluster.hosts import GRACE_SECONDS, Host, hosts
from runtime.sessions.ray_cluster.node_watch import node_watch
from runtime.sessions.ray_cluster.nodes import Node, choose_node, feasible_nodes
from runtime.sessions.ray_cluster.ray_errors import as_ray_error
from runtime.sessions.ray_cluster.ray_target import Placement, parse_ray_target
from runtime.sessions.remote.master_messages import timeout_seconds
from runtime.sessions.remote.remote_session import (
    CLOSED,
    PARTIAL_RUN,
    RUN,
    RUN_CALLABLE,
    Method,
    RemoteSession,
    Response,
)
from runtime.sessions.runtime_session import RunRequest, Tensor
from runtime.sessions.session_options import SessionOptions

_OPEN_ATTEMPTS = 3  # a host may end while it is looked up, and its node with it
# Master service's method → the actor's.
_CALLS = {
    "ExtendSession": "extend",
    "PartialRunSetup": "partial_run_setup",
    "MakeCallable": "make_callable",
    "ReleaseCallable": "release_callable",
}


class _Creation:
    """The opening of a session in an actor, which the thread that calls `result` does."""

    def __init__(self, open_session: Callable[[], pb.CreateSessionResponse]) -> None:
        self._open = open_session

    def result(self) -> pb.CreateSessionResponse:
        return self._open()

    def cancel(self) -> None:
        """Do nothing: what is opened after `close` is closed at once."""


class RaySession(RemoteSession):
    """A session on a node of a Ray cluster."""

    runtime_type = "RAY_SESSION"

    def __init__(self, options: SessionOptions) -> None:
        """Join the cluster, unless this program belongs to it.

        Raises InvalidArgumentError for a wrong target, and what `ClusterConnection.join` raises.
        """
        super().__init__(options)
        target = parse_ray_target(options.target)
        self._placement: Placement = target.placement
        self._host: Host | None = None
        self._numbers = itertools.count(1)  # next() is atomic
        if cluster_connection.join(target):
            hosts.forget_all()
        try:
            feasible_nodes(self._placement, cluster_connection.nodes())
        except BaseException:
            cluster_connection.leave()
            raise

    # Opening and closing.

    def _start_creation(self, request: pb.CreateSessionRequest, seconds: float | None) -> _Creation:
        argument = (hosts.client, request.SerializeToString(), self._limits())
        return _Creation(lambda: self._open("open", argument, seconds))

    def create_from_saved_model(self, export_dir: str, tags: Sequence[str]) -> bool:
        """Open the session from the model that the node has loaded, or loads now.

        Raises AlreadyExistsError if there is a graph, and what loading in the node raises: its
        programs must see the folder under the same path. A relative one is that of this program.
        """
        config = self.options.config.SerializeToString()
        folder = os.path.abspath(export_dir)
        argument = (hosts.client, config, self._limits(), folder, tuple(tags))
        with self._graph_lock:
            self._check_open()
            if self._handle:
                raise AlreadyExistsError("A Graph has already been created for this session.")
            seconds = self._default_seconds()
            self._create_by(
                lambda: _Creation(lambda: self._open("open_saved_model", argument, seconds))
            )
        return True

    def _limits(self) -> SessionLimits:
        options = self.options
        return SessionLimits(
            options.max_graph_nodes,
            options.max_session_bytes,
            options.max_step_bytes,
            options.clusters,
            options.engine,
            options.precision,
        )

    def _open(self, method: str, argument: Any, seconds: float | None) -> pb.CreateSessionResponse:
        """Open the session on the node that is chosen; on another one if its host has just ended.

        Raises what `choose_node`, `Hosts.isolated` and the actor raise.
        """
        for attempt in range(_OPEN_ATTEMPTS):
            host = None
            try:
                nodes = cluster_connection.nodes(refresh=attempt > 0)
                with hosts.opening(functools.partial(self._choose_node, nodes)) as node:
                    host = self._host_on(node, nodes)
                    content = host.open(method, argument, seconds)
                    hosts.opened(host)
            except OpError as error:
                self._give_up(host, error)
                if not _has_ended(error) or attempt == _OPEN_ATTEMPTS - 1:
                    raise
            else:
                self._host = host
                return content
        raise AssertionError("unreachable")

    def _choose_node(self, nodes: Sequence[Node], counts: Mapping[str, int]) -> Node:
        return choose_node(self._placement, nodes, counts, cluster_connection.own_node)

    def _host_on(self, node: Node, nodes: Sequence[Node]) -> Host:
        if self._placement.is_isolated:
            return hosts.isolated(self._placement, nodes, node)
        return hosts.shared(node)

    def _give_up(self, host: Host | None, error: OpError) -> None:
        if host is None:
            return
        if host.is_isolated:
            host.kill()
        elif _has_ended(error):
            hosts.forget(host)

    def _close_in_server(self, handle: str, seconds: float) -> None:
        host, self._host = self._host, None
        try:
            if host is not None:
                hosts.closed(host)
                with contextlib.suppress(AbortedError):  # it is gone with its actor
                    host.call("close", handle, seconds)
        finally:
            if host is not None and host.is_isolated:
                host.kill()
            cluster_connection.leave()

    # Calls.

    def _send(
        self, method: Method[Response], handle: str, request: Any, seconds: float | None
    ) -> Response:
        request.session_handle = handle
        try:
            content = self._open_host().call(
                _CALLS[method.rpc], request.SerializeToString(), seconds
            )
        except OpError as error:
            raise self._seen(error) from None
        return method.response.FromString(content)

    def run(
        self,
        feeds: Mapping[str, Tensor],
        fetches: Sequence[str] = (),
        targets: Sequence[str] = (),
        options: pb.RunOptions | None = None,
        metadata: pb.RunMetadata | None = None,
    ) -> list[Tensor]:
        """Run one step, wait for its end and return the fetched values."""
        request = RunRequest(feeds, fetches, targets, options, metadata)
        handle = self._open_handle(RUN.called)
        number = next(self._numbers)
        argument = self._run_argument(handle, number, request)
        seconds = timeout_seconds(options, self.options.config)
        return self._step("run", argument, number, seconds, metadata)

    def run_callable(
        self, handle: int, feeds: Sequence[Tensor], metadata: pb.RunMetadata | None = None
    ) -> list[Tensor]:
        """Run a prepared step; `feeds` must be in the order of `CallableOptions.feed`."""
        session = self._open_handle(RUN_CALLABLE.called)
        number = next(self._numbers)
        seconds, places = self._callables.get(handle, (self._default_seconds(), []))
        sent = [to_sent(value) for value in feeds]
        argument = (session, number, handle, sent, seconds, metadata is not None)
        values = self._step("run_callable", argument, number, seconds, metadata)
        return [values[place] for place in places]

    def partial_run(
        self, handle: str, feeds: Mapping[str, Tensor], fetches: Sequence[str]
    ) -> list[Tensor]:
        """Feed some inputs of a partial run and return the values of `fetches`."""
        session = self._open_handle(PARTIAL_RUN.called)
        number = next(self._numbers)
        argument = (session, number, handle, sent_feeds(feeds), tuple(fetches))
        return self._step("partial_run", argument, number, self._default_seconds(), None)

    def _step(
        self,
        method: str,
        argument: tuple[Any, ...],
        number: int,
        seconds: float | None,
        metadata: pb.RunMetadata | None,
    ) -> list[Tensor]:
        """Run a step and wait for it; if the wait ends before the step, cancel the step."""
        host = self._open_host()
        try:
            return values_of(host.result(host.start(method, argument), seconds), metadata)
        except OpError as error:
            if isinstance(error, DeadlineExceededError | UnavailableError):
                self._cancel(host, argument[0], number)
            raise self._seen(error) from None
        except BaseException:  # KeyboardInterrupt
            self._cancel(host, argument[0], number)
            raise

    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Tensor]]:
        """Start one step and return its future; `request.cancellation` cancels the step.

        Callbacks of the future run in a thread of Ray, or the one that looks at nodes, and must not
        wait for another call.
        """
        future: concurrent.futures.Future[list[Tensor]] = concurrent.futures.Future()
        try:
            if request.cancellation is not None:
                request.cancellation.check()
            handle = self._open_handle(RUN.called)
            number = next(self._numbers)
            argument = self._run_argument(handle, number, request)
            seconds = self._seconds_left(request)
            host = self._open_host()
            answered = host.start("run", argument).future()
        except Exception as error:
            future.set_exception(self._seen(as_op_error(error)))
            return future
        end = self._end_early(
            future, request, seconds, host, lambda: self._cancel(host, handle, number)
        )

        def done(answer: concurrent.futures.Future[Any]) -> None:
            end()
            try:
                values = values_of(_result(answer, host), request.metadata)
            except Exception as error:  # Ray would only log an error that leaves this callback
                _resolve(future, self._seen(as_op_error(error)))
            else:
                _resolve(future, values)

        answered.add_done_callback(done)
        return future

    def _end_early(
        self,
        future: concurrent.futures.Future[list[Tensor]],
        request: RunRequest,
        seconds: float | None,
        host: Host,
        cancel: Callable[[], None],
    ) -> Callable[[], None]:
        """Let a cancellation, a deadline or a lost node end a step; return what ends that."""

        def expire() -> None:
            cancel()
            _resolve(future, DeadlineExceededError("Timed out waiting for notification"))

        def lose() -> None:
            cancel()  # the actor may go on, if it is the port of its node that can't be reached
            _resolve(future, host.lost())

        waiting = node_watch.add(host.node, lose)
        timeout = None
        if seconds is not None:
            due = time.monotonic() + seconds + GRACE_SECONDS  # the actor is to answer before
            timeout = deadline_timer.call_at(due, expire)
        token, cancellation = None, request.cancellation
        if cancellation is not None:
            token = cancellation.add_callback(cancel)
            if token is None:  # cancelled since `check`
                cancel()

        def end() -> None:
            node_watch.remove(waiting)
            if timeout is not None:
                timeout.cancel()
            if cancellation is not None:
                cancellation.remove_callback(token)

        return end

    def _run_argument(self, handle: str, number: int, request: RunRequest) -> tuple[Any, ...]:
        options = request.options
        return (
            handle,
            number,
            sent_feeds(request.feeds),
            tuple(request.fetches),
            tuple(request.targets),
            None if options is None else options.SerializeToString(),
            None if request.deadline is None else self._seconds_left(request),
            request.metadata is not None,
        )

    def _cancel(self, host: Host, handle: str, number: int) -> None:
        with contextlib.suppress(OpError):  # the step has ended with its actor
            host.start("cancel", (handle, number))

    def _open_host(self) -> Host:
        host = self._host
        if host is None:
            raise CancelledError(CLOSED)
        return host

    def _seen(self, error: OpError) -> OpError:
        """Return the error of a call as the session's user sees it."""
        if self._is_closed and isinstance(error, AbortedError):
            return CancelledError(CLOSED)  # `close` has overtaken the call
        return error

    def list_devices(self) -> list[pb.DeviceAttributes]:
        """Return the devices of the session's node, the client device first."""
        handle = self._open_handle("ListDevices")
        content = self._open_host().call("list_devices", handle, self._default_seconds())
        return [pb.DeviceAttributes.FromString(device) for device in content]


def _has_ended(error: OpError) -> bool:
    return isinstance(error, AbortedError | UnavailableError)


def _result(answer: concurrent.futures.Future[Any], host: Host) -> Any:
    try:
        return answer.result()
    except Exception as error:
        raise as_ray_error(error, host.name) from None


def _resolve(
    future: concurrent.futures.Future[list[Tensor]], outcome: list[Tensor] | OpError
) -> None:
    """Complete the future, unless its deadline has done so already."""
    with contextlib.suppress(concurrent.futures.InvalidStateError):
        if isinstance(outcome, OpError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


def reset(options: SessionOptions, containers: Sequence[str]) -> None:
    """Raise UnimplementedError, because sessions on Ray share no resource containers."""
    raise UnimplementedError(f"{options.target}: sessions on Ray share no resources to reset")

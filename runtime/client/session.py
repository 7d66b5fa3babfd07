"""Session and InteractiveSession, which run parts of a graph on any target.

A step is one `Session.run`. Guarantees: operations added since the last step are sent to the target
before the next one. Several threads may call `run`; `_extend_lock` serialises what they send. A
session that is garbage-collected is closed.

TF: tensorflow/python/client/session.py
"""

from __future__ import annotations

import contextlib
import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

import protos as pb
from runtime.client.feeds import convert_feed, feed_tensor, read_feeds, runtime_value
from runtime.client.fetches import FetchHandler
from runtime.client.framework.argument_types import ElementLike, FeedDict, Fetches, Structure
from runtime.client.framework.default_stacks import default_graphs, default_sessions
from runtime.client.framework.graph import Graph, get_default_graph
from runtime.client.framework.operation import SessionLike, Tensor
from runtime.client.run_plans import RunPlans
from runtime.foundation.errors import OpError
from runtime.framework.tensor_value import TensorValue
from runtime.registrations import new_session, reset
from runtime.sessions.direct.direct_session import DirectSession
from runtime.sessions.runtime_session import RuntimeSession
from runtime.sessions.session_options import SessionOptions

_log = logging.getLogger(__name__)


class DeviceAttributes(NamedTuple):
    """The name, type, memory limit and incarnation of a device of a session."""

    name: str
    device_type: str
    memory_limit_bytes: int
    incarnation: int


class BaseSession:
    """The methods that Session and InteractiveSession share."""

    def __init__(
        self,
        target: str | bytes = "",
        graph: Graph | None = None,
        config: pb.ConfigProto | None = None,
    ) -> None:
        """Open a session of `graph` (None: the default graph) at `target`.

        A `target` of "" is this process, `grpc://host:port` a master service, `http://host:port` a
        Runstep server, `ray://auto` or `ray://host:gcs_port` a node of a Ray cluster. Raises
        TypeError if an argument has another type, and what `new_session` raises.
        """
        if not isinstance(target, str | bytes):
            raise TypeError(
                f'Argument `target` must be a string, but got "{type(target).__name__}"'
            )
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(
                f'Argument `graph` must be a tf.Graph, but got "{type(graph).__name__}"'
            )
        if config is not None and not isinstance(config, pb.ConfigProto):
            raise TypeError(
                f'Argument `config` must be a tf.ConfigProto, but got "{type(config).__name__}"'
            )
        self._graph = graph if graph is not None else get_default_graph()
        self._target = target.decode() if isinstance(target, bytes) else target
        self._config = config
        self._extend_lock = threading.Lock()  # guards _operations_sent and _functions_sent
        self._operations_sent = 0
        self._functions_sent = 0
        self._closed = False
        self._plans = RunPlans(self._graph)
        self._session = new_session(SessionOptions(self._target, config or pb.ConfigProto()))
        self._graph.session_opened(self)
        self._finalizer = weakref.finalize(self, _destroy, self._session)

    # Properties

    @property
    def graph(self) -> Graph:
        """The graph that the session runs."""
        return self._graph

    @property
    def graph_def(self) -> pb.GraphDef:
        """The GraphDef of the graph."""
        return self._graph.as_graph_def()

    @property
    def sess_str(self) -> bytes:
        """The target of the session, as bytes."""
        return self._target.encode()

    @property
    def runtime_session(self) -> RuntimeSession:
        """The RuntimeSession that runs the steps; its tensors are given by name."""
        return self._session

    def list_devices(self) -> list[DeviceAttributes]:
        """Return the devices on which operations can be placed."""
        return [
            DeviceAttributes(each.name, each.device_type, each.memory_limit, each.incarnation)
            for each in self._session.list_devices()
        ]

    def as_default(self) -> contextlib.AbstractContextManager[SessionLike]:
        """Make this the thread's default session inside the block; it stays open afterwards."""
        return default_sessions.entered(self)

    def close(self) -> None:
        """Cancel running steps and reject new ones. Closing again has no effect."""
        if not self._closed:
            self._closed = True
            self._graph.session_closed(self)
            self._session.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")

    # Runs

    def run(
        self,
        fetches: Fetches,
        feed_dict: FeedDict | None = None,
        options: pb.RunOptions | None = None,
        run_metadata: pb.RunMetadata | None = None,
    ) -> Structure:
        """Run one step and return the fetched values in the structure of `fetches`.

        The value of an operation is None. Raises RuntimeError if the session is closed or the graph
        is empty, TypeError and ValueError if fetches or feeds are invalid, and the OpError of the
        step.
        """
        self._check_runnable()
        feeds = read_feeds(self._graph, feed_dict) if feed_dict is not None else {}
        plan = self._plans.find(fetches, feeds)
        if plan.wanted or plan.targets:
            self.extend()
            given = map(runtime_value, feeds.values())
            fetched = self._session.run(
                dict(zip(plan.feeds, given, strict=True)),
                plan.fetches,
                plan.targets,
                options,
                run_metadata,
            )
            feeds |= zip(plan.wanted, map(_scalars_unpacked, fetched), strict=True)
        return plan.handler.build(feeds)

    def _check_runnable(self) -> None:
        self._check_open()
        if self._graph.version == 0:
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before calling run()."
            )

    def extend(self) -> None:
        """Send the operations and functions that were added to the graph since the last call."""
        if self._graph.size == (self._operations_sent, self._functions_sent):
            return
        with self._extend_lock:
            graph_def, operations, functions = self._graph.additions(
                self._operations_sent, self._functions_sent
            )
            if graph_def.node:
                self._session.extend(graph_def)
                self._operations_sent, self._functions_sent = operations, functions

    def make_callable(
        self,
        fetches: Fetches,
        feed_list: Sequence[ElementLike] | None = None,
        accept_options: bool = False,
    ) -> Callable[..., Structure]:
        """Return a function that runs one step and feeds its arguments to `feed_list`.

        It is not faster than `run`, which caches a plan too. If `accept_options` is set, the
        function also takes `options` and `run_metadata`. Raises what `run` raises if the fetches
        are invalid, TypeError if the feed list is. The runtime checks the fetches when the function
        is first called.
        """
        if feed_list is not None and not isinstance(feed_list, list | tuple):
            raise TypeError(
                f"Argument `feed_list` must be a list or tuple. Received: feed_list={feed_list}"
            )
        feeds = [feed_tensor(self._graph, each) for each in feed_list or ()]
        handler = FetchHandler(self._graph, fetches)
        if accept_options:
            return lambda *args, options=None, run_metadata=None: self.run(
                fetches, dict(zip(feeds, args, strict=True)), options, run_metadata
            )
        return _Callable(self, feeds, handler)

    # Partial runs

    def partial_run_setup(
        self, fetches: Fetches, feeds: Sequence[ElementLike] | None = None
    ) -> str:
        """Begin a step that is fed and fetched in parts, and return its handle.

        Raises what `run` and `RuntimeSession.partial_run_setup` raise.
        """
        self._check_runnable()
        feed_names = [feed_tensor(self._graph, feed).name for feed in feeds or ()]
        handler = FetchHandler(self._graph, fetches)
        self.extend()
        return self._session.partial_run_setup(
            feed_names,
            [tensor.name for tensor in handler.tensors],
            [operation.name for operation in handler.targets],
        )

    def partial_run(
        self, handle: str, fetches: Fetches, feed_dict: FeedDict | None = None
    ) -> Structure:
        """Feed and fetch part of a step. Raises RuntimeError if `fetches` has an operation."""
        self._check_runnable()
        feeds = read_feeds(self._graph, feed_dict)
        handler = FetchHandler(self._graph, fetches)
        if handler.targets:
            raise RuntimeError(
                "partial_run() requires empty `target_list`. Received: "
                f"target_list={handler.targets} (non-empty)"
            )
        wanted = [tensor for tensor in handler.tensors if tensor not in feeds]
        fetched = self._session.partial_run(
            handle,
            {tensor.name: runtime_value(value) for tensor, value in feeds.items()},
            [tensor.name for tensor in wanted],
        )
        values = dict(zip(wanted, map(_scalars_unpacked, fetched), strict=True))
        return handler.build({**feeds, **values})


class _Callable:
    """The function that `make_callable` returns.

    It creates the runtime's callable at the first call, and releases it when garbage-collected.
    """

    def __init__(
        self, session: BaseSession, feeds: Sequence[Tensor], handler: FetchHandler
    ) -> None:
        self._session = session
        self._feeds = list(feeds)
        self._handler = handler
        self._wanted = [tensor for tensor in handler.tensors if tensor not in self._feeds]
        self._lock = threading.Lock()  # held while _handle is created
        self._handle: int | None = None

    def __call__(self, *values: object) -> Structure:
        handle = self._handle if self._handle is not None else self._make()
        fed = dict(zip(self._feeds, values, strict=False))
        fed = {tensor: convert_feed(tensor, value) for tensor, value in fed.items()}
        # If the number of values is wrong, the session raises with TensorFlow's message.
        given = [*map(runtime_value, fed.values()), *values[len(fed) :]]
        fetched = self._session.runtime_session.run_callable(handle, given)
        tensors = zip(self._wanted, map(_scalars_unpacked, fetched), strict=True)
        return self._handler.build({**fed, **dict(tensors)})

    def _make(self) -> int:
        with self._lock:
            if self._handle is None:
                self._session.extend()
                session = self._session.runtime_session
                self._handle = session.make_callable(
                    pb.CallableOptions(
                        feed=[tensor.name for tensor in self._feeds],
                        fetch=[tensor.name for tensor in self._wanted],
                        target=[operation.name for operation in self._handler.targets],
                    )
                )
                weakref.finalize(self, _release, session, self._handle).atexit = False
            return self._handle


def _release(session: RuntimeSession, handle: int) -> None:
    with contextlib.suppress(OpError):  # already released if the session is closed
        session.release_callable(handle)


def _destroy(session: RuntimeSession) -> None:
    """Close a session that is no longer referenced."""
    with contextlib.suppress(OpError):
        session.close()
    if isinstance(session, DirectSession):
        session.destroy()


def _scalars_unpacked(value: TensorValue) -> TensorValue:
    """Return a fetched array, or the numpy scalar or bytes in an array of rank 0."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


class Session(BaseSession):
    """A session that is closed at the end of `with Session():`.

    Inside the block, the session and its graph are the thread's default.
    """

    def __init__(
        self,
        target: str | bytes = "",
        graph: Graph | None = None,
        config: pb.ConfigProto | None = None,
    ) -> None:
        super().__init__(target, graph, config)
        self._entered: contextlib.ExitStack | None = None

    def __enter__(self) -> Self:
        if self._entered is not None:
            raise RuntimeError(
                "Session context managers are not re-entrant. Use `Session.as_default()` if you "
                "want to enter a session multiple times."
            )
        self._entered = contextlib.ExitStack()
        self._entered.enter_context(self._graph.as_default())
        self._entered.enter_context(self.as_default())
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error_type is not None and issubclass(error_type, OpError):
            _log.error("Session closing due to error %s", error)
        assert self._entered is not None  # set by __enter__
        entered, self._entered = self._entered, None
        try:
            entered.__exit__(error_type, error, trace)
        finally:
            self.close()

    @staticmethod
    def reset(
        target: str, containers: Sequence[str] | None = None, config: pb.ConfigProto | None = None
    ) -> None:
        """Clear the resource containers (None: all) of `target` and close its sessions."""
        reset(target, containers or ())


_active_interactive_sessions = 0  # sessions open in this process; guarded by _active_lock
_active_lock = threading.Lock()


class InteractiveSession(BaseSession):
    """A session that is the default from its construction until `close`.

    If `graph` is given, that graph is the default graph during the same time.
    """

    def __init__(
        self,
        target: str | bytes = "",
        graph: Graph | None = None,
        config: pb.ConfigProto | None = None,
    ) -> None:
        global _active_interactive_sessions
        super().__init__(target, graph, config)
        with _active_lock:
            if _active_interactive_sessions:
                _log.error(
                    "An interactive session is already active. This can cause out-of-memory "
                    "errors or some other unexpected errors (due to the unpredictable timing of "
                    "garbage collection) in some cases. You must explicitly call "
                    "`InteractiveSession.close()` to release resources held by the other "
                    "session(s). Please use `tf.Session()` if you intend to productionize."
                )
            _active_interactive_sessions += 1
        self._has_graph = graph is not None
        if self._has_graph:
            default_graphs.push(self._graph)
        default_sessions.push(self)

    def close(self) -> None:
        """Close the session; it and its graph are no longer the default."""
        global _active_interactive_sessions
        if self._closed:
            return
        super().close()
        with _active_lock:
            _active_interactive_sessions -= 1
        default_sessions.remove(self)
        if self._has_graph:
            default_graphs.remove(self._graph)

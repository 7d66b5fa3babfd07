"""Client and Session: the blocking client."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from runstep.client import model_calls, session_calls
from runstep.client.exchange import Answer, Request, Retries, Steps, unreachable
from runstep.client.http_requests import NOT_SENT, Connection, answer_of
from runstep.client.session_calls import SessionOptions
from runtime.errors import DeadlineExceededError, FailedPreconditionError, OpError

T = TypeVar("T")
P = ParamSpec("P")
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


def _of_client(
    call: Callable[P, Steps[T]],
) -> Callable[Concatenate[Client, P], T]:
    """Return the method of the client that makes a call; the call's docstring is its own."""

    @functools.wraps(call)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.do(call(*args, **kwargs))

    return method


def _of_session(
    call: Callable[Concatenate[str, P], Steps[T]],
) -> Callable[Concatenate[Session, P], T]:
    """Return the method of the session that makes a call with its id."""

    @functools.wraps(call)
    def method(self: Session, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._client.do(call(self.id, *args, **kwargs), self._affinity)

    return method


class Client:
    """A blocking client of one server; a context manager.

    Thread-safe. Errors are the classes of `runtime.errors`, by the server's
    code, with `request_id` and `status`; UnavailableError if the server can't be reached.
    """

    def __init__(
        self,
        url: str = "http://localhost:8501",
        *,
        api_key: str | None = None,
        token: str | None = None,
        user: tuple[str, str] | None = None,
        timeout: float = 60.0,
        retries: Retries = Retries(),  # noqa: B008 - immutable
        verify: Any = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Make a client; nothing is sent yet.

        The arguments are those of `Connection`; `transport` is httpx's, for tests and proxies.
        Raises InvalidArgumentError for a wrong address or more than one credential.
        """
        self._connection = Connection(url, api_key, token, user, timeout, retries, verify)
        self._http = httpx.Client(transport=transport, **self._connection.arguments())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; sessions live on until they are closed or their lease ends."""
        self._http.close()

    def do(self, steps: Steps[T], headers: Mapping[str, str] = _NO_HEADERS) -> T:
        """Send the requests of a call, with `headers`; return its result."""
        begin = time.monotonic()
        try:
            request = next(steps)
            while True:
                try:
                    answer = self._answer(request.with_headers(headers), begin)
                except OpError as error:
                    request = steps.throw(error)
                else:
                    request = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def _answer(self, request: Request, begin: float) -> Answer:
        """Return the answer of the last attempt; `begin` is when the call began."""
        connection, retries = self._connection, self._connection.retries
        for attempt in itertools.count(1):
            elapsed = time.monotonic() - begin
            try:
                response = self._http.request(**connection.request(request, elapsed))
            except httpx.HTTPError as error:
                was_sent = not isinstance(error, NOT_SENT)
                left = connection.seconds_left(request, time.monotonic() - begin)
                pause = retries.pause_after_failure(attempt, request, left, was_sent=was_sent)
                if pause is None:
                    raise self._failure(error) from None
            else:
                answer = answer_of(response)
                left = connection.seconds_left(request, time.monotonic() - begin)
                pause = retries.pause_after_answer(attempt, request, answer, left)
                if pause is None:
                    return answer
            time.sleep(pause)
        raise AssertionError  # the loop returns or raises

    def _failure(self, error: httpx.HTTPError) -> OpError:
        if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
            return DeadlineExceededError(f"{self._connection.url} did not answer in time")
        return unreachable(self._connection.url, error)

    predict = _of_client(model_calls.predict)
    predict_json = _of_client(model_calls.predict_json)
    metadata = _of_client(model_calls.metadata)
    status = _of_client(model_calls.status)
    version_of = _of_client(model_calls.version_of)
    models = _of_client(model_calls.models)
    thread_pools = _of_client(model_calls.thread_pools)
    is_alive = _of_client(model_calls.is_alive)
    is_ready = _of_client(model_calls.is_ready)
    repository = _of_client(model_calls.repository)
    load_model = _of_client(model_calls.load_model)
    unload_model = _of_client(model_calls.unload_model)

    def session(
        self,
        model: str | None = None,
        *,
        export_dir: str | None = None,
        graph_def: bytes | None = None,
        meta_graph_def: bytes | None = None,
        version: int | None = None,
        label: str | None = None,
        tags: Sequence[str] | None = None,
        config: Mapping[str, Any] | None = None,
        lease_seconds: float | None = None,
        name: str | None = None,
    ) -> Session:
        """Return a session, which `with` opens and closes (`SessionOptions`)."""
        options = SessionOptions(
            model, export_dir, graph_def, meta_graph_def, version, label, tags, config,
            lease_seconds, name,
        )  # fmt: skip
        return Session(self, options)


class Session:
    """A session on the server, opened by `with` or `open` and closed at the end.

    `opened` is the server's answer: devices, thread pools, the end of the lease. A session that is
    not used for the time of its lease is closed by the server: `keep_alive` renews it.
    """

    def __init__(self, client: Client, options: SessionOptions) -> None:
        self._client, self._options = client, options
        self._affinity = session_calls.affinity()
        self.opened: dict[str, Any] = {}

    @property
    def id(self) -> str:
        """The id; whoever knows it may use the session. Raises FailedPreconditionError before."""
        if not self.opened:
            raise FailedPreconditionError("the session is not open: use `with`, or `open`")
        return str(self.opened["session"])

    def open(self) -> Self:
        """Open the session; raise the server's error if it can't be."""
        if self.opened:
            raise FailedPreconditionError("the session is open already")
        steps = session_calls.open_session(self._options)
        self.opened = self._client.do(steps, self._affinity)
        return self

    def __enter__(self) -> Self:
        return self if self.opened else self.open()

    def __exit__(self, raised: object, *_: object) -> None:
        try:
            self.close()
        except OpError:
            if raised is None:  # else what the block raised is the error that counts
                raise

    run = _of_session(session_calls.run)
    extend = _of_session(session_calls.extend)
    keep_alive = _of_session(session_calls.keep_alive)
    cancel = _of_session(session_calls.cancel)
    information = _of_session(session_calls.information)
    close = _of_session(session_calls.close)

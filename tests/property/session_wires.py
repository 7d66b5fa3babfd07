"""The calls on sessions over REST and over gRPC, with one form of answers and errors for both."""

from __future__ import annotations

import abc
import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import grpc
import grpc.aio
import numpy as np

import protos as pb
from runtime.api import tensor_from_proto, tensor_to_proto
from server.rpc.grpc_server import GrpcServer
from tests.faults import JumpingClock
from tests.integration.rest_server import RestServer, encoded, rest_server

GONE = "GONE"  # the code for a session that was closed or has expired
Feeds = Mapping[str, float]


class RefusedError(Exception):
    """A call was answered with an error of the code `args[0]`."""

    @property
    def code(self) -> str:
        return str(self.args[0])


class Step(NamedTuple):
    """A run, or a part of one if `part` is the handle of a partial run."""

    session: str
    feeds: Feeds
    fetches: Sequence[str]
    targets: Sequence[str]
    timeout_ms: int
    part: str
    request_id: str


class Wire(abc.ABC):
    """One way to the sessions of a server in this process. Every call may raise RefusedError."""

    lease_seconds: float  # of each session

    def __init__(self) -> None:
        self.clock = JumpingClock()
        self._stack = contextlib.AsyncExitStack()

    async def start(self) -> None:
        entered = rest_server(
            self.clock.clock, models=(), grpc={"port": "free"}, rest={"host": "127.0.0.1"}
        )
        self.server: RestServer = await self._stack.enter_async_context(entered)

    async def stop(self) -> None:
        await self._stack.aclose()

    async def reap(self) -> None:
        await self.server.services.sessions.reap()

    async def open_names(self) -> list[str]:
        """The names of the open sessions, sorted."""
        answer = await self.server.client.get("/v1/sessions")
        return sorted(each["name"] for each in answer.json()["sessions"])

    @abc.abstractmethod
    async def create(self, graph: pb.GraphDef, name: str) -> str: ...

    @abc.abstractmethod
    async def run_step(self, step: Step) -> list[float]: ...

    async def run(
        self,
        session: str,
        feeds: Feeds,
        fetches: Sequence[str],
        targets: Sequence[str] = (),
        *,
        timeout_ms: int = 0,
        part: str = "",
        request_id: str = "",
    ) -> list[float]:
        step = Step(session, feeds, fetches, targets, timeout_ms, part, request_id)
        return await self.run_step(step)

    @abc.abstractmethod
    async def cancel(self, session: str, request_id: str, task: asyncio.Task[Any]) -> None: ...

    @abc.abstractmethod
    async def extend(self, session: str, graph: pb.GraphDef, version: int) -> int: ...

    @abc.abstractmethod
    async def close(self, session: str) -> None: ...

    @abc.abstractmethod
    async def begin_parts(
        self, session: str, feeds: Sequence[str], fetches: Sequence[str]
    ) -> str: ...

    @abc.abstractmethod
    async def make_callable(
        self, session: str, feeds: Sequence[str], fetches: Sequence[str]
    ) -> int: ...

    @abc.abstractmethod
    async def run_callable(self, session: str, handle: int, feeds: Feeds) -> list[float]: ...

    @abc.abstractmethod
    async def release_callable(self, session: str, handle: int) -> None: ...


class RestWire(Wire):
    lease_seconds = 100.0

    async def _post(self, path: str, body: Any, **headers: str) -> Any:
        answer = await self.server.post(f"/v1/sessions{path}", body, headers=headers)
        if answer.status_code == 410:
            raise RefusedError(GONE)
        if answer.status_code >= 400:
            raise RefusedError(answer.json()["code"])
        return answer.json()

    async def create(self, graph: pb.GraphDef, name: str) -> str:
        body = {"graph_def": encoded(graph), "lease_seconds": self.lease_seconds, "name": name}
        return (await self._post("", body))["session"]  # type: ignore[no-any-return]

    async def run_step(self, step: Step) -> list[float]:
        body: dict[str, Any] = {"feeds": dict(step.feeds), "fetches": list(step.fetches)}
        headers = {"X-Request-Id": step.request_id} if step.request_id else {}
        if step.part:
            path, body = ":partialRun", body | {"partial_run_handle": step.part}
        else:
            path, body = ":run", body | {"targets": list(step.targets)}
        if step.timeout_ms:
            body["options"] = {"timeout_in_ms": step.timeout_ms}
        outputs = (await self._post(f"/{step.session}{path}", body, **headers))["outputs"]
        return [outputs[name]["data"] for name in step.fetches]

    async def cancel(self, session: str, request_id: str, task: asyncio.Task[Any]) -> None:
        await self._post(f"/{session}:cancel", {"request_id": request_id})

    async def extend(self, session: str, graph: pb.GraphDef, version: int) -> int:
        body = {"graph_def": encoded(graph), "graph_version": version}
        return (await self._post(f"/{session}:extend", body))["graph_version"]  # type: ignore[no-any-return]

    async def keep_alive(self, session: str) -> None:
        """Renew the lease, which only REST can do without a step."""
        await self._post(f"/{session}:keepAlive", {})

    async def close(self, session: str) -> None:
        await self._post(f"/{session}:close", {})

    async def begin_parts(self, session: str, feeds: Sequence[str], fetches: Sequence[str]) -> str:
        body = {"feeds": list(feeds), "fetches": list(fetches)}
        answer = await self._post(f"/{session}:partialRunSetup", body)
        return answer["partial_run_handle"]  # type: ignore[no-any-return]

    async def make_callable(
        self, session: str, feeds: Sequence[str], fetches: Sequence[str]
    ) -> int:
        options = {"feed": list(feeds), "fetch": list(fetches)}
        answer = await self._post(f"/{session}:makeCallable", {"options": options})
        return answer["handle"]  # type: ignore[no-any-return]

    async def run_callable(self, session: str, handle: int, feeds: Feeds) -> list[float]:
        body = {"handle": handle, "feeds": list(feeds.values())}
        outputs = (await self._post(f"/{session}:runCallable", body))["outputs"]
        return [each["data"] for each in outputs]

    async def release_callable(self, session: str, handle: int) -> None:
        await self._post(f"/{session}:releaseCallable", {"handle": handle})


class GrpcWire(Wire):
    """TensorFlow's master service on a port; each session has a resource manager of its own."""

    lease_seconds = 86400.0  # sessions.max_lease_seconds

    async def start(self) -> None:
        await super().start()
        services = self.server.services
        master = GrpcServer(services)
        await master.start()
        self._stack.push_async_callback(master.stop, 0)
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{master.port}")
        self._channel = await self._stack.enter_async_context(channel)

    async def _call(self, method: str, request: Any, response: Any) -> Any:
        call = self._channel.unary_unary(
            f"/tensorflow.MasterService/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response.FromString,
        )
        try:
            return await call(request)
        except grpc.aio.AioRpcError as error:
            if "is not found. Possibly, this master has restarted." in (error.details() or ""):
                raise RefusedError(GONE) from None
            raise RefusedError(error.code().name) from None

    async def create(self, graph: pb.GraphDef, name: str) -> str:
        config = pb.ConfigProto(isolate_session_state=True)
        request = pb.CreateSessionRequest(graph_def=graph, config=config)
        answer = await self._call("CreateSession", request, pb.CreateSessionResponse)
        self.server.services.sessions.get(answer.session_handle).name = name
        return str(answer.session_handle)

    async def run_step(self, step: Step) -> list[float]:
        feeds = step.feeds
        request = pb.RunStepRequest(
            session_handle=step.session,
            feed=[pb.NamedTensorProto(name=name, tensor=scalar(feeds[name])) for name in feeds],
            fetch=step.fetches,
            target=step.targets,
            partial_run_handle=step.part,
            options=pb.RunOptions(timeout_in_ms=step.timeout_ms),
        )
        answer = await self._call("RunStep", request, pb.RunStepResponse)
        by_name = {each.name: float(tensor_from_proto(each.tensor)) for each in answer.tensor}
        return [by_name[name] for name in step.fetches]

    async def cancel(self, session: str, request_id: str, task: asyncio.Task[Any]) -> None:
        task.cancel()

    async def extend(self, session: str, graph: pb.GraphDef, version: int) -> int:
        request = pb.ExtendSessionRequest(
            session_handle=session, graph_def=graph, current_graph_version=version
        )
        answer = await self._call("ExtendSession", request, pb.ExtendSessionResponse)
        return int(answer.new_graph_version)

    async def close(self, session: str) -> None:
        request = pb.CloseSessionRequest(session_handle=session)
        await self._call("CloseSession", request, pb.CloseSessionResponse)

    async def begin_parts(self, session: str, feeds: Sequence[str], fetches: Sequence[str]) -> str:
        request = pb.PartialRunSetupRequest(session_handle=session, feed=feeds, fetch=fetches)
        answer = await self._call("PartialRunSetup", request, pb.PartialRunSetupResponse)
        return str(answer.partial_run_handle)

    async def make_callable(
        self, session: str, feeds: Sequence[str], fetches: Sequence[str]
    ) -> int:
        options = pb.CallableOptions(feed=feeds, fetch=fetches)
        request = pb.MakeCallableRequest(session_handle=session, options=options)
        answer = await self._call("MakeCallable", request, pb.MakeCallableResponse)
        return int(answer.handle)

    async def run_callable(self, session: str, handle: int, feeds: Feeds) -> list[float]:
        request = pb.RunCallableRequest(
            session_handle=session, handle=handle, feed=[scalar(value) for value in feeds.values()]
        )
        answer = await self._call("RunCallable", request, pb.RunCallableResponse)
        return [float(tensor_from_proto(each)) for each in answer.fetch]

    async def release_callable(self, session: str, handle: int) -> None:
        request = pb.ReleaseCallableRequest(session_handle=session, handle=handle)
        await self._call("ReleaseCallable", request, pb.ReleaseCallableResponse)


def scalar(value: float) -> pb.TensorProto:
    return tensor_to_proto(np.float32(value))

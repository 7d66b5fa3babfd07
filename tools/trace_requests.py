"""Trace one warm request on each way through the server, and print which files it passes.

    python tools/trace_requests.py [--calls]

A file is passed when one of its functions is entered, by a call or by the resumption of a
coroutine, in any thread. A move is made when two functions that are entered one after the other
are in different files. Only files of runtime/, server/ and protos/ count; libraries and the text
that a step plan generates do not. Each request is traced several times and the shortest trace
counts: a step that took long once, on a busy machine, goes to a pool's thread the next time.
Clusters are off, as the step is so short that only a busy machine makes it worth one.

Exits with 1 when a way is longer than MAX_FILES or MAX_MOVES, or passes a file that the page
runtime/README.md does not name, as one that decides something (MAX_DECIDING of them) or as one
that translates or carries. A name that ends with "/" stands for all files of that folder.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import itertools
import json
import os
import pathlib
import re
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import FrameType
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

MAX_FILES = 25
MAX_MOVES = 46
MAX_DECIDING = 10
WARM_REQUESTS = 5  # compile the step, and measure it
TRACED_REQUESTS = 10  # of which the shortest trace counts
PAGE = ROOT / "runtime" / "README.md"
_PACKAGES = ("runtime", "server", "protos")
_MODEL = "half_plus_two"
_FEED, _FETCH = "serving_default_x:0", "StatefulPartitionedCall_2:0"
_PROTOBUF = "application/x-protobuf"

Way = Callable[[], Awaitable[object]]


class Recorder:
    """Notes each function of the repository that is entered while `is_on`."""

    def __init__(self) -> None:
        self.is_on = False
        self.entered: list[tuple[str, str]] = []  # (file, function)
        self._prefix = f"{ROOT}{os.sep}"

    def install(self) -> None:
        """Watch this thread, and every thread that is started from now on but the compiler's.

        It imports and compiles in the background, whatever request is traced meanwhile.
        """
        threading.setprofile(self._note_of_thread)
        sys.setprofile(self._note)

    def _note_of_thread(self, frame: FrameType, event: str, argument: object) -> None:
        is_compiler = threading.current_thread().name == "cluster_compiler"
        sys.setprofile(None if is_compiler else self._note)
        if not is_compiler:
            self._note(frame, event, argument)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if not self.is_on or event != "call":
            return
        path = frame.f_code.co_filename
        if path.startswith(self._prefix):
            file = path[len(self._prefix) :].replace(os.sep, "/")
            if file.partition("/")[0] in _PACKAGES:
                self.entered.append((file, frame.f_code.co_qualname))


@dataclasses.dataclass(frozen=True, slots=True)
class Trace:
    """The functions that one request entered, in order."""

    entered: Sequence[tuple[str, str]]

    @property
    def files(self) -> list[str]:
        """The files passed, in the order in which they are first entered."""
        return list(dict.fromkeys(file for file, _ in self.entered))

    @property
    def moves(self) -> int:
        """How often two functions entered one after the other are in different files."""
        return sum(one[0] != other[0] for one, other in itertools.pairwise(self.entered))


@dataclasses.dataclass(frozen=True, slots=True)
class NamedFiles:
    """What the page says of files: those that decide, and those that translate or carry."""

    deciding: tuple[str, ...]
    carrying: tuple[str, ...]

    def has(self, file: str) -> bool:
        """Whether the page names a file, or the folder it is in."""
        return any(
            file.startswith(name) if name.endswith("/") else file == name
            for name in (*self.deciding, *self.carrying)
        )


def read_page(text: str) -> NamedFiles:
    """The files of the page's two tables, whose first column names files or folders."""
    return NamedFiles(_first_column(text, "Decides"), _first_column(text, "Translates or carries"))


def _first_column(text: str, heading: str) -> tuple[str, ...]:
    """The quoted names in the first column of the table whose second heading is `heading`."""
    names: list[str] = []
    is_inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 2 or not line.startswith("|"):
            is_inside = False
        elif cells[1] == heading:
            is_inside = True
        elif is_inside:
            names += re.findall(r"`([^`]+)`", cells[0])
    return tuple(names)


def problems(traces: dict[str, Trace], named: NamedFiles) -> list[str]:
    """What is wrong with the ways, one line each."""
    found = []
    if len(named.deciding) > MAX_DECIDING:
        found.append(f"{len(named.deciding)} files decide; at most {MAX_DECIDING} may")
    for way, trace in traces.items():
        if len(trace.files) > MAX_FILES:
            found.append(f"{way}: {len(trace.files)} files; at most {MAX_FILES}")
        if trace.moves > MAX_MOVES:
            found.append(f"{way}: {trace.moves} moves; at most {MAX_MOVES}")
        found += [
            f"{way}: {file} is not named in {PAGE.relative_to(ROOT)}"
            for file in trace.files
            if not named.has(file)
        ]
    return found


async def call_application(
    application: Any, path: str, body: bytes, content_type: str = "application/json"
) -> bytes:
    """POST to the ASGI application itself, without a socket; the answer's body."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    answer: list[bytes] = []

    async def receive() -> dict[str, Any]:
        if not messages:
            await asyncio.Event().wait()  # the client stays
        return messages.pop()

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] in (200, 201), f"{path}: status {message['status']}"
        else:
            answer.append(message["body"])

    headers = {"host": "127.0.0.1", "content-type": content_type, "content-length": str(len(body))}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    await application(scope, receive, send)
    return b"".join(answer)


async def ways() -> AsyncIterator[tuple[str, Way]]:
    """Each way by its name; the server runs while this generator is open."""
    import grpc.aio

    from runtime.sessions.direct import short_step
    from server.app import create_app, lifespan, make_services
    from server.rpc.grpc_server import GrpcServer
    from server.settings import Settings

    short_step.INLINE_SECONDS = float("inf")
    settings = Settings(
        models=[{"name": _MODEL, "base_path": str(ROOT / "examples" / "models" / _MODEL)}],
        rest={"host": "127.0.0.1"},
        grpc={"port": "free"},
        clusters="off",
    )
    services = make_services(settings)
    application = create_app(services)
    async with lifespan(services):
        await asyncio.to_thread(services.models.wait_until_settled, 30)
        server = GrpcServer(services)
        await server.start()
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{server.port}")
        for name, way in (await _ways(application, channel)).items():
            yield name, way
        await channel.close()
        await server.stop(0)


async def _ways(application: Any, channel: Any) -> dict[str, Way]:
    """Requests that run the same graph: the session is opened on the served model."""
    import numpy as np

    import protos as pb
    from runtime.api import tensor_to_proto

    async def post(path: str, body: Any) -> Any:
        return json.loads(await call_application(application, path, json.dumps(body).encode()))

    session = (await post("/v1/sessions", {"model": _MODEL}))["session"]
    path = f"/v1/sessions/{session}"
    options = {"feed": [_FEED], "fetch": [_FETCH]}
    handle = (await post(f"{path}:makeCallable", {"options": options}))["handle"]
    values = [1.0, 2.0, 5.0]
    step = pb.RunStepRequest(session_handle=session, fetch=[_FETCH])
    step.feed.add(name=_FEED, tensor=tensor_to_proto(np.float32(values)))
    message = step.SerializeToString()
    run_step = channel.unary_unary("/tensorflow.MasterService/RunStep")
    run = {"feeds": {_FEED: values}, "fetches": [_FETCH]}
    return {
        "REST run": lambda: post(f"{path}:run", run),
        "predict": lambda: post(f"/v1/models/{_MODEL}:predict", {"instances": values}),
        "gRPC step": lambda: run_step(message),
        "protobuf run": lambda: call_application(application, f"{path}:run", message, _PROTOBUF),
        "callable": lambda: post(f"{path}:runCallable", {"handle": handle, "feeds": [values]}),
    }


async def trace_ways(recorder: Recorder) -> dict[str, Trace]:
    """The shortest trace of a warm request on each way."""
    traces = {}
    async for name, request in ways():
        for _ in range(WARM_REQUESTS):
            await request()
        candidates = [await _trace(recorder, request) for _ in range(TRACED_REQUESTS)]
        traces[name] = min(candidates, key=lambda trace: (len(trace.files), trace.moves))
    return traces


async def _trace(recorder: Recorder, request: Way) -> Trace:
    recorder.entered = []
    recorder.is_on = True
    try:
        await request()
    finally:
        recorder.is_on = False
    return Trace(tuple(recorder.entered))


def main() -> int:
    """Print every way; 1 when something is wrong with one."""
    parser = argparse.ArgumentParser(description="Trace one warm request on each way.")
    parser.add_argument("--calls", action="store_true", help="print every function entered")
    options = parser.parse_args()
    recorder = Recorder()
    recorder.install()
    traces = asyncio.run(trace_ways(recorder))
    for way, trace in traces.items():
        print(f"{way}: {len(trace.files)} files, {trace.moves} moves")
        shown = [" ".join(each) for each in trace.entered] if options.calls else trace.files
        print("".join(f"    {each}\n" for each in shown))
    found = problems(traces, read_page(PAGE.read_text()))
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

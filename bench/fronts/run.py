"""Measure the same predictions over every front, beside bare echoes over HTTP and gRPC.

    python -m bench.fronts [--models DIR] [--seconds 2] [--rounds 5] [--callers 8]

One server answers half_plus_two and, with `--models`, the MLP and MobileNetV2 (one row of their
stored inputs): JSON `:predict`, v2 infer with JSON and with binary data, gRPC Predict and
ModelInfer, and Predict over gRPC's Unix socket (HTTP has none). Beside it run a bare ASGI
application that parses and writes the JSON of the request with orjson, on the same uvicorn, event
loop and HTTP parser, and a bare grpc.aio server that returns the bytes of the request: the echo of
each HTTP front gets the body of `:predict`, that of each gRPC front the message of Predict.

The calls take turns. Ratios are to the echo of the same turn, and all figures medians of the turns.
The clients are processes of their own: wrk for HTTP where it is installed, else bench/http/load.py;
grpc.aio, gRPC's C core, for gRPC. Each caller has a connection and one request at a time. `client`
is the part of a core that the client took: near 1, it is the client that is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from bench.engines.model_inputs import batch_of, stored_arrays
from bench.engines.warm_up import wait_until_idle
from bench.fronts.requests import (
    HttpRequest,
    Inputs,
    RpcRequest,
    infer_binary,
    infer_json,
    infer_rpc,
    predict_json,
    predict_rpc,
)
from bench.http import wrk
from bench.measure import median, median_ratio, write_json
from bench.serving import ROOT, Served, runstep_server
from bench.start import processor_seconds
from bench.tables import front_table

HALF = "half_plus_two"
MODELS = ("mlp", "mobilenet_v2")
HTTP_ECHO, RPC_ECHO, SOCKET_ECHO = "bare ASGI echo", "bare gRPC echo", "bare gRPC echo, Unix socket"


class Call(NamedTuple):
    """A front: where it is, the request, and which echo it is compared with."""

    address: str
    request: HttpRequest | RpcRequest
    echo: str


class Addresses(NamedTuple):
    """The server's ports and socket, and those of the echoes, as a client needs them."""

    http: str
    rpc: str
    socket: str
    http_echo: str
    rpc_echo: str
    socket_echo: str


Figures = dict[str, float]


def calls_of(model: str, inputs: Inputs, at: Addresses) -> dict[str, Call]:
    """Return the calls of a model by name; the echoes come first."""
    as_json, as_message = predict_json(model, inputs), predict_rpc(model, inputs)
    return {
        HTTP_ECHO: Call(at.http_echo, as_json._replace(path="/"), HTTP_ECHO),
        RPC_ECHO: Call(at.rpc_echo, as_message, RPC_ECHO),
        SOCKET_ECHO: Call(at.socket_echo, as_message, SOCKET_ECHO),
        "JSON `:predict`": Call(at.http, as_json, HTTP_ECHO),
        "v2 infer, JSON": Call(at.http, infer_json(model, inputs), HTTP_ECHO),
        "v2 infer, binary": Call(at.http, infer_binary(model, inputs), HTTP_ECHO),
        "gRPC Predict": Call(at.rpc, as_message, RPC_ECHO),
        "gRPC ModelInfer": Call(at.rpc, infer_rpc(model, inputs), RPC_ECHO),
        "gRPC Predict, Unix socket": Call(at.socket, as_message, SOCKET_ECHO),
    }


def turn(call: Call, callers: int, seconds: float, folder: pathlib.Path) -> Figures:
    """Return the figures of one turn of a call."""
    request, file = call.request, folder / "request"
    if isinstance(request, HttpRequest) and wrk.is_installed():
        return wrk.run(call.address, request, callers, seconds, folder)
    if isinstance(request, HttpRequest):
        file.write_bytes(request.body)
        headers = [f"{name}: {value}" for name, value in request.headers.items()]
        return printed(
            "http.load", call.address, request.path, f"@{file}", callers, seconds, *headers
        )
    file.write_bytes(request.message)
    return printed("fronts.grpc_load", call.address, request.method, file, callers, seconds)


def printed(module: str, *arguments: object) -> Figures:
    """Return the JSON that a module of `bench` prints."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{module}", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    figures: Figures = json.loads(done.stdout)
    return figures


@contextlib.contextmanager
def echo(module: str, *arguments: str) -> Iterator[str]:
    """Run an echo; yield the address that it prints."""
    command = [sys.executable, "-m", f"bench.{module}", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def measured(
    calls: Mapping[str, Call],
    one_turn: Callable[[Call, float], Figures],
    seconds: float,
    rounds: int,
    settle: Callable[[], object],
) -> dict[str, Figures]:
    """Return the medians of the turns of each call, and `of_echo`, the ratio of the rates."""
    for call in calls.values():
        one_turn(call, seconds / 2)
    settle()
    turns: dict[str, list[Figures]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            turns[name].append(one_turn(call, seconds))
    rates = {name: [each["per_second"] for each in seen] for name, seen in turns.items()}
    return {
        name: {
            **{key: median([each[key] for each in turns[name]]) for key in turns[name][0]},
            "of_echo": median_ratio(rates[name], rates[call.echo]),
        }
        for name, call in calls.items()
    }


def measure(
    models: pathlib.Path | None, seconds: float, rounds: int, callers: int
) -> dict[str, Any]:
    """Return {"client": that of HTTP, "callers", "models": {model: {call: figures}}}."""
    inputs: dict[str, Inputs] = {HALF: {"x": np.float32([1, 2, 5])}}
    folders = {HALF: ROOT / "examples/models" / HALF}
    for name in MODELS if models else ():
        folders[name] = models / name  # type: ignore[operator] # there are models
        inputs[name] = batch_of(stored_arrays(folders[name] / "inputs.npz"), 1)
    served_models = [{"name": name, "base_path": str(path)} for name, path in folders.items()]
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        socket = f"{folder}/grpc"
        served = stack.enter_context(
            runstep_server({"models": served_models, "grpc": {"socket_path": socket}})
        )
        at = addresses(stack, served, f"unix:{socket}", f"unix:{folder}/echo")
        found = {
            model: measured(
                calls_of(model, inputs[model], at),
                lambda call, seconds: turn(call, callers, seconds, folder),
                seconds,
                rounds,
                lambda: wait_until_idle(
                    processor_time=lambda: processor_seconds(served.process_id)
                ),
            )
            for model in inputs
        }
    client = "wrk" if wrk.is_installed() else "bench/http/load.py"
    return {"client": client, "callers": callers, "models": found}


def addresses(
    stack: contextlib.ExitStack, served: Served, socket: str, echo_socket: str
) -> Addresses:
    """Start the echoes; return where everything is."""
    return Addresses(
        served.http,
        served.grpc.removeprefix("grpc://"),
        socket,
        stack.enter_context(echo("http.echo")),
        stack.enter_context(echo("fronts.grpc_echo")),
        stack.enter_context(echo("fronts.grpc_echo", echo_socket)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=pathlib.Path, help="folder of exported models")
    parser.add_argument("--seconds", type=float, default=2, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    models = options.models and options.models.resolve()
    figures = measure(models, options.seconds, options.rounds, options.callers)
    print(front_table(figures))
    if options.json:
        write_json(options.json, figures)

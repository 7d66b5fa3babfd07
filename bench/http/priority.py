"""Measure how much low-priority work delays predictions over HTTP.

    python -m bench.http.priority [--seconds 20] [--processes 1] [--model DIR] [--prompt-client]

An open loop sends predictions to the digits model at 30 % of the rate that one client can reach.
Meanwhile two client processes keep the low-priority pool full: they run steps of a chain of 10,000
small ops, or of 512² MatMuls, in REST sessions, or, if DIR is given, predictions of that model, as
JSON and by gRPC, the latter on the server's port and on that of the background process. The same
work on a second pool of normal priority is measured for comparison. Two further rows run beside a
separate process at nice 19 that counts or multiplies matrices: the delay that any work on the
machine causes. The table has the columns of bench.priority.

The clients that keep a pool full share the processors as a low-priority process does, and leave one
of them to others as it does, because they stand for other machines. The open loop's client does
too, but is an ordinary process, which may have to wait for a processor when an answer has arrived;
with `--prompt-client` it has the shortest time slice, so that it preempts what runs (Linux 6.12 and
newer). With several processes, each of them and the open loop have a connection to one of the
processes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import http.client
import itertools
import json
import pathlib
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence

import numpy as np

import protos as pb
from bench.measure import write_json
from bench.priority import COUNTING, MULTIPLYING, another_process, name_of_model
from bench.serving import ROOT, Served, runstep_server
from bench.stalls import figures_in_turns
from bench.start import free_port
from bench.tables import latency_table
from runtime.foundation.processor_share import (
    LONGEST_SLICE_SECONDS,
    SHORTEST_SLICE_SECONDS,
    leave_one_processor,
    share_processors,
)
from runtime.foundation.thread_pool import LOW_PRIORITY_NICE
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_to_proto
from tests.conformance.case import Graph

# The response to a body of which this process sent a part before it was stopped.
STOPPED = (408,)
LOAD = 0.3  # fraction of the rate that one client reaches
ENDING_SECONDS = 60  # for the steps that run when a row ends
IDLE_SECONDS = 0.3
WARM_UP_STEPS = 20  # of each client that keeps a pool full, before the measurement
DIGITS = {"name": "digits", "base_path": f"{ROOT}/examples/models/digits"}
CONFIG = {
    "thread_pools": [
        {"name": "online"},
        {"name": "background", "num_threads": 1, "low_priority": True},
        {"name": "equal", "num_threads": 1},
    ],
    "priorities": {"normal": "online", "low": "background", "equal": "equal"},
}
GRPC = ", gRPC"  # the end of a name
OWN_PORT = ", gRPC, own port"
_ANY_SIZE = ("grpc.max_receive_message_length", -1)
GRAPHS = ("10,000 small ops", "512² MatMuls")


def graph_of(name: str) -> pb.GraphDef:
    """Return the graph that keeps a pool full; it computes from `seed`, a fed int32 vector [2]."""
    graph = Graph()
    size = [1] if name == GRAPHS[0] else [512, 512]
    seed = graph.placeholder("int32", "seed")
    begin = graph.add("StatelessRandomUniform", np.int32(size), seed, dtype="float32")[0]
    value = begin
    for index in range(10000 if name == GRAPHS[0] else 20):
        other = np.float32([1]) if name == GRAPHS[0] else begin
        op = "AddV2" if name == GRAPHS[0] else "MatMul"
        value = graph.add(op, value, other, name=f"n{index}")[0]
    graph.add("Max", value, np.arange(len(size), dtype=np.int32), name="end")
    return graph.graph_def


class Client:
    """An HTTP client with one persistent connection; `priority` is that of all its steps."""

    def __init__(self, address: str, priority: str | None = None) -> None:
        self._connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc)
        self._headers = {} if priority is None else {"X-Priority": priority}

    def post(self, path: str, body: bytes, kind: str = "application/json") -> bytes:
        self._connection.request("POST", path, body, {"Content-Type": kind, **self._headers})
        response = self._connection.getresponse()
        answer = response.read()
        if response.status in STOPPED:
            self._connection.close()
            raise ConnectionError(answer)
        assert response.status in (200, 201), answer
        return answer

    def get(self, path: str) -> bytes:
        self._connection.request("GET", path)
        return self._connection.getresponse().read()

    def reconnect(self) -> None:
        self._connection.close()


def step_of_graph(client: Client, name: str) -> tuple[str, bytes]:
    """Open a session with a graph; return the path and the body of its step."""
    create = pb.CreateSessionRequest(graph_def=graph_of(name)).SerializeToString()
    answer = client.post("/v1/sessions", create, "application/x-protobuf")
    session = pb.CreateSessionResponse.FromString(answer).session_handle
    body = {"feeds": {"seed": [1, 2]}, "fetches": ["end"]}
    return f"/v1/sessions/{session}:run", json.dumps(body).encode()


def prediction_of_model(client: Client, name: str) -> tuple[str, bytes]:
    """Return the path and the body of a prediction of one random example, in three digits."""
    path = f"/v1/models/{name}"
    metadata = json.loads(client.get(f"{path}/metadata"))["metadata"]["signature_def"]
    inputs = metadata["signature_def"]["serving_default"]["inputs"]
    random, instance = np.random.default_rng(1), {}
    for key, tensor in inputs.items():
        shape = [abs(int(each["size"])) for each in tensor["tensor_shape"]["dim"][1:]]
        instance[key] = np.round(random.random(shape), 3).tolist()
    return f"{path}:predict", json.dumps({"instances": [instance]}).encode()


def keep_full(address: str, name: str, priority: str) -> None:
    """Run steps one after the other without end; print "running" after the warm-up."""
    share_processors(LOW_PRIORITY_NICE, LONGEST_SLICE_SECONDS)
    leave_one_processor()
    make_step = by_grpc if name.endswith((GRPC, OWN_PORT)) else by_http
    step = make_step(address, name.removesuffix(OWN_PORT).removesuffix(GRPC), priority)
    for count in itertools.count():
        step()
        if count == WARM_UP_STEPS:
            print("running", flush=True)


def by_http(address: str, name: str, priority: str) -> Callable[[], object]:
    """Return a function that runs one step over HTTP."""
    client = Client(address, priority)
    make = step_of_graph if name in GRAPHS else prediction_of_model
    path, body = make(client, name)

    def step() -> None:
        try:
            client.post(path, body)
        except (ConnectionError, http.client.HTTPException):
            # The server closed the connection while this process was stopped.
            client.reconnect()

    return step


def by_grpc(address: str, name: str, priority: str) -> Callable[[], object]:
    """Return a function that makes one prediction of one example by gRPC."""
    import grpc

    channel = grpc.insecure_channel(address.removeprefix("grpc://"), [_ANY_SIZE])
    service = "/tensorflow.serving.PredictionService"
    asked = pb.serving.GetModelMetadataRequest(metadata_field=["signature_def"])
    asked.model_spec.name = name
    get_metadata = channel.unary_unary(f"{service}/GetModelMetadata")
    answer = get_metadata(asked.SerializeToString(), wait_for_ready=True)
    found = pb.serving.GetModelMetadataResponse.FromString(answer).metadata["signature_def"]
    signatures = pb.serving.SignatureDefMap.FromString(found.value)
    request = pb.serving.PredictRequest()
    request.model_spec.name = name
    for key, tensor in signatures.signature_def["serving_default"].inputs.items():
        shape = [abs(each.size) for each in tensor.tensor_shape.dim]
        request.inputs[key].CopyFrom(tensor_to_proto(np.zeros(shape, DataType(tensor.dtype).numpy)))
    data, metadata = request.SerializeToString(), (("x-priority", priority),)
    predict = channel.unary_unary(f"{service}/Predict")
    return lambda: predict(data, metadata=metadata)


def predictions(address: str) -> Callable[[], object]:
    """Return a function that makes one prediction of the digits model on a new connection."""
    client = Client(address)
    body = json.dumps({"instances": [[0.5] * 64]}).encode()
    return lambda: client.post("/v1/models/digits:predict", body)


def wait_until_idle(address: str) -> None:
    """Wait until no pool of the server has had a step for IDLE_SECONDS.

    A busy server has not read all requests yet. Raises TimeoutError after ENDING_SECONDS.
    """
    client = Client(address)
    began = busy = time.monotonic()
    while (now := time.monotonic()) < busy + IDLE_SECONDS:
        pools = json.loads(client.get("/v1/threadpools"))["thread_pools"]
        if any(pool["running"] + pool["queued"] for pool in pools):
            busy = time.monotonic()
        if now > began + ENDING_SECONDS:
            raise TimeoutError(f"Steps run for more than {ENDING_SECONDS} s after a row: {pools}")
        time.sleep(0.02)


class BusyClients:
    """Two client processes that keep a pool full; they are stopped except during `turn`.

    A turn ends when the steps that they have begun have ended: the server, whose HTTP address is
    `http`, goes on with those of clients that are stopped.
    """

    def __init__(self, address: str, name: str, priority: str, http: str) -> None:
        command = [
            sys.executable,
            "-m",
            "bench.http.priority",
            "--keep-full",
            address,
            name,
            priority,
        ]
        self._http = http
        self._processes = [
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        for process in self._processes:
            assert process.stdout is not None
            assert process.stdout.readline(), "a client has failed before its warm-up was over"
        self._signal(signal.SIGSTOP)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Let the processes run inside the context."""
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._signal(signal.SIGSTOP)
            wait_until_idle(self._http)

    def end(self) -> None:
        """Kill the processes and wait for them."""
        self._signal(signal.SIGKILL)
        for process in self._processes:
            process.communicate()

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            process.send_signal(number)


def rows_of(
    served: Served, work: Sequence[str], background_port: int, ending: contextlib.ExitStack
) -> dict[str, Callable[[], contextlib.AbstractContextManager[None]]]:
    """Return the rows, as `in_turns` takes them; `ending` ends the processes of their clients."""
    rows: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
        "idle": contextlib.nullcontext,
        "another program that counts": functools.partial(another_process, COUNTING),
        "another program, 512² MatMuls": functools.partial(another_process, MULTIPLYING),
    }
    for name in work:
        for priority in ("low",) if name.endswith(OWN_PORT) else ("low", "equal"):
            address = served.grpc if name.endswith(GRPC) else served.http
            if name.endswith(OWN_PORT):
                address = f"grpc://127.0.0.1:{background_port}"
            busy = BusyClients(address, name, priority, served.http)
            ending.callback(busy.end)
            rows[f"{name}, {priority}"] = busy.turn
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each row")
    parser.add_argument("--processes", type=int, default=1, help="of the server")
    parser.add_argument("--model", type=pathlib.Path, help="a SavedModel to use as other work")
    parser.add_argument("--prompt-client", action="store_true", help="preempts what runs")
    parser.add_argument("--keep-full", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.keep_full:
        keep_full(*options.keep_full)
    models, work = [DIGITS], list(GRAPHS)
    if options.model:
        name = name_of_model(options.model)
        work += [name, name + GRPC, name + OWN_PORT]
        folder = options.model.parent if options.model.name.isdigit() else options.model
        models.append({"name": name, "base_path": str(folder)})
    port = free_port()
    config = {
        **CONFIG,
        "models": models,
        "processes": options.processes,
        "grpc": {"background_port": port},
    }
    with runstep_server(config) as served, contextlib.ExitStack() as ending:
        rows = rows_of(served, work, port, ending)
        if options.prompt_client:
            share_processors(0, SHORTEST_SLICE_SECONDS)
        run = predictions(served.http)
        gc.freeze()  # otherwise a collection in this process, the client, takes up to 20 ms
        figures = figures_in_turns(rows, run, options.seconds, LOAD)
    print(latency_table(figures))
    if options.json:
        write_json(options.json, figures)


if __name__ == "__main__":
    main()

"""Measure the latency of a tiny step on each target: direct, HTTP, REST with JSON, gRPC.

    python -m bench.targets [--steps N] [--tensorflow PYTHON]

The step is x + 1 of a float scalar. The server is another process on this machine. PYTHON is an
interpreter with TensorFlow: its client is measured against Runstep's gRPC port and against a
`tf.distribute.Server`, and Runstep's client against that server too. The measurements take turns,
so that a disturbance by the machine affects all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import grpc
import httpx
import numpy as np

import protos as pb
from bench.measure import median, percentile
from bench.serving import runstep_server
from bench.tables import table
from runtime.api import SessionOptions, new_session
from tests.conformance.case import Graph

ROUNDS = 10  # turns of each measurement
WARM_UP = 20
X = np.float32(1)
Measured = dict[str, list[float]]  # row → seconds of each step

# A server that returns the bytes of the request: the cost of gRPC alone.
ECHO = """
import asyncio
import grpc.aio

async def echo(data, context):
    return data

async def main():
    server = grpc.aio.server()
    handlers = {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("echo", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"127.0.0.1:{port}", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
# SERVER and CLIENT run in the interpreter with TensorFlow. For every line (a number of steps) that
# it reads, the client prints the times of a round.
SERVER = """
import sys
import tensorflow as tf
print(tf.distribute.Server.create_local_server().target, flush=True)
sys.stdin.read()
"""
CLIENT = """
import json, sys, time
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [])
y = x + 1.0
session = tf.Session(sys.argv[1])
run = lambda: session.run(y, {x: 1.0})
for _ in range(20):
    run()
print("ready", flush=True)
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    print(json.dumps(times), flush=True)
"""


def x_plus_1() -> pb.GraphDef:
    graph = Graph()
    graph.add("AddV2", graph.placeholder("float32", "x", ()), np.float32(1), name="y")
    return graph.graph_def


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="of each target")
    parser.add_argument("--tensorflow", help="an interpreter that has TensorFlow")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        served = stack.enter_context(runstep_server({"models": []}))
        http, master = served.http, served.grpc
        calls: dict[str, Callable[[int], list[float]]] = {
            "direct, caller's thread": steps_of(session_step("", pool=-1)),
            "direct, on a pool": steps_of(session_step("")),
            "http, protobuf": steps_of(session_step(http)),
            "REST, JSON (httpx)": steps_of(rest_step(http)),
            "grpc": steps_of(session_step(master)),
            "grpc alone: 100 bytes to a bare grpc.aio server and back": steps_of(
                echo_step(stack.enter_context(printed_address(sys.executable, ECHO)))
            ),
        }
        if options.tensorflow:
            python = options.tensorflow
            theirs = stack.enter_context(printed_address(python, SERVER))
            calls["grpc, TensorFlow's client on our server"] = tensorflow_client(
                stack, python, master
            )
            calls["grpc, our client on TensorFlow's server"] = steps_of(session_step(theirs))
            calls["grpc, TensorFlow's client on TensorFlow's server"] = tensorflow_client(
                stack, python, theirs
            )
        measured: Measured = {row: [] for row in calls}
        for _ in range(ROUNDS):
            for row, run in calls.items():
                measured[row] += run(options.steps // ROUNDS)
    rows = [
        [row, f"{median(times) * 1e6:,.0f}", f"{percentile(times, 99) * 1e6:,.0f}"]
        for row, times in measured.items()
    ]
    print(table(["target", "median µs", "p99 µs"], rows))


def steps_of(step: Callable[[], object]) -> Callable[[int], list[float]]:
    """Return a function that runs a number of steps in sequence and returns their times."""
    for _ in range(WARM_UP):
        step()

    def run(count: int) -> list[float]:
        times = []
        for _ in range(count):
            started = time.perf_counter()
            step()
            times.append(time.perf_counter() - started)
        return times

    return run


def session_step(target: str, pool: int = 0) -> Callable[[], object]:
    session = new_session(SessionOptions(target))
    session.create(x_plus_1())
    options = pb.RunOptions(inter_op_thread_pool=pool)
    assert session.run({"x:0": X}, ["y:0"], (), options) == [2]
    return lambda: session.run({"x:0": X}, ["y:0"], (), options)


def rest_step(address: str) -> Callable[[], object]:
    """Return a step over REST with JSON as a client without this project would run it."""
    client = httpx.Client(base_url=address)
    made = client.post(
        "/v1/sessions",
        content=pb.CreateSessionRequest(graph_def=x_plus_1()).SerializeToString(),
        headers={"Content-Type": "application/x-protobuf"},
    )
    path = f"{made.headers['location']}:run"
    body = {"feeds": {"x:0": 1.0}, "fetches": ["y:0"]}
    assert client.post(path, json=body).json()["outputs"]["y:0"]["data"] == 2
    return lambda: client.post(path, json=body).json()


def started(python: str, program: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(
        [python, "-c", program, *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def echo_step(address: str) -> Callable[[], object]:
    call = grpc.insecure_channel(address).unary_unary("/echo/Echo")
    assert call(bytes(100)) == bytes(100)
    return lambda: call(bytes(100))


@contextlib.contextmanager
def printed_address(python: str, program: str) -> Iterator[str]:
    """Run a server program; yield the address that is its first line of output."""
    with started(python, program) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def tensorflow_client(
    stack: contextlib.ExitStack, python: str, target: str
) -> Callable[[int], list[float]]:
    """Return a function that runs a number of steps in TensorFlow's client, as `steps_of`."""
    process = stack.enter_context(started(python, CLIENT, target))
    stack.callback(process.kill)
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    def run(count: int) -> list[float]:
        print(count, file=process.stdin, flush=True)
        times: list[float] = json.loads(process.stdout.readline())  # type: ignore[union-attr]
        return times

    return run


if __name__ == "__main__":
    main()

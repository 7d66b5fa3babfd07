"""Measure how long tiny predictions wait beside a client that sends large JSON bodies.

    python -m bench.http.large_json [--seconds 20] [--megabytes 24] [--processes 1]

An open loop sends predictions of three numbers at 5 % of the rate that one client can reach. In
turns with idle ones, a client process predicts a JSON array of the given size without pause, and
receives an answer of about that size. With two processes of the server, each client is connected to
one of them.

The client process stands for another machine. Its system calls copy 24 MB, and most kernels do not
preempt them; therefore it sends and receives in parts, shares the processors as a low-priority
process does, and leaves one of them to others, like the clients of bench.http.priority.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import pathlib
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.http.priority import Client
from bench.http.rates import CONFIG, MODEL, PREDICT
from bench.measure import resident_bytes, write_json
from bench.serving import ROOT, runstep_server
from bench.stalls import figures_in_turns
from bench.tables import latency_table
from runtime.foundation.processor_share import (
    LONGEST_SLICE_SECONDS,
    leave_one_processor,
    share_processors,
)
from runtime.foundation.thread_pool import LOW_PRIORITY_NICE

LOAD = 0.05  # fraction of the rate that one client reaches; more would queue behind each body
PATH = f"/v1/models/{MODEL}:predict"
PART_BYTES = 64 << 10  # of one system call of the client
LIMITS = {"rest": {"host": "127.0.0.1", "max_body_bytes": 1 << 27}}


class PartsClient(Client):
    """A client that sends and receives a part in each system call."""

    def post(self, path: str, body: bytes, kind: str = "application/json") -> bytes:
        headers = {"Content-Type": kind, "Content-Length": str(len(body))}
        parts = (body[begin : begin + PART_BYTES] for begin in range(0, len(body), PART_BYTES))
        self._connection.request("POST", path, parts, headers)
        response = self._connection.getresponse()
        answer = b"".join(iter(lambda: response.read(PART_BYTES), b""))
        assert response.status == 200, answer[:1000]
        return answer


def large_body(megabytes: float) -> bytes:
    """Return the JSON of a prediction of random numbers, of about that many 10⁶ bytes."""
    numbers = np.random.default_rng(1).normal(size=1000).tolist()
    text = json.dumps(numbers)[1:-1]
    return f'{{"instances": [{", ".join([text] * round(megabytes * 1e6 / len(text)))}]}}'.encode()


def send_large_bodies(address: str, megabytes: float) -> None:
    """Send while told to: a line on standard input begins, the next one ends after an answer."""
    share_processors(LOW_PRIORITY_NICE, LONGEST_SLICE_SECONDS)
    leave_one_processor()
    body, client = large_body(megabytes), PartsClient(address)
    client.post(PATH, body)
    print("ready", flush=True)
    with open(0, "rb", buffering=0) as commands:  # a buffer would hide lines from `select`
        while commands.readline():
            count = 0
            while not select.select([commands], [], [], 0)[0]:
                client.post(PATH, body)
                count += 1
            commands.readline()
            print(count, flush=True)


class LargeBodies:
    """The client process; it sends inside `turn` only."""

    def __init__(self, address: str, megabytes: float) -> None:
        command = [sys.executable, "-m", "bench.http.large_json", "--send", address]
        self._process = subprocess.Popen(
            [*command, "--megabytes", str(megabytes)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.sent = 0
        self._line()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Send bodies inside the context; its end waits for the last answer."""
        assert self._process.stdin is not None
        print("begin", file=self._process.stdin, flush=True)
        try:
            yield
        finally:
            print("end", file=self._process.stdin, flush=True)
            self.sent += int(self._line())

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def measure(seconds: float, megabytes: float, processes: int = 1) -> dict[str, Any]:
    """Return {"rows": the latency figures by row, "large_bodies", "server_resident_mb"}.

    The last is of the server's first process, which with several processes starts the others.
    """
    config = CONFIG | LIMITS | {"processes": processes}
    with runstep_server(config) as served, contextlib.ExitStack() as ending:
        large = LargeBodies(served.http, megabytes)
        ending.callback(large.end)
        client = Client(served.http)
        run = lambda: client.post(PATH, PREDICT.encode())  # noqa: E731 - the loop's step
        gc.freeze()  # as in priority.py
        rows: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
            "idle": contextlib.nullcontext,
            f"a client sends {megabytes:g} MB of JSON": large.turn,
        }
        figures = figures_in_turns(rows, run, seconds, LOAD)
        resident = resident_bytes(served.process_id) / 1e6
    return {"rows": figures, "large_bodies": large.sent, "server_resident_mb": resident}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each row")
    parser.add_argument("--megabytes", type=float, default=24)
    parser.add_argument("--processes", type=int, default=1, help="of the server")
    parser.add_argument("--send", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.send:
        send_large_bodies(options.send, options.megabytes)
        return
    figures = measure(options.seconds, options.megabytes, options.processes)
    print(latency_table(figures["rows"]))
    print(f"{figures['large_bodies']} large bodies")
    if options.json:
        write_json(options.json, figures)


if __name__ == "__main__":
    main()

"""Predict at fixed times over one connection, in a process of its own, and note every latency.

    python -m bench.mixed_load.probe ADDRESS RATE FILE     # until its standard input ends

FILE gets a float64 array [requests, 2]: the instant at which each was due (`time.monotonic()`) and
its seconds from then to its answer. Prints how many requests ended with which code as JSON.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import select
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

from bench.mixed_load.clients import OFFSET, check_line
from bench.mixed_load.sender import Address, Sender
from bench.mixed_load.tally import Tally
from bench.serving import ROOT

FRONT = "REST predict, probe"


def probe(address: Address, rate: float, file: pathlib.Path) -> dict[str, int]:
    """Predict until standard input ends; return the counts by code."""
    sender, tally = Sender(address), Tally()
    seen: list[tuple[float, float]] = []
    due = time.monotonic() + 1 / rate
    while not select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
        with tally.watched(FRONT):
            for y in sender.predict():
                check_line(y, sender.x, frozenset({OFFSET}))
                tally.add(FRONT)
        seen.append((due, time.monotonic() - due))
        due += 1 / rate
    np.save(file, np.array(seen))
    print("\n".join(tally.notes), file=sys.stderr)
    return tally.counts()[FRONT]


class Probe:
    """The process; `times` are there after `probing`."""

    def __init__(self, address: Address, rate: float, file: pathlib.Path, tally: Tally) -> None:
        self._command = [sys.executable, "-m", "bench.mixed_load.probe", address.http, str(rate)]
        self._file, self._tally = file, tally
        self.times = np.empty((0, 2))

    @contextlib.contextmanager
    def probing(self) -> Iterator[None]:
        """Probe inside the context."""
        with subprocess.Popen(
            [*self._command, str(self._file)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            try:
                yield
                printed, _ = process.communicate()
            finally:
                process.kill()
        if process.returncode:
            self._tally.fail(FRONT, "NO_ANSWER", f"the probe ended with {process.returncode}")
            return
        self.times = np.load(self._file)
        for code, count in json.loads(printed).items():
            self._tally.add(FRONT, code, count)


if __name__ == "__main__":
    http, rate, file = sys.argv[1:]
    print(json.dumps(probe(Address(http, "127.0.0.1:1"), float(rate), pathlib.Path(file))))

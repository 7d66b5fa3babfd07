"""Attack the server in full size and measure what it costs everybody else.

    python -m bench.attacks [--only KEY …] [--json FILE] [--write] [--max-gigabytes 4]
    python -m bench.attacks --rewrite

The attacks are those of tests/attacks, which docs/robustness.md lists. Each has a server of its own
with the default settings, bound to loopback, with a limit of MAX_STEP_SECONDS for steps, as a
server that strangers reach has one, and of MAX_PROCESS_BYTES for values. Beside the attack another
process requests /healthz without pause over one connection: the slowest answer is printed. A server
whose resident memory exceeds `--max-gigabytes` is killed, which fails the attack.

`--write` puts the figures of these attacks into bench/attacks.json and the page; `--rewrite` writes
the page again. Exits with 1 if an answer is not one of the right ones.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import pathlib
import select
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Any

from bench.machine import describe
from bench.measure import resident_bytes, write_json
from bench.serving import ROOT
from bench.tables import table
from server.rest.session_docs import half_plus_two_graph
from tests.attacks.attack import Attack, Target
from tests.attacks.page import FIGURES, read_figures, rewrite
from tests.attacks.rows import ATTACKS
from tests.attacks.small import SERVER, attacked_server, merged
from tests.attacks.watch import MemoryWatch
from tests.integration.rest_server import RUN_Y
from tests.integration.server_process import ServerProcess

MAX_STEP_SECONDS = 10
MAX_PROCESS_BYTES = 2 << 30  # the default depends on the machine: half of what it has left
SETTLE_SECONDS = 1.0  # after an attack, before what the server keeps is measured
HEAD = ("attack", "answer", "s", "/healthz ms", "MB before", "peak", "after", "")


class Probe:
    """A process that requests /healthz without pause."""

    def __init__(self, address: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.attacks", "--probe", address],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def slowest(self) -> float | None:
        """End the process; return the seconds of the slowest answer, None if one was missing."""
        said, _ = self._process.communicate("end\n")
        value = json.loads(said or "null")
        return None if value is None else float(value)


def probe(address: str) -> None:
    """Request /healthz until a line arrives on standard input; print the slowest answer."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc, timeout=100)
    slowest: float | None = 0.0
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0.002)[0]:
        begun = time.perf_counter()
        try:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            slowest = None
            break
        slowest = max(slowest or 0.0, time.perf_counter() - begun)
    print(json.dumps(slowest))


@contextlib.contextmanager
def full_server() -> Iterator[tuple[ServerProcess, Target]]:
    """Run a server with the default settings but for the limits of steps and of the process."""
    limits = {
        "sessions": {"max_step_seconds": MAX_STEP_SECONDS},
        "memory": {"max_process_bytes": MAX_PROCESS_BYTES},
        "clusters": "auto",
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        attacked_server(merged(SERVER, limits), pathlib.Path(folder)) as served,
    ):
        yield served


def measure(attack: Attack, max_bytes: int) -> dict[str, Any]:
    """Attack a new server; return the answer and its cost."""
    with full_server() as (server, target):
        pid = server.process.pid
        witness = target.open_session(half_plus_two_graph())
        send = attack.prepare(target, attack.full)
        health = Probe(server.http_address)
        with MemoryWatch(pid, max_bytes) as watch:
            begun = time.perf_counter()
            answer = send()
            seconds = time.perf_counter() - begun
            slowest = health.slowest()
            time.sleep(0 if watch.is_killed else SETTLE_SECONDS)
        if watch.is_killed:
            answer, after = f"killed at {watch.peak / 1e9:.1f} GB", 0
        else:
            after = resident_bytes(pid)
            if target.run(witness, RUN_Y) != "200":
                answer += ", but another session was harmed"
    return {
        "answer": answer, "seconds": seconds, "before": watch.before, "peak": watch.peak,
        "after": after, "stall_ms": None if slowest is None else slowest * 1e3,
    }  # fmt: skip


def cells(attack: Attack, seen: dict[str, Any]) -> list[str]:
    """Return the row of an attack."""
    stall = "–" if seen["stall_ms"] is None else f"{seen['stall_ms']:.0f}"
    memory = [f"{seen[key] / 1e6:.0f}" for key in ("before", "peak", "after")]
    verdict = "" if seen["answer"] in attack.answers else "WRONG"
    return [attack.key, seen["answer"], f"{seen['seconds']:.1f}", stall, *memory, verdict]


def chosen(keys: Sequence[str] | None) -> list[Attack]:
    """Return the attacks with these keys, or all."""
    return [attack for attack in ATTACKS if keys is None or attack.key in keys]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    keys = [attack.key for attack in ATTACKS]
    parser.add_argument("--only", nargs="+", choices=keys, metavar="KEY")
    parser.add_argument("--max-gigabytes", type=float, default=4)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--rewrite", action="store_true")
    parser.add_argument("--probe", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        probe(options.probe)
        return 0
    if options.rewrite:
        rewrite()
        return 0
    figures: dict[str, Any] = {"machine": describe(), "attacks": {}}
    print(table(HEAD, []), flush=True)
    is_right = True
    for attack in chosen(options.only):
        seen = measure(attack, int(options.max_gigabytes * 1e9))
        row = cells(attack, seen)
        print(f"| {' | '.join(row)} |", flush=True)
        is_right = is_right and not row[-1]
        figures["attacks"][attack.key] = seen
    if options.json:
        write_json(options.json, figures)
    if options.write:
        known = read_figures()["attacks"]
        write_json(FIGURES, figures | {"attacks": known | figures["attacks"]})
        rewrite()
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())

"""Soak the server: everything at once, for as long as it takes to see what leaks.

    python -m bench.soak --minutes N [--oracle PYTHON] [--seed N] [--json FILE] [--write]

A server process (clusters on, live models) gets requests of every kind from many clients:
predictions, classifications, sessions with variables, extensions, callables and partial runs over
REST and gRPC, low priority, large and compressed bodies; with `--oracle`, an interpreter that has
tensorflow, also from TensorFlow's own client. Meanwhile new versions of a model replace old ones,
processes of the low-priority pool are killed, bodies are poisoned, requests are left half sent or
their answers unread, steps are cancelled and expire, clients go away, leases run out. Every answer
is compared with a known result.

Prints a row a minute. Exits with 1 on a wrong answer; on a failed request, unless a process was
killed meanwhile that may explain it; on a fault in the server's log; if its resident memory grew by
more than 2 % after the first ten minutes (bench/soak/judgement.py says how that is measured); and
if the idle server has more threads or descriptors in the end than after the warm-up.

`--write` adds the run to bench/soak/runs.json and to docs/robustness.md.

`python -m bench.soak.sessions` does the same to sessions inside one process, without a server.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

from bench.machine import describe
from bench.measure import write_json
from bench.soak.judgement import Minute
from bench.soak.page import keep, run_of
from bench.soak.run import Plan, soak
from bench.soak.tables import HEAD, figures, kind_table, minute_row, summary
from bench.tables import table


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--oracle", help="an interpreter that has tensorflow")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    plan = Plan(60 * options.minutes, oracle=options.oracle, seed=options.seed)
    print(table(list(HEAD), []), flush=True)

    def report(number: int, minute: Minute) -> None:
        print(f"| {' | '.join(map(str, minute_row(number, minute)))} |", flush=True)

    outcome = soak(plan, report)
    print(f"\n{kind_table(outcome.minutes)}\n\n{summary(outcome)}")
    if options.json:
        write_json(options.json, figures(outcome))
    if options.write:
        keep(run_of(figures(outcome), describe()["day"], options.minutes))
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())

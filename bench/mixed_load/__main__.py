"""Load a server over every front while models come and go and a second server drains.

    python -m bench.mixed_load --minutes N [--megabytes 500] [--json FILE]

Clients of a bounded rate predict over REST, v2 (JSON and binary), gRPC Predict and ModelInfer, and
open, run and close sessions. Meanwhile, one event after the other, with pauses between: a tiny
model gets a new version and loses the old one; a model of 500 MB of random weights is loaded, used
and unloaded; a second server gets SIGTERM beside large bodies, ends, and is started again. Clients
of that one are behind a balancer, which sends to it while its /readyz is 200; what it refuses
because it drains is sent to the first server, as balancers do.

A process of its own sends tiny predictions at fixed times and notes the latency of each from the
time at which it was due. Printed: the requests by front and code; of tenths of a second without an
event, and of those that an event touches, the median of the p99, and its ratio to the former; the
bar for loads of the large model is 1.5.

Exits with 1 if a request fails, an answer is wrong, a server ends with another code than 0, or its
log has an error.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time

from bench.machine import describe
from bench.measure import write_json
from bench.mixed_load.run import Plan, mixed_load
from bench.mixed_load.tables import figures, latency_rows, request_table, summary


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--megabytes", type=float, default=Plan.megabytes, help="large model")
    parser.add_argument("--probe-rate", type=float, default=Plan.probe_rate, help="per second")
    parser.add_argument("--pause", type=float, default=Plan.pause, help="seconds before an event")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    plan = Plan(
        60 * options.minutes, probe_rate=options.probe_rate, megabytes=options.megabytes,
        pause=options.pause,
    )  # fmt: skip
    machine, begun = describe(), time.monotonic()

    def report(kind: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {kind}", flush=True)

    found = {"machine": machine, "minutes": options.minutes, **figures(mixed_load(plan, report))}
    print(f"\n{request_table(found['requests'])}\n\n{latency_rows(found)}\n\n{summary(found)}")
    if options.json:
        write_json(options.json, found)
    return 1 if found["failed"] or found["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Search for inputs that break a target, make them smaller, and keep them for the tests.

    python -m tests.fuzz --target graphs --inputs 100000 --seed 1

Without `--seed` a seed is taken that has not been used. Findings are written to tests/fuzz/findings
and the numbers of inputs to tests/fuzz/totals.json and docs/robustness.md. `--show NUMBER` writes
one input and its outcome instead, and `--file PATH` those of a finding.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
from collections.abc import Sequence

from tests.fuzz.campaign import Finding, minimized, outcome_alone, search
from tests.fuzz.findings import keep
from tests.fuzz.target import Target, input_of, signature
from tests.fuzz.targets.registered import TARGETS, make_target
from tests.fuzz.totals import add_run, next_seed


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; return 1 if there are findings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", choices=sorted(TARGETS), help="all if it is not given")
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--children", type=int, default=os.cpu_count())
    parser.add_argument("--show", type=int)
    parser.add_argument("--file", type=pathlib.Path)
    parser.add_argument("--try", dest="is_try", action="store_true", help="keep nothing")
    options = parser.parse_args(arguments)
    found = 0
    for name in [options.target] if options.target else TARGETS:
        target = make_target(name)
        seed = next_seed(name) if options.seed is None else options.seed
        if options.file is not None:
            _show(target, options.file.read_bytes())
        elif options.show is not None:
            target.load()
            _show(target, input_of(target, seed, options.show))
        else:
            found += _search(target, seed, options)
    return int(found > 0)


def _show(target: Target, data: bytes) -> None:
    _write(f"{target.show(data)}\n{outcome_alone(target, data)}")


def _search(target: Target, seed: int, options: argparse.Namespace) -> int:
    started = time.monotonic()

    def tell(finding: Finding) -> None:
        _write(f"{target.name} {seed}/{finding.number}: {finding.outcome}")

    numbers = range(options.first, options.first + options.inputs)
    outcomes = search(target, numbers, seed, options.children, tell)
    counts = ", ".join(f"{count} {word}" for word, count in sorted(outcomes.counts.items()))
    _write(f"{target.name} seed {seed}, {time.monotonic() - started:.0f} s: {counts}")
    if options.is_try:
        for finding in outcomes.findings:
            _write(f"  {finding.count} {finding.signature} ({finding.number})")
        return len(outcomes.findings)
    for finding in outcomes.findings:
        _keep(target, seed, finding)
    add_run(target.name, seed, options.first, options.inputs, TARGETS)
    return len(outcomes.findings)


def _keep(target: Target, seed: int, finding: Finding) -> None:
    data = input_of(target, seed, finding.number)
    if signature(outcome_alone(target, data)) != finding.signature:
        _write(f"  {finding.signature} ({finding.number}) needs the inputs before it")
        return
    path = keep(target.name, finding.signature, minimized(target, data, finding.signature))
    _write(f"  {finding.count} {finding.signature}: {path}")


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

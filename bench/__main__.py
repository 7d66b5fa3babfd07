"""Run the benchmarks: `python -m bench`, or `make bench`.

    python -m bench [--models DIR] [--peers PYTHON] [--only SECTION …] [--bars] [--json FILE]
                    [--write] [--full]
    python -m bench --rewrite

Without options: what needs nothing but this repository, on the example models. `--models` names the
folder of exported models (`make bench-models` fills it); with `--peers`, an interpreter that has
TensorFlow, tf2onnx, ONNX Runtime and OpenVINO, models that are missing there are exported first,
and the peers are measured in turns with Runstep. `--bars` prints each figure beside its bar.
`--full` measures as long as the published figures require: half an hour, with nothing else on the
machine. `--write`, which requires all sections, puts the figures into bench/results.json and the
tables of the README and of docs/benchmarks.md; `--rewrite` writes those tables again from
bench/results.json.

Each section is a module that can be run alone, with more options; its docstring is its method:
step_times, session_overhead, http.rates, http.large_json, start, installed_size, open_sessions,
unloading, priority, fronts, batching, http.priority. Not part of a run: kernels, stalls, targets,
compare, soak, mixed_load, attacks.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from bench.bars import all_bars, bars_table
from bench.machine import describe, disturbance
from bench.measure import write_json
from bench.readme_tables import RESULTS, read_results, update_pages
from bench.sections import ROOT, SECTIONS, Run, Section
from bench.stalls import stalled_share

WATCHED_SECONDS = 10  # before the run, for stalls of the machine


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=pathlib.Path, help="folder of exported models")
    parser.add_argument("--peers", help="an interpreter that has the peers")
    names = [section.name for section in SECTIONS]
    parser.add_argument("--only", nargs="*", default=names, choices=names, metavar="SECTION")
    parser.add_argument("--bars", action="store_true", help="print each figure beside its bar")
    parser.add_argument("--full", action="store_true", help="measure for half an hour")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to this file")
    parser.add_argument("--write", action="store_true", help="write results.json and the tables")
    parser.add_argument("--rewrite", action="store_true", help="write the tables again")
    options = parser.parse_args()
    if options.rewrite:
        update_pages(read_results())
        return 0
    if options.write and set(options.only) != set(names):
        parser.error("--write requires all sections: the published figures are those of one run")
    if options.peers and options.models:
        export_models(options.peers, options.models)
    run = Run(options.models and options.models.resolve(), options.peers, options.full)
    machine = describe()
    stalled = stalled_share(WATCHED_SECONDS)
    if stalled is not None:
        machine["stalled_share"], machine["longest_stall_s"] = stalled
    results: dict[str, Any] = {"machine": machine, "sections": {}}
    failed = []
    chosen = [section for section in SECTIONS if section.name in options.only]
    for number, section in enumerate(chosen, 1):
        figures = measure(section, run, f"{number} of {len(chosen)}")
        if figures is None:
            failed.append(section.name)
        else:
            results["sections"][section.name] = figures
    if options.bars:
        print(f"\n{bars_table(all_bars(results['sections']))}")
        why = disturbance(results["machine"], results["sections"].get("steps", {}))
        print(f"\nThe machine was not quiet: {why}." if why else "\nThe machine was quiet.")
    if options.json:
        write_json(options.json, results)
    if options.write and not failed:
        write_json(RESULTS, results)
        update_pages(results)
    print(f"\nfailed: {', '.join(failed)}" if failed else "", end="\n" if failed else "")
    return 1 if failed else 0


def measure(section: Section, run: Run, place: str) -> Any:
    """Run a section, which prints its table; return its figures, or None if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "figures.json")
        arguments = section.arguments(run)
        print(f"\n[{place}] {section.module} {' '.join(arguments)}\n", flush=True)
        command = [sys.executable, "-m", section.module, *arguments, "--json", str(file)]
        code = subprocess.run(command, cwd=ROOT).returncode
        return json.loads(file.read_text(encoding="utf-8")) if code == 0 else None


def export_models(python: str, models: pathlib.Path) -> None:
    """Export the models that the folder lacks."""
    command = [python, "tools/export/bench_models.py", str(models.resolve())]
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())

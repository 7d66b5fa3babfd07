"""Compare the answers of TensorFlow and of this runtime to random cases, op by op.

    make oracle                                     # every op; writes docs/oracle.json
    python tools/oracle.py --tensorflow PYTHON [op …]
    python tools/oracle.py --tensorflow PYTHON Tile --case int32/7      # both answers of one case

PYTHON is an interpreter with tensorflow installed. A random case is a recorded conformance case
with random changes of types, shapes, values and attributes. A case on which TensorFlow crashes or
blocks, or for which it has no kernel, has no reference and is not counted.

TensorFlow's answers are stored in .oracle/. With --write, an interrupted run is resumed.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from runtime.api import set_tensor_limit
from server.commands.progress import Done
from server.commands.progress import Progress as ProgressBar
from tests.conformance.case import Answer
from tools.oracle_comparison import workers
from tools.oracle_comparison.agreement import compare, our_answers
from tools.oracle_comparison.comparison import (
    Report,
    Request,
    Tally,
    counts_text,
    make_case,
    sum_of,
    type_name,
    types_of,
)
from tools.oracle_comparison.progress import Progress
from tools.oracle_comparison.reference import Reference, version_of
from tools.oracle_comparison.seeds import seeds_by_op

SUMMARY = ROOT / "docs" / "oracle.json"
ANSWERS = ROOT / ".oracle"


def print_report(report: Report, bar: ProgressBar) -> None:
    for line in report.lines:
        bar.print(f"  {line}")
    differing = "".join(
        f"; {name} {each.agreed}/{each.tried}"
        for name, each in report.tallies.items()
        if each.differing
    )
    bar.print(f"{report.op}: {counts_text(report.total)}{differing}")


def show(reference: Reference, op: str, arguments: argparse.Namespace) -> None:
    """Print the graph and the feeds of one case, and both answers."""
    label, number = arguments.case.split("/")
    dtype = next(t for t in types_of(op) if type_name(t) == label)
    case = make_case(op, dtype, arguments.seed, int(number))
    reference.open(op)
    for node in case.graph.node:
        if node.op != "Placeholder":
            print(" ".join(str(node).split()))
    for step in case.steps:
        for name, value in step.feeds.items():
            print(f"{name} {value.dtype}{list(value.shape)}: {value.tolist()!r}")
    (theirs,) = reference.answers([case])
    ours = our_answers(case)
    print_answers("here", ours)
    print_answers("TensorFlow", [theirs] if isinstance(theirs, str) else theirs)
    if not isinstance(theirs, str):
        print(compare(case, ours, theirs))


def print_answers(who: str, answers: list[Answer | str] | list[Answer] | list[str]) -> None:
    for answer in answers:
        if isinstance(answer, str):
            print(f"{who}: {answer}")
        elif answer.code:
            print(f"{who}: error {answer.code} {answer.message}")
        for value in getattr(answer, "values", ()):
            print(f"{who}: {value.dtype}{list(value.shape)} {value.tolist()!r}")


def write_summary(results: dict[str, dict[str, Tally]], version: str, seed: int) -> None:
    """Write docs/oracle.json; ops that did not run keep their rows.

    It has op → {"types": type → [agreed on values, on shapes, on refusal, differing], "excused":
    rule → cases of all types}.
    """
    known = json.loads(SUMMARY.read_text()) if SUMMARY.exists() else {"ops": {}}
    counts = {
        op: {
            "types": {
                name: [t.values, t.shapes, t.refusals, t.differing]
                for name, t in sorted(tallies.items())
                if t.tried
            },
            "excused": dict(sorted(sum_of(tallies.values()).excused.items())),
        }
        for op, tallies in results.items()
    }
    merged = {**known["ops"], **counts}
    lines = [f"  {json.dumps(op)}: {json.dumps(merged[op])}" for op in sorted(merged)]
    release = ".".join(version.split(".")[:2]) or known.get("tensorflow", "")
    SUMMARY.write_text(
        '{"ops": {\n'
        + ",\n".join(lines)
        + f'\n}}, "tensorflow": {json.dumps(release)}, "seed": {seed}}}\n'
    )


def compare_ops(ops: list[str], arguments: argparse.Namespace) -> dict[str, Report]:
    """Compare the ops that an interrupted run has not compared yet, and print the differences."""
    request = Request(arguments.seed, arguments.cases, arguments.messages)
    progress = Progress(ANSWERS / "progress.jsonl", request) if arguments.write else None
    reports = progress.reports() if progress else {}
    if progress:
        progress.begin(reports)
    rest = [op for op in ops if op not in reports]
    if len(rest) < len(ops):
        print(f"{len(ops) - len(rest)} ops were compared before this run was stopped")
    if arguments.jobs > 1:
        python = arguments.tensorflow
        found = workers.in_parallel(
            lambda: workers.Worker(workers.work, python, ANSWERS, request), rest, arguments.jobs
        )
    else:
        reference = Reference(arguments.tensorflow, ANSWERS, arguments.kept)
        found = workers.in_this_process(reference, rest, request)

    def done() -> Done:
        return Done(len(reports) / max(1, len(ops)), f"{len(reports)} of {len(ops)} ops")

    with ProgressBar("Comparing", done=done) as bar:
        for report in found:
            print_report(report, bar)
            reports[report.op] = report
            if progress:
                progress.add(report)
    if progress:
        progress.finish()
    return {op: reports[op] for op in ops}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("ops", nargs="*", help="default: every op with recorded cases")
    parser.add_argument("--tensorflow", required=True, help="an interpreter that has tensorflow")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=Request.cases, help="for each op and type")
    parser.add_argument("--jobs", type=int, help="processes; default: one a core, for all ops")
    parser.add_argument("--case", help="TYPE/NUMBER: print both answers of this one")
    parser.add_argument("--messages", action="store_true", help="print errors in other words")
    parser.add_argument("--kept", action="store_true", help="ask nothing: answers of earlier runs")
    parser.add_argument("--write", action="store_true", help="write docs/oracle.json")
    arguments = parser.parse_args()
    if os.sep in arguments.tensorflow:  # the processes have another working directory
        arguments.tensorflow = os.path.abspath(arguments.tensorflow)
    arguments.jobs = arguments.jobs or (1 if arguments.ops else os.cpu_count() or 1)
    ops = arguments.ops or list(seeds_by_op())
    if unknown := [op for op in ops if op not in seeds_by_op()]:
        raise SystemExit(f"no recorded case to start from: {' '.join(unknown)}")
    if arguments.case:
        set_tensor_limit(workers.MAX_TENSOR)
        reference = Reference(arguments.tensorflow, ANSWERS, arguments.kept)
        show(reference, ops[0], arguments)
        reference.close()
        return
    version = "" if arguments.kept else version_of(arguments.tensorflow)
    reports = compare_ops(ops, arguments)
    total = sum_of(report.total for report in reports.values())
    print(f"{len(reports)} ops: {counts_text(total)}")
    if arguments.write:
        tallies = {op: report.tallies for op, report in reports.items()}
        write_summary(tallies, version, arguments.seed)


if __name__ == "__main__":
    main()

"""Write docs/ops.md, the counts in README.md and the index of kernels from the kernel tables.

The types that TensorFlow's kernels accept are in docs/kernel_dtypes.json; the types covered here
are read from the recorded cases; docs/oracle.json, if it exists, counts random comparisons.

    python tools/write/op_table.py           # write
    python tools/write/op_table.py --check   # exit with 1 if a file is out of date

A test runs the check.
"""

from __future__ import annotations

import collections
import dataclasses
import importlib
import json
import pathlib
import re
import sys
from collections.abc import Mapping
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from runtime.executors.dataflow_graph import V1_CONTROL_FLOW
from runtime.framework.dtypes import DataType, from_name
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_def_registry import all_op_defs
from runtime.kernels import KERNEL_MODULES, kernel_defs
from tests.conformance.shown_types import ShownTypes, nodes_of, recorded_cases, shown_types
from tools.oracle_comparison.left_out import reason_left_out

OPS_PAGE = ROOT / "docs" / "ops.md"
OP_INDEX = ROOT / "runtime" / "kernels" / "op_index.json"
README = ROOT / "README.md"
KERNEL_DTYPES = ROOT / "docs" / "kernel_dtypes.json"
OUT_OF_REACH = ROOT / "docs" / "types_out_of_reach.json"
ELEMENT_TYPES = ROOT / "tools" / "record" / "element_types.json"
ORACLE = ROOT / "docs" / "oracle.json"
TIERS = ROOT / "docs" / "op_tiers.txt"
# Ops without a kernel, which the executors run.
BY_EXECUTOR = V1_CONTROL_FLOW | {"_Arg", "_Retval", "_Send", "_Recv"}
PAGE_HEAD = (
    "# Operations",
    "",
    "Written by `tools/write/op_table.py` from the kernel tables and the conformance cases; a",
    "test checks that it is up to date.",
    "",
    "*Element types*: `shown/taken` for each type attribute. *Taken* are the types that TensorFlow",
    "2.21's CPU kernels accept: those for which they are registered, and for kernels registered",
    "without a type constraint those with which a trial succeeded in TensorFlow",
    "(`kernel_dtypes.json`, recorded by `tools/record/kernel_dtypes.py`). Types with which no",
    "graph succeeds are not counted but [listed below](#registered-but-out-of-reach). *Shown* are",
    "the types for which a recorded case agrees with TensorFlow here; the rest is *missing*, even",
    "where the kernel would run.",
    "",
    "*Cases*: the number of recorded cases that contain the op; a test fails unless each agrees",
    "with TensorFlow's answer on every executor. *Random cases*: how many cases of `make oracle`",
    "agree on *values*; on types and *shapes*, where nothing else is determined; on the code of",
    "the error with which every step is *refused*; how many *differ*; and how many differ in a way",
    "that [kernel_differences.md](kernel_differences.md) documents, by its entry (*excused*). *no",
    "answer* if TensorFlow gave none that counts; or the reason why the op is not compared.",
)
OUT_OF_REACH_HEAD = (
    "",
    "## Registered, but out of reach",
    "",
    "TensorFlow has a CPU kernel for these types, but no graph with it succeeds. The table gives",
    "TensorFlow's error for an attempt with each type (`types_out_of_reach.json`, recorded by",
    "`tools/record/types_out_of_reach.py` with the graphs of `tools/record/attempted_types.py`).",
    "",
    "| op and attribute | types | TensorFlow |",
    "| --- | --- | --- |",
)
NOT_FOLLOWED_HEAD = (
    "",
    "## Answered otherwise",
    "",
    "Missing types for which the kernels here give another answer than TensorFlow, on purpose:",
    "see [kernel_differences.md](kernel_differences.md).",
    "",
    "| op and attribute | types |",
    "| --- | --- |",
)


def tiers() -> dict[str, list[str]]:
    """Return tier → its ops."""
    parts = re.split(r"^# (Tier \d):.*$", TIERS.read_text(), flags=re.MULTILINE)
    return {name: ops.split() for name, ops in zip(parts[1::2], parts[2::2], strict=True)}


def modules_by_op() -> dict[str, list[str]]:
    """Return op → the kernel modules that register kernels for it, such as `array.gather`."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    for name in KERNEL_MODULES:
        for kernel in importlib.import_module(f"runtime.kernels.{name}").KERNELS:
            if name not in found[kernel.op]:
                found[kernel.op].append(name)
    return found


def cases_by_op() -> collections.Counter[str]:
    """Return op → the number of recorded cases that contain it."""
    counts: collections.Counter[str] = collections.Counter()
    for _, case, _ in recorded_cases():
        counts.update({node.op for node in nodes_of(case)})
    return counts


def kernel_types() -> ShownTypes:
    """Return op → attribute → the element types that TensorFlow's CPU kernels accept."""
    types = {
        op: {attr: set(map(from_name, names.split())) for attr, names in attrs.items()}
        for op, attrs in json.loads(KERNEL_DTYPES.read_text()).items()
    }
    for key, reasons in out_of_reach().items():
        op, _, attr = key.rpartition(".")
        types[op][attr] -= set(map(from_name, " ".join(reasons.values()).split()))
    return types


def out_of_reach() -> dict[str, dict[str, str]]:
    """Return `op.attribute` → TensorFlow's error for a graph with the type → types."""
    return dict(json.loads(OUT_OF_REACH.read_text()))


def left_out() -> dict[str, str]:
    """Return `op.attribute` → types without a case, because their answers differ here."""
    return dict(json.loads(ELEMENT_TYPES.read_text())["left out"])


@dataclasses.dataclass(frozen=True)
class TypeCoverage:
    """The (attribute, element type) pairs that TensorFlow accepts, and those that cases cover."""

    taken: ShownTypes
    shown: ShownTypes

    def counts(self, op: str) -> tuple[int, int]:
        """Return the numbers of pairs of the op: (shown, taken by TensorFlow)."""
        taken = self.taken.get(op, {})
        covered = sum(len(types & self._shown(op, attr)) for attr, types in taken.items())
        return covered, sum(map(len, taken.values()))

    def text(self, op: str) -> str:
        """Return the op's counts by attribute, such as `T 12/12, Tindices 2/2`."""
        taken = self.taken.get(op, {})
        return ", ".join(
            f"{attr} {len(types & self._shown(op, attr))}/{len(types)}"
            for attr, types in taken.items()
            if types
        )

    def missing(self, op: str) -> str:
        """Return the op's missing types by attribute, such as `T: half, uint4`."""
        found = []
        for attr, types in self.taken.get(op, {}).items():
            lacking = types - self._shown(op, attr)
            if lacking:
                found.append(f"{attr}: {', '.join(t.tf_name for t in sorted(lacking))}")
        return "; ".join(found)

    def missing_among(self, rows: dict[str, str]) -> dict[str, list[str]]:
        """Return the missing types among those given for each `op.attribute`."""
        found = {}
        for key, names in rows.items():
            op, _, attr = key.rpartition(".")
            lacking = self.taken[op][attr] - self._shown(op, attr)
            found[key] = [name for name in names.split() if from_name(name) in lacking]
        return {key: names for key, names in found.items() if names}

    def _shown(self, op: str, attr: str) -> set[DataType]:
        return self.shown.get(op, {}).get(attr, set())


KINDS = ("values", "shapes", "refused", "differ")  # of docs/oracle.json, by position


def random_comparison(op: str, counts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the counts of random cases by kind, or why there are none.

    Such as `280 values, 20 refused; excused: 2 half types`.
    """
    if op not in counts:
        return reason_left_out(op)
    rows = counts[op]["types"].values()
    numbers = [sum(row[place] for row in rows) for place in range(len(KINDS))]
    agreed = ", ".join(f"{n} {kind}" for n, kind in zip(numbers, KINDS, strict=True) if n)
    excused = ", ".join(f"{n} {rule}" for rule, n in counts[op]["excused"].items())
    return "; excused: ".join(filter(None, (agreed, excused))) or "no answer"


def random_totals(counts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the counts of all ops' random cases as a Markdown table, with the excuses by rule."""
    rows = [row for op in counts.values() for row in op["types"].values()]
    numbers = [sum(row[place] for row in rows) for place in range(len(KINDS))]
    excused: collections.Counter[str] = collections.Counter()
    for op in counts.values():
        excused.update(op["excused"])
    total = max(1, sum(numbers) + excused.total())
    names = ("agree on values", "agree on types and shapes", "agree on refusal", "differ")
    lines = ["| random cases | number | share |", "| --- | --- | --- |"]
    for name, number in (*zip(names, numbers, strict=True), ("excused", excused.total())):
        lines.append(f"| {name} | {number} | {100 * number / total:.1f} % |")
    for rule, number in excused.most_common():
        lines.append(f"| excused: {rule} | {number} | {100 * number / total:.2f} % |")
    return "\n".join(lines)


def supported() -> set[str]:
    """Return the ops that can run here."""
    return set(KernelRegistry(kernel_defs()).ops) | BY_EXECUTOR


def summary(coverage: TypeCoverage) -> str:
    """Return the counts as a Markdown table."""
    known, have = all_op_defs(), supported()
    rows = [
        "| ops | in TensorFlow 2.21 | run here | their types in TensorFlow | shown here |",
        "| --- | --- | --- | --- | --- |",
    ]
    groups = {
        f"{name.lower()} of [docs/op_tiers.txt](docs/op_tiers.txt)": ops
        for name, ops in tiers().items()
    }
    for title, ops in {**groups, "all": list(known)}.items():
        run = [op for op in ops if op in have]
        pairs = [coverage.counts(op) for op in run]
        shown, taken = (sum(pair[side] for pair in pairs) for side in (0, 1))
        rows.append(f"| {title} | {len(ops)} | {len(run)} | {taken} | {shown} |")
    return "\n".join(rows)


def page(coverage: TypeCoverage) -> str:
    """Return the text of docs/ops.md."""
    modules, counts = modules_by_op(), cases_by_op()
    compared = json.loads(ORACLE.read_text())["ops"] if ORACLE.exists() else {}
    lines = [
        *PAGE_HEAD,
        "",
        summary(coverage).replace("](docs/", "]("),
        "",
        *((random_totals(compared), "") if compared else ()),
        "| op | element types | missing | kernel file | cases | random cases |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for op in sorted(modules.keys() | BY_EXECUTOR):
        cells = (
            op,
            coverage.text(op),
            coverage.missing(op),
            ", ".join(modules.get(op, ["executors"])).replace(".", "/"),
            str(counts[op] or ""),
            random_comparison(op, compared),
        )
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    lines += NOT_FOLLOWED_HEAD
    for key, types in coverage.missing_among(left_out()).items():
        lines.append(f"| {key} | {', '.join(types)} |")
    lines += OUT_OF_REACH_HEAD
    for key, reasons in out_of_reach().items():
        for error, types in reasons.items():
            lines.append(f"| {key} | {', '.join(types.split())} | {error} |")
    return "\n".join(lines) + "\n"


def index() -> str:
    """Return the text of runtime/kernels/op_index.json: op → kernel modules."""
    lines = [
        f"{json.dumps(op)}: {json.dumps(found)}" for op, found in sorted(modules_by_op().items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def readme(coverage: TypeCoverage) -> str:
    """Return README.md with the counts replaced."""
    text = README.read_text()
    block = (
        f"<!-- ops -->\n{summary(coverage)}\n\nA *type* is an "
        "element type that a kernel takes for one of "
        "its attributes. Every op with its types, kernel file and number of recorded cases: "
        "[docs/ops.md](docs/ops.md).\n<!-- /ops -->"
    )
    return re.sub(r"<!-- ops -->.*<!-- /ops -->", lambda _: block, text, flags=re.DOTALL)


def main() -> int:
    coverage = TypeCoverage(kernel_types(), shown_types())
    wanted = {OP_INDEX: index(), OPS_PAGE: page(coverage), README: readme(coverage)}
    if "--check" in sys.argv:
        stale = [path for path, text in wanted.items() if path.read_text() != text]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: python tools/write/op_table.py")
        return 1 if stale else 0
    for path, text in wanted.items():
        path.write_text(text)
    print(summary(coverage))
    return 0


if __name__ == "__main__":
    sys.exit(main())

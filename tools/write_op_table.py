"""Write docs/ops.md, the counts in README.md and the index of kernels from the kernel tables.

    python tools/write_op_table.py           # write
    python tools/write_op_table.py --check   # fail when they are not what the code says

A test runs the check, so the tables stay true.
"""

from __future__ import annotations

import collections
import importlib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from runtime.executors.dataflow_graph import V1_CONTROL_FLOW
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_def_registry import all_op_defs
from runtime.kernels import KERNEL_MODULES, kernel_defs

OPS_PAGE = ROOT / "docs" / "ops.md"
OP_INDEX = ROOT / "runtime" / "kernels" / "op_index.json"
README = ROOT / "README.md"
TIERS = ROOT / "docs" / "op_tiers.txt"
# Run by the executors themselves: they have no kernel.
BY_EXECUTOR = V1_CONTROL_FLOW | {"_Arg", "_Retval", "_Send", "_Recv"}


def tiers() -> dict[str, list[str]]:
    """Tier → its ops."""
    parts = re.split(r"^# (Tier \d):.*$", TIERS.read_text(), flags=re.MULTILINE)
    return {name: ops.split() for name, ops in zip(parts[1::2], parts[2::2], strict=True)}


def modules_by_op() -> dict[str, list[str]]:
    """Op → the kernel files that serve it."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    for name in KERNEL_MODULES:
        for kernel in importlib.import_module(f"runtime.kernels.{name}").KERNELS:
            if name not in found[kernel.op]:
                found[kernel.op].append(name)
    return found


def cases_by_op() -> collections.Counter[str]:
    """Op → in how many recorded cases it occurs."""
    counts: collections.Counter[str] = collections.Counter()
    for path in sorted((ROOT / "tests" / "conformance" / "cases").glob("[a-z]*.py")):
        for case in importlib.import_module(f"tests.conformance.cases.{path.stem}").CASES:
            functions = [node for f in case.graph.library.function for node in f.node_def]
            counts.update({node.op for node in [*case.graph.node, *functions]})
    return counts


def supported() -> set[str]:
    """Ops that a graph may use and run."""
    return set(KernelRegistry(kernel_defs()).ops) | BY_EXECUTOR


def summary() -> str:
    """The counts, as a table."""
    known, have = all_op_defs(), supported()
    rows = ["| ops | registered by TensorFlow 2.21 | run here |", "| --- | --- | --- |"]
    for name, ops in tiers().items():
        covered = sum(op in have for op in ops)
        rows.append(
            f"| {name.lower()} of [docs/op_tiers.txt](docs/op_tiers.txt) | {len(ops)} | {covered} |"
        )
    rows.append(f"| all | {len(known)} | {len(have & known.keys())} |")
    return "\n".join(rows)


def page() -> str:
    """docs/ops.md."""
    modules, counts = modules_by_op(), cases_by_op()
    lines = [
        "# Operations",
        "",
        "Written by `tools/write_op_table.py` from the kernel tables and the conformance cases; a",
        "test keeps it true. *Cases* counts the recorded cases in which the op occurs: each",
        "compares with TensorFlow 2.21's answer, on every executor.",
        "",
        summary().replace("](docs/", "]("),
        "",
        "| op | kernel file | cases |",
        "| --- | --- | --- |",
    ]
    for op in sorted(modules.keys() | BY_EXECUTOR):
        files = ", ".join(modules.get(op, ["executors"]))
        lines.append(f"| {op} | {files} | {counts[op] or ''} |")
    return "\n".join(lines) + "\n"


def index() -> str:
    """runtime/kernels/op_index.json: which modules serve an op."""
    lines = [
        f"{json.dumps(op)}: {json.dumps(found)}" for op, found in sorted(modules_by_op().items())
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def readme() -> str:
    """README.md with the counts in their place."""
    text = README.read_text()
    block = (
        f"<!-- ops -->\n{summary()}\n\nEvery op with its kernel file and number of recorded cases: "
        "[docs/ops.md](docs/ops.md).\n<!-- /ops -->"
    )
    return re.sub(r"<!-- ops -->.*<!-- /ops -->", lambda _: block, text, flags=re.DOTALL)


def main() -> int:
    wanted = {OP_INDEX: index(), OPS_PAGE: page(), README: readme()}
    if "--check" in sys.argv:
        stale = [path for path, text in wanted.items() if path.read_text() != text]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: python tools/write_op_table.py")
        return 1 if stale else 0
    for path, text in wanted.items():
        path.write_text(text)
    print(summary())
    return 0


if __name__ == "__main__":
    sys.exit(main())

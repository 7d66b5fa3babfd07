"""Write docs/gradients.md: the ops with a gradient function here, and those that TensorFlow has.

TensorFlow's registry is docs/gradient_registry.json, which tools/record/gradient_registry.py
records.

    python tools/write/gradient_table.py           # write
    python tools/write/gradient_table.py --check   # exit with 1 if the page is out of date

A test runs the check.
"""

from __future__ import annotations

import collections
import fnmatch
import json
import pathlib
import re
import sys
import textwrap
from collections.abc import Iterable

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import protos as pb
import runtime.client as tf
from runtime.client.ops.gradients import differentiation, gradient_registry
from runtime.framework.op_def_registry import all_op_defs
from tests.conformance.case import read_golden
from tests.gradients import test_slopes
from tests.gradients.gradient_case import GradientCase, cases_of, families, forward_graph
from tools.write.op_table import supported

assert differentiation  # registers the gradient functions of the front end

PAGE = ROOT / "docs" / "gradients.md"
REGISTRY = ROOT / "docs" / "gradient_registry.json"
LEFT_OUT = ROOT / "docs" / "ops_left_out.md"

# What a reader must know about an op's gradient, where it is not simply TensorFlow's.
_ALIGNED = "TensorFlow aligns the diagonals otherwise in the gradient; here it is the derivative"
_REFUSED = "raises NotImplementedError, as in TensorFlow"
_LOOP = "part of a loop of version 1, which is differentiated from its Exits on"
_REMOVED = "TensorFlow 2.21 registers the function, but refuses the op in new graphs"
_UNREGISTERED = "none in TensorFlow"
_REFERENCE = "of references, as the op without `Ref`; in a test of its own"
NOTES = {
    "Cumprod": "of complex numbers: TensorFlow's is not the derivative, as it lacks a conjugate",
    "MatrixDeterminant": "of complex matrices: as for `Cumprod`",
    **dict.fromkeys(("MatrixDiagV2", "MatrixDiagPartV2", "MatrixSetDiagV2"), _ALIGNED),
    "XlaEinsum": "compared with `Einsum`'s, since TensorFlow runs it in compiled functions only",
    "TopK": "TensorFlow's raises an error, as it reads an input that `TopK` lacks",
    "QuantizeAndDequantizeV4Grad": "TensorFlow's raises an error: it returns too few gradients",
    "PreventGradient": "raises LookupError with the op's message, as in TensorFlow",
    **dict.fromkeys(
        ("SparseDenseCwiseAdd", "SparseSparseMaximum", "SparseSparseMinimum", "SparseMatrixMul"),
        _REFUSED,
    ),
    **dict.fromkeys(("Enter", "RefEnter", "NextIteration", "RefNextIteration"), _LOOP),
    **{
        f"TensorArray{kind}V2": _REMOVED
        for kind in ("Concat", "Gather", "Read", "Scatter", "Split", "Write")
    },
    "BatchNormWithGlobalNormalization": _REMOVED,
    **dict.fromkeys(("RFFT3D", "IRFFT3D", "Snapshot"), _UNREGISTERED),
    **dict.fromkeys(
        ("PartitionedCall", "StatefulPartitionedCall"),
        "computes the function again; TensorFlow does this for functions that it traced",
    ),
    **dict.fromkeys(("Gather", "ResourceGather"), "IndexedSlices"),
    "GatherV2": "IndexedSlices along axis 0",
    "ResourceGatherNd": "IndexedSlices for indices `[n, 1]`",
    **dict.fromkeys(
        ("DebugGradientRefIdentity", "RefExit", "RefIdentity", "RefMerge", "RefSwitch"), _REFERENCE
    ),
    "QuantizeAndDequantize": "as `QuantizeAndDequantizeV2`; in a test of its own",
    "ReadVariableOp": "unchanged, as IndexedSlices if it is; in tests of variables",
    "StatelessParameterizedTruncatedNormal": "in a test of its own, with TensorFlow's formulas",
    "CTCLossV2": "no kernel here, as in TensorFlow on a CPU",
}
HEAD = (
    "# Gradients of operations",
    "",
    "Written by `tools/write/gradient_table.py` from the gradient functions of `runtime.client`",
    "and from TensorFlow 2.21's registry (`gradient_registry.json`, recorded by",
    "`tools/record/gradient_registry.py`); a test checks that it is up to date. How gradients are",
    "made: [front_end.md](front_end.md#gradients).",
    "",
)
FUNCTIONS_HEAD = (
    "",
    "## With a gradient function",
    "",
    "*TensorFlow*: in how many cases the gradients are compared with TensorFlow's recorded ones.",
    "*Slopes*: in how many cases they are compared with difference quotients.",
    "",
    "| op | TensorFlow | slopes | remark |",
    "| --- | --- | --- | --- |",
)
MISSING_HEAD = (
    "",
    "## In TensorFlow alone",
    "",
    "TensorFlow registers a gradient function for these ops. None of them has a kernel here but",
    "those of older JAX exports; the reasons are those of [ops_left_out.md](ops_left_out.md).",
    "",
    "| ops | reason |",
    "| --- | --- |",
)
CONSTANT_HEAD = (
    "",
    "## Not differentiable",
    "",
    "Backpropagation ends at these ops. For an op that this page does not name, `gradients` raises",
    "LookupError.",
)


def functions_here() -> tuple[set[str], set[str]]:
    """Return the ops (with a gradient function, not differentiable) here."""
    derivations = gradient_registry.registered()
    ops = set(all_op_defs())
    found = {op for op, each in derivations.items() if each.function is not None}
    return found & ops, (derivations.keys() - found) & ops


def registry() -> dict[str, set[str]]:
    """Return TensorFlow's registry: kind of registration → ops."""
    return {kind: set(ops) for kind, ops in json.loads(REGISTRY.read_text()).items()}


def cases_by_op() -> tuple[collections.Counter[str], collections.Counter[str]]:
    """Return op → numbers of cases (compared with TensorFlow, with difference quotients)."""
    recorded: collections.Counter[str] = collections.Counter()
    slopes: collections.Counter[str] = collections.Counter()
    for family in families():
        for case in cases_of(family).values():
            recorded.update(_ops_of(case))
    for _, (answer,) in read_golden("loop_gradients").values():
        graph = pb.GraphDef.FromString(answer.values[0].item())
        recorded.update({node.op for node in graph.node})
    for case in test_slopes.CASES.values():
        slopes.update(_ops_of(case))
    return recorded, slopes


def _ops_of(case: GradientCase) -> set[str]:
    """Return the ops that a case differentiates."""
    graph, ys, xs = forward_graph(case)
    with graph.as_default():
        for _ in range(case.order - 1):
            ys = tf.gradients(ys, xs)
    library = graph.as_graph_def().library.function
    inside = {node.op for function in library for node in function.node_def}
    return {each.type for each in graph.get_operations()} | inside


def reasons() -> list[tuple[str, str]]:
    """Return (pattern of op names, why there is no kernel) of docs/ops_left_out.md."""
    found = []
    for line in LEFT_OUT.read_text().splitlines():
        if line.startswith("| `"):
            _, names, reason, _ = line.split("|")
            patterns = re.findall(r"`([^`]+)`", names)
            found += [(each.replace("…", "*"), reason.strip()) for each in patterns]
    return found


# Ops that run here but have no gradient: pattern → why.
FORWARD_ONLY = {
    "XlaSpmdShardToFullShape": "its gradient is `XlaSpmdFullToShardShape`, which exists only "
    "inside a computation that TensorFlow's compiler compiles"
}


def reason_for(op: str) -> str:
    """Return why an op has no kernel and so no gradient, or has a kernel alone.

    Raises LookupError if neither `docs/ops_left_out.md` nor FORWARD_ONLY has it.
    """
    for pattern, reason in FORWARD_ONLY.items():
        if op in supported() and fnmatch.fnmatchcase(op, pattern):
            return reason
    found = [each for each in reasons() if fnmatch.fnmatchcase(op, each[0])]
    if op in supported() or not found:
        raise LookupError(f"{op} has a gradient in TensorFlow, and no reason for none here")
    return max(found, key=lambda each: len(each[0]))[1]


def page() -> str:
    """Return the text of docs/gradients.md."""
    functions, constant = functions_here()
    theirs = registry()
    missing = sorted(theirs["gradient"] - functions - constant)
    shared = len(theirs["gradient"]) - len(missing)
    lines = [
        *HEAD,
        "| TensorFlow registers | ops | here too |",
        "| --- | --- | --- |",
        f"| a gradient function | {len(theirs['gradient'])} | {shared} |",
        f"| that there is none | {len(theirs['not differentiable'])} | "
        f"{len(theirs['not differentiable'] & constant)} |",
        *FUNCTIONS_HEAD,
    ]
    recorded, slopes = cases_by_op()
    for op in sorted(functions):
        counts = " | ".join(str(each[op] or "") for each in (recorded, slopes))
        lines.append(re.sub(r" +\|", " |", f"| {op} | {counts} | {NOTES.get(op, '')} |"))
    lines += MISSING_HEAD
    by_reason: dict[str, list[str]] = {}
    for op in missing:
        by_reason.setdefault(reason_for(op), []).append(f"`{op}`")
    lines += [f"| {', '.join(ops)} | {reason} |" for reason, ops in by_reason.items()]
    lines += CONSTANT_HEAD
    for title, ops in (
        ("So does TensorFlow's:", constant & theirs["not differentiable"]),
        (
            "TensorFlow registers a function that returns no gradient for:",
            constant & theirs["gradient"],
        ),
        (
            "TensorFlow registers nothing for:",
            constant - theirs["gradient"] - theirs["not differentiable"],
        ),
    ):
        lines += ["", title, "", *_wrapped(ops)]
    return "\n".join(lines) + "\n"


def _wrapped(ops: Iterable[str]) -> list[str]:
    return textwrap.wrap(", ".join(f"`{op}`" for op in sorted(ops)), 100, break_on_hyphens=False)


def main() -> int:
    text = page()
    if "--check" in sys.argv:
        is_current = PAGE.exists() and PAGE.read_text() == text
        if not is_current:
            print(f"{PAGE.relative_to(ROOT)} is out of date: python tools/write/gradient_table.py")
        return 0 if is_current else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

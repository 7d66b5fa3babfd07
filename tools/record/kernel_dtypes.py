"""Record which element types TensorFlow's CPU kernels accept, and derive cases that cover them.

Run in an environment that has tensorflow, from the root of the repository:

    python tools/record/kernel_dtypes.py [op …]      # default: every op
    python tools/record/cases.py element_types       # then the answers of the cases

Writes

* docs/kernel_dtypes.json: op → type attribute → types: those for which the kernels are registered.
  If a kernel is registered without a type constraint: those with which a trial or a recorded case
  succeeds in TensorFlow, or all types of the signature if no trial could be made.
* tools/record/element_types.json: "cases": op.attribute → recorded case → further types with which
  TensorFlow succeeds in that case. "left out": op.attribute → types whose answers differ here, for
  which no case is made; this part is edited by hand.
* tests/conformance/cases/element_types.pb.gz: the cases of that table. With `--cases` only this
  file is written, from the existing table.
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import tensorflow as tf
from tensorflow.python.framework import kernels

from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType, from_name
from tests.conformance.case import Case
from tests.conformance.shown_types import ShownTypes, families, recorded_cases, shown_types
from tests.conformance.stored_cases import write_cases
from tools.record.element_type_trials import Base, accepted, bases_by_attribute, retypable
from tools.record.retyping import Retyping, joined

KERNEL_DTYPES = ROOT / "docs" / "kernel_dtypes.json"
OP_INDEX = ROOT / "runtime" / "kernels" / "op_index.json"
TABLE = pathlib.Path(__file__).with_name("element_types.json")
DERIVED = "element_types"
STORED = ROOT / "tests" / "conformance" / "cases" / f"{DERIVED}.pb.gz"
HANDLES = {DataType.RESOURCE, DataType.VARIANT}  # neither fed nor fetched
ANY_TYPE = set(DataType) - {DataType.INVALID} - HANDLES


def registered_types() -> tuple[ShownTypes, set[str]]:
    """Return op → attribute → types, and each `op.attribute` that a kernel does not constrain."""
    known = op_def_registry.all_op_defs()
    rows: dict[str, list[dict[str, set[DataType]]]] = collections.defaultdict(list)
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type in ("CPU", "DEFAULT") and not kernel.label and kernel.op in known:
            limits = {c.name: c.allowed_values.list.type for c in kernel.constraint}
            if not limits.keys() <= {attr.name for attr in known[kernel.op].attr}:
                continue  # no node can match it: TopK's kernels constrain an attribute of TopKV2
            rows[kernel.op].append({k: set(map(DataType, v)) for k, v in limits.items() if v})
    types: ShownTypes = {}
    left_open = set()
    for op, limits_of_op in sorted(rows.items()):
        types[op] = {}
        for attr in known[op].attr:
            if attr.type not in ("type", "list(type)"):
                continue
            allowed = set(map(DataType, attr.allowed_values.list.type))
            named = set().union(*(limits.get(attr.name, set()) for limits in limits_of_op))
            if all(attr.name in limits for limits in limits_of_op):
                types[op][attr.name] = named & allowed if allowed else named
            else:
                types[op][attr.name] = allowed or ANY_TYPE
                left_open.add(f"{op}.{attr.name}")
    return types, left_open


def names(types: Iterable[DataType]) -> str:
    """Return the types' names in one string, such as `float double`."""
    return " ".join(each.tf_name for each in sorted(types))


def try_attribute(
    op: str, attr: str, types: set[DataType], bases: list[Base]
) -> dict[str, str] | None:
    """Return `family/case` → types with which it succeeds; None if no trial can be made."""
    retypings = retypable(op, attr, bases)
    if not retypings:
        return None
    by_case: dict[str, set[DataType]] = collections.defaultdict(set)
    for new, number in accepted([retyping for _, retyping in retypings], types).items():
        family, retyping = retypings[number]
        by_case[f"{family}/{retyping.base.name}"].add(new)
    return {case: names(taken) for case, taken in sorted(by_case.items())}


def derived_cases(cases: dict[str, dict[str, str]], left_out: dict[str, str]) -> Iterator[Case]:
    """Yield a case for each attribute and recorded case of the table.

    If the recorded case sets a tolerance, types narrower than float32 are in a separate case.
    """
    recorded = {f"{family}/{case.name}": case for family, case, _ in recorded_cases()}
    for attribute, rows in sorted(cases.items()):
        op, _, attr = attribute.rpartition(".")
        for number, (base, types) in enumerate(rows.items()):
            kept = set(types.split()) - set(left_out.get(attribute, "").split())
            parts: dict[float | None, dict[str, Case]] = collections.defaultdict(dict)
            if kept:
                retyping = Retyping(recorded[base], op, attr)
                for name in sorted(kept):
                    part = retyping.to(from_name(name))
                    parts[part.tolerance][name] = part
            for tolerance, group in parts.items():
                narrow = "_narrow" if tolerance != recorded[base].tolerance else ""
                yield joined(f"{op}_{attr}_{number}{narrow}", group)


def try_ops(ops: Iterable[str], table: dict[str, dict[str, Any]], known: dict[str, Any]) -> None:
    """Update the rows of `ops` (all ops if empty) in both tables."""
    types, left_open = registered_types()
    others = [family for family in families() if family != DERIVED]
    shown, bases = shown_types(others), bases_by_attribute(others)
    here = set(json.loads(OP_INDEX.read_text()))
    for op in ops or types:
        known[op] = {}
        for attr, taken in types[op].items():
            key = f"{op}.{attr}"
            tried = None
            if op in here and (missing := taken - shown[op][attr] - HANDLES):
                tried = try_attribute(op, attr, missing, bases.get((op, attr), []))
            table["cases"].pop(key, None)
            if tried:
                table["cases"][key] = tried
                print(key, tried, flush=True)
            if key in left_open and (tried is not None or taken == ANY_TYPE):
                answered = " ".join((tried or {}).values()).split()
                taken = shown[op][attr] | {from_name(name) for name in answered}
            known[op][attr] = names(taken)


def main() -> None:
    tf.compat.v1.disable_eager_execution()
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {"cases": {}, "left out": {}}
    if "--cases" not in sys.argv:
        known = json.loads(KERNEL_DTYPES.read_text()) if KERNEL_DTYPES.exists() else {}
        try_ops(sys.argv[1:], table, known)
        parts = [f"{json.dumps(name)}: {one_line_each(rows)}" for name, rows in table.items()]
        TABLE.write_text("{\n" + ",\n".join(parts) + "\n}\n")
        KERNEL_DTYPES.write_text(one_line_each(known) + "\n")
    write_cases(STORED, list(derived_cases(table["cases"], table["left out"])))


def one_line_each(rows: dict[str, Any]) -> str:
    lines = [f"{json.dumps(key)}: {json.dumps(rows[key])}" for key in sorted(rows)]
    return "{\n" + ",\n".join(lines) + "\n}"


if __name__ == "__main__":
    main()

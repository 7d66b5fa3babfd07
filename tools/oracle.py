"""Compare random cases with real TensorFlow, op by op.

    make oracle                                     # every op; writes docs/oracle.json
    python tools/oracle.py --tensorflow PYTHON [op …]
    python tools/oracle.py --tensorflow PYTHON Tile --case int32/7      # both answers of one case

PYTHON is an interpreter with tensorflow installed. The recorded conformance cases are changed at
random (types, shapes, values, attributes), each answered by TensorFlow and by this runtime. What
TensorFlow crashes on, or has no kernel for, has no reference and is not counted.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import pathlib
import sys
import zlib

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from runtime.api import set_tensor_limit
from runtime.framework.dtypes import DataType
from tests.conformance.case import Answer, Case
from tools.oracle_comparison.agreement import compare, our_answers
from tools.oracle_comparison.known_differences import reason_for
from tools.oracle_comparison.mutation import allowed_types, mutated
from tools.oracle_comparison.reference import Answers, Reference
from tools.oracle_comparison.seeds import dtype_of, leading_attr, pick, seeds_by_op

SUMMARY = ROOT / "docs" / "oracle.json"
KEPT = ROOT / ".oracle"
NO_KERNEL = ("No OpKernel was registered", "Could not find device for node")
# TensorFlow's Python refused to build the graph: no kernel answered.
NO_GRAPH = ("with input shapes:", "Graph execution error")
MAX_TENSOR = 1 << 30  # bytes
GIVE_UP = 3  # cases without a TensorFlow kernel before a type is left


@dataclasses.dataclass
class Tally:
    """Counts of one op and type."""

    tried: int = 0
    agreed: int = 0
    documented: int = 0  # differ as docs/kernel_differences.md says; not among those tried
    other_words: int = 0  # agree in the error's code, not in its text
    no_reference: int = 0


def types_of(op: str, seeds: list[Case]) -> list[DataType | None]:
    """The leading types to try: those recorded first, then what the signature allows."""
    recorded = list(dict.fromkeys(dtype_of(case, op) for case in seeds))
    attr = leading_attr(op)
    return list(dict.fromkeys([*recorded, *(allowed_types(op, attr) if attr else [])]))


def make_case(op: str, dtype: DataType | None, seed: int, number: int) -> Case:
    """The random case of these numbers; the same ones give the same case."""
    seeds = seeds_by_op()[op]
    same = [case for case in seeds if dtype_of(case, op) == dtype]
    label = type_name(dtype)
    start = pick(same if same and number % 4 else seeds, f"{seed}/{label}/{number}")
    key = [seed, zlib.crc32(f"{op}/{label}".encode()), number]
    return mutated(start, op, dtype, f"{op}/{label}/{number}", key)


def type_name(dtype: DataType | None) -> str:
    return dtype.name_on_wire if dtype else "any"


def lacks(theirs: Answers, words: tuple[str, ...]) -> bool:
    """Whether one of TensorFlow's errors has one of the words."""
    return not isinstance(theirs, str) and any(
        word in answer.message for answer in theirs for word in words
    )


def compare_type(
    reference: Reference, op: str, dtype: DataType | None, arguments: argparse.Namespace
) -> Tally:
    """Try the cases of one op and type; print what differs."""
    tally = Tally()
    cases = [make_case(op, dtype, arguments.seed, number) for number in range(arguments.cases)]
    answers = reference.answers(cases[:GIVE_UP])
    if answers and all(lacks(answer, NO_KERNEL) for answer in answers):
        return tally
    answers += reference.answers(cases[GIVE_UP:])
    for case, theirs in zip(cases, answers, strict=True):
        if isinstance(theirs, str) or lacks(theirs, NO_KERNEL + NO_GRAPH):
            tally.no_reference += 1
            continue
        ours = our_answers(case)
        verdict = compare(case, ours, theirs)
        if verdict.difference and reason_for(op, case, ours, theirs):
            tally.documented += 1
            continue
        tally.tried += 1
        tally.agreed += not verdict.difference
        tally.other_words += verdict.message
        if verdict.difference:
            print(f"  {case.name}: {verdict.difference}")
        elif verdict.message and arguments.messages:
            print(f"  {case.name}: {ours[0].message!r}; TensorFlow {theirs[0].message!r}")
    return tally


def compare_op(reference: Reference, op: str, arguments: argparse.Namespace) -> dict[str, Tally]:
    reference.open(op)
    tallies = {}
    for dtype in types_of(op, seeds_by_op()[op]):
        tally = compare_type(reference, op, dtype, arguments)
        if tally.tried or tally.documented:
            tallies[type_name(dtype)] = tally
    total = sum_of(tallies)
    differing = {
        name: f"{each.agreed}/{each.tried}"
        for name, each in tallies.items()
        if each.agreed < each.tried
    }
    print(
        f"{op}: tried {total.tried}, agreed {total.agreed}, differing "
        f"{total.tried - total.agreed}, documented {total.documented}, error in other words "
        f"{total.other_words}, no reference {total.no_reference}"
        + "".join(f"; {name} {counts}" for name, counts in differing.items()),
        flush=True,
    )
    return tallies


def sum_of(tallies: dict[str, Tally]) -> Tally:
    counts: collections.Counter[str] = collections.Counter()
    for tally in tallies.values():
        counts.update(dataclasses.asdict(tally))
    return Tally(**counts)


def show(reference: Reference, op: str, arguments: argparse.Namespace) -> None:
    """Print one case: its graph, its feeds and both answers."""
    label, number = arguments.case.split("/")
    dtype = next(t for t in types_of(op, seeds_by_op()[op]) if type_name(t) == label)
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
    """docs/oracle.json: op → type → [tried, agreed]; ops that were not run keep their lines."""
    known = json.loads(SUMMARY.read_text()) if SUMMARY.exists() else {"ops": {}}
    counts = {
        op: {name: [t.tried, t.agreed] for name, t in sorted(tallies.items()) if t.tried}
        for op, tallies in results.items()
    }
    merged = {op: types for op, types in {**known["ops"], **counts}.items() if types}
    lines = [f"  {json.dumps(op)}: {json.dumps(merged[op])}" for op in sorted(merged)]
    release = ".".join(version.split(".")[:2]) or known.get("tensorflow", "")
    SUMMARY.write_text(
        '{"ops": {\n'
        + ",\n".join(lines)
        + f'\n}}, "tensorflow": {json.dumps(release)}, "seed": {seed}}}\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("ops", nargs="*", help="default: every op with recorded cases")
    parser.add_argument("--tensorflow", required=True, help="an interpreter that has tensorflow")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=30, help="for each op and type")
    parser.add_argument("--case", help="TYPE/NUMBER: print both answers of this one")
    parser.add_argument("--messages", action="store_true", help="print errors in other words")
    parser.add_argument("--kept", action="store_true", help="ask nothing: answers of earlier runs")
    parser.add_argument("--write", action="store_true", help="write docs/oracle.json")
    arguments = parser.parse_args()
    set_tensor_limit(MAX_TENSOR)
    reference = Reference(arguments.tensorflow, KEPT, arguments.kept)
    ops = arguments.ops or list(seeds_by_op())
    if arguments.case:
        show(reference, ops[0], arguments)
        reference.close()
        return
    results = {op: compare_op(reference, op, arguments) for op in ops}
    reference.close()
    total = sum_of({f"{op}/{name}": t for op, each in results.items() for name, t in each.items()})
    print(
        f"{len(results)} ops: tried {total.tried}, agreed {total.agreed}, differing "
        f"{total.tried - total.agreed}, documented {total.documented}, error in other words "
        f"{total.other_words}, no reference {total.no_reference}"
    )
    if arguments.write:
        write_summary(results, reference.version, arguments.seed)


if __name__ == "__main__":
    main()

"""Conformance cases as data: graphs, feeds, fetches, and TensorFlow's recorded answers.

A family of cases is a module `tests/conformance/cases/<room>/<family>.py` with a tuple `CASES`, in
the room of `runtime/kernels` that it tests; families of several rooms are in `cases` itself. The
answers are in `tests/conformance/golden/<room>/<family>.pb.gz`; `tools/record/cases.py` records
them from TensorFlow. `tests/conformance/test_cases.py` runs every case on every executor.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import hashlib
import importlib
import json
import pathlib
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from tests.node_builder import build_node_def

CASES = pathlib.Path(__file__).parent / "cases"
GOLDEN = pathlib.Path(__file__).parent / "golden"


@dataclasses.dataclass(frozen=True)
class Step:
    """One Session.run: feeds by tensor name, fetches, targets."""

    feeds: Mapping[str, np.ndarray]
    fetches: Sequence[str] = ()
    targets: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Case:
    """A graph and the steps to run in one session of it, in order.

    `tolerance` is relative to the largest expected magnitude; None selects the dtype's default.
    `message` requires TensorFlow's exact error message (the code is always compared).
    `exact` requires equal values without a tolerance; `shape_only` compares only shapes and dtypes
    (for random ops without a seed).
    """

    name: str
    graph: pb.GraphDef
    steps: tuple[Step, ...]
    tolerance: float | None = None
    message: bool = False
    exact: bool = False
    shape_only: bool = False

    @property
    def digest(self) -> str:
        """A hash of the graph and the steps, which shows that a recorded answer is stale."""
        sha = hashlib.sha256(self.graph.SerializeToString(deterministic=True))
        for step in self.steps:
            for key, value in sorted(step.feeds.items()):
                sha.update(key.encode() + tensor_to_proto(value).SerializeToString())
            sha.update(repr((list(step.fetches), list(step.targets))).encode())
        return sha.hexdigest()[:16]


class Graph:
    """Builds the GraphDef of a case with several nodes."""

    def __init__(self) -> None:
        self.graph_def = pb.GraphDef(versions=pb.VersionDef(producer=2474))

    def add(
        self, op: str, *inputs: Any, name: str = "", control: Sequence[str] = (), **attrs: Any
    ) -> list[tuple[str, DataType]]:
        """Add a node and return its outputs; inputs are arrays (made Const) or outputs of `add`."""
        name = name or f"{op}_{len(self.graph_def.node)}"
        node = build_node_def(op, name, [self._input(each) for each in inputs], attrs, control)
        self.graph_def.node.append(node)
        return node_outputs(node)

    def placeholder(self, dtype: Any, name: str, shape: Any = None) -> tuple[str, DataType]:
        """Add a Placeholder and return its output."""
        return self.add("Placeholder", name=name, dtype=dtype, shape=shape)[0]

    def _input(self, given: Any) -> Any:
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], DataType):
            return given
        if isinstance(given, list):
            return [self._input(each) for each in given]
        array = as_tensor(given)
        data_type = from_numpy(array.dtype)
        return self.add("Const", dtype=data_type, value=tensor_to_proto(array))[0]


def node_outputs(node: pb.NodeDef) -> list[tuple[str, DataType]]:
    """Return (name:index, element type) of every output of a node."""
    types: list[DataType] = []
    for argument in op_def_registry.look_up(node.op).output_arg:
        if argument.type_list_attr:
            types += [DataType(t) for t in node.attr[argument.type_list_attr].list.type]
            continue
        one = DataType(argument.type or node.attr[argument.type_attr].type)
        types += [one] * (node.attr[argument.number_attr].i if argument.number_attr else 1)
    return [(f"{node.name}:{index}", data_type) for index, data_type in enumerate(types)]


def as_tensor(value: Any) -> np.ndarray:
    """Return the value as an array: Python floats as float32, ints as int32, str as bytes."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
    else:
        # dtype object, because numpy's fixed-width strings lose trailing zero bytes
        array = np.array(value, object if isinstance(value, bytes) else None)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        elif array.dtype == np.int64:
            array = array.astype(np.int32)
    if array.dtype.kind in "SU" or array.dtype == object:
        flat = [item.encode() if isinstance(item, str) else bytes(item) for item in array.ravel()]
        strings = np.empty(len(flat), object)
        strings[:] = flat
        return strings.reshape(array.shape)
    return array


# (module of the family, op) → number of cases made so far
_case_counts: dict[tuple[str, str], int] = {}


def case(op: str, *inputs: Any, name: str = "", **options: Any) -> Case:
    """Return a case of one node: inputs are fed through placeholders, every output is fetched.

    Args:
        inputs: One for each input argument of the op, a list for a list argument.
        options: Fields of `Case` (tolerance, message, exact, shape_only); `dtypes=[...]`, the
            element types of the first inputs if they are not those of the arrays (quantised
            types); all others are attributes of the node.
    """
    fields = {
        key: options.pop(key)
        for key in ("tolerance", "message", "exact", "shape_only")
        if key in options
    }
    overridden = iter(options.pop("dtypes", ()))
    graph = Graph()
    feeds: dict[str, np.ndarray] = {}

    def feed(value: Any) -> tuple[str, DataType]:
        array = as_tensor(value)
        data_type = next(overridden, None) or from_numpy(array.dtype)
        output = graph.placeholder(data_type, f"input_{len(feeds)}")
        feeds[output[0]] = array
        return output

    arguments = [
        [feed(each) for each in given] if isinstance(given, list) and listed else feed(given)
        for given, listed in zip(inputs, _list_arguments(op), strict=True)
    ]
    outputs = graph.add(op, *arguments, name="result", **options)
    family = sys._getframe(1).f_globals["__name__"]
    count = _case_counts[family, op] = _case_counts.get((family, op), 0) + 1
    step = Step(feeds, tuple(output for output, _ in outputs), () if outputs else ("result",))
    return Case(name or f"{op}_{count}", graph.graph_def, (step,), **fields)


def from_producer(version: int, made: Case) -> Case:
    """Return the case with an older producer version, which ops removed since then require."""
    made.graph.versions.producer = version
    return made


def _list_arguments(op: str) -> list[bool]:
    arguments = op_def_registry.look_up(op).input_arg
    return [bool(argument.number_attr or argument.type_list_attr) for argument in arguments]


@dataclasses.dataclass(frozen=True)
class Answer:
    """TensorFlow's result of one step: the fetched values, or an error."""

    values: tuple[np.ndarray, ...] = ()
    code: int = 0
    message: str = ""


@functools.cache
def _paths() -> dict[str, pathlib.Path]:
    """Family → its module's path below `cases`, without the suffix."""
    paths = [path.relative_to(CASES).with_suffix("") for path in CASES.rglob("[a-z]*.py")]
    found = {path.name: path for path in paths}
    assert len(found) == len(paths), "two families have one name"
    return found


def families() -> list[str]:
    """The names of every family of cases, sorted."""
    return sorted(_paths())


def cases_of(family: str) -> tuple[Case, ...]:
    """The cases of a family."""
    name = ".".join(_paths()[family].parts)
    cases: tuple[Case, ...] = importlib.import_module(f"tests.conformance.cases.{name}").CASES
    return cases


def golden_path(family: str) -> pathlib.Path:
    """The file of a family's answers; those of gradients and programs belong to no room."""
    return GOLDEN / _paths().get(family, pathlib.Path(family)).with_suffix(".pb.gz")


def write_golden(family: str, answers: Mapping[str, tuple[str, Sequence[Answer]]]) -> None:
    """Store the answers of a family: {case name: (digest, one answer for each step)}."""
    index, frames = [], []
    for name, (digest, steps) in answers.items():
        index.append([name, digest, len(steps)])
        for answer in steps:
            response = pb.RunStepResponse(
                status_code=answer.code,  # type: ignore[arg-type] # the canonical number
                status_error_message=answer.message,
                tensor=[
                    pb.NamedTensorProto(tensor=tensor_to_proto(value)) for value in answer.values
                ],
            )
            frames.append(response.SerializeToString(deterministic=True))
    head = json.dumps(index).encode()
    path = golden_path(family)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_frames(path, [head, *frames])


def write_frames(path: pathlib.Path, frames: Sequence[bytes]) -> None:
    """Store byte strings, each after its length (u32 little-endian), compressed."""
    data = b"".join(struct.pack("<I", len(frame)) + frame for frame in frames)
    path.write_bytes(gzip.compress(data, 9, mtime=0))


def read_frames(path: pathlib.Path) -> list[bytes]:
    """Return the byte strings that `write_frames` stored."""
    data = gzip.decompress(path.read_bytes())
    frames, position = [], 0
    while position < len(data):
        (length,) = struct.unpack_from("<I", data, position)
        frames.append(data[position + 4 : position + 4 + length])
        position += 4 + length
    return frames


@functools.cache  # many tests read the same answers
def read_golden(family: str) -> Mapping[str, tuple[str, tuple[Answer, ...]]]:
    """Return the stored answers of a family: {} if none were recorded."""
    path = golden_path(family)
    if not path.exists():
        return {}
    parts = read_frames(path)
    frames = iter(parts[1:])
    result = {}
    for name, digest, steps in json.loads(parts[0]):
        result[name] = (digest, tuple(_answer(next(frames)) for _ in range(steps)))
    return result


def _answer(frame: bytes) -> Answer:
    response = pb.RunStepResponse.FromString(frame)
    values = tuple(tensor_from_proto(each.tensor) for each in response.tensor)
    return Answer(values, response.status_code, response.status_error_message)


_TOLERANCE = {"float64": 1e-10, "complex128": 1e-10, "float16": 2e-3, "bfloat16": 1.6e-2}


def assert_matches(case: Case, got: Sequence[np.ndarray], want: Answer) -> None:
    """Compare fetched values with TensorFlow's.

    Raises:
        AssertionError: A dtype, shape or value differs.
    """
    assert len(got) == len(want.values)
    for index, (ours, theirs) in enumerate(zip(got, want.values, strict=True)):
        ours = np.asarray(ours)
        where = f"{case.name} output {index}"
        assert ours.dtype == theirs.dtype, f"{where}: dtype {ours.dtype}, expected {theirs.dtype}"
        assert ours.shape == theirs.shape, f"{where}: shape {ours.shape}, expected {theirs.shape}"
        if ours.dtype.hasobject:
            # assert_array_equal would accept an array of rank 0 in place of the string in it.
            assert all(isinstance(item, bytes) for item in ours.ravel().tolist()), where
        if case.shape_only:
            continue
        wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
        if theirs.dtype.kind in "biuO" or "int" in theirs.dtype.name:
            np.testing.assert_array_equal(ours, theirs, err_msg=where)
            continue
        if case.exact:  # as float64, because numpy does not recognise NaN of bfloat16
            np.testing.assert_array_equal(ours.astype(wide), theirs.astype(wide), err_msg=where)
            continue
        expected = theirs.astype(wide)
        finite = np.abs(expected[np.isfinite(expected)])
        relative = case.tolerance or _TOLERANCE.get(theirs.dtype.name, 1e-5)
        if "float8" in theirs.dtype.name or "float4" in theirs.dtype.name:
            relative = case.tolerance or 0.13
        np.testing.assert_allclose(
            ours.astype(wide),
            expected,
            rtol=relative,
            atol=relative * float(finite.max(initial=0.0)) * 0.1,
            err_msg=where,
        )

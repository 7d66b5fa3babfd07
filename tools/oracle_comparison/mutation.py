"""Random changes of a recorded case: element types, shapes, values, attributes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

import protos as pb
from runtime.framework import op_def_registry
from runtime.framework.dtypes import QUANTIZED, DataType
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from tests.conformance.case import Case
from tools.oracle_comparison.seeds import is_single, leading_attr, subject
from tools.oracle_comparison.values import (
    changed_values,
    converted,
    reranked,
    resized,
)

# Types to try for a type attribute without allowed_values.
PLAIN_TYPES = (
    DataType.HALF, DataType.BFLOAT16, DataType.FLOAT, DataType.DOUBLE,
    DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64,
    DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64,
    DataType.COMPLEX64, DataType.COMPLEX128, DataType.BOOL, DataType.STRING,
)  # fmt: skip
KNOWN_TYPES = (*PLAIN_TYPES, *QUANTIZED)
# Parts of names of random ops. For cases with such an op only the shapes and types of results are
# compared, unless the op is stateless.
RANDOM = (
    "Random", "StatefulUniform", "StatefulStandardNormal", "Multinomial", "TruncatedNormal",
    "CandidateSampler", "Shuffle", "SamplingDataset",
)  # fmt: skip
# Attributes that are names, or that must fit the inputs: they are not changed.
FIXED_ATTRS = ("container", "shared_name", "value", "shape", "name", "equation", "key")


@dataclasses.dataclass
class Draft:
    """A case that is being changed.

    `sources` are its input values: a constant's key is its node name, a fed value's key is the node
    name, `@` and the number of the step.
    """

    graph: pb.GraphDef
    op: str
    sources: dict[str, np.ndarray]
    random: np.random.Generator

    @property
    def node(self) -> pb.NodeDef:
        return next(node for node in self.graph.node if node.op == self.op)

    def find(self, source: str) -> pb.NodeDef:
        """Return the Placeholder or Const node of a source."""
        return next(node for node in self.graph.node if node.name == source.split("@")[0])

    def of_node(self, name: str) -> list[str]:
        """Return the keys of a node's values: of a placeholder one for each step that feeds it."""
        return [each for each in self.sources if each.split("@")[0] == name]


def mutated(case: Case, op: str, dtype: DataType | None, name: str, seed: list[int]) -> Case:
    """Return the case with `dtype` as its leading type and one to three random changes."""
    random = np.random.default_rng(seed)
    graph = pb.GraphDef()
    graph.CopyFrom(case.graph)
    fed = {
        _source(key, number): value
        for number, step in enumerate(case.steps)
        for key, value in step.feeds.items()
    }
    constants = {
        node.name: tensor_from_proto(node.attr["value"].tensor)
        for node in graph.node
        if node.op == "Const"
    }
    draft = Draft(graph, op, {**fed, **constants}, random)
    single = is_single(case)
    attr = leading_attr(op)
    # A graph with functions keeps its types: a function's types must fit those of its callers.
    if dtype is not None and attr is not None and not graph.library.function:
        old = DataType(subject(case, op).attr[attr].type % 100)
        if old != dtype and single:
            _retype(draft, attr, dtype)
        elif old != dtype:
            _retype_all(draft, old, dtype)
    for _ in range(int(random.integers(1, 4))):
        change = CHANGES[int(random.integers(len(CHANGES)))]
        if change is not _other_type or single:
            change(draft)
    return _finished(case, draft, name)


def _source(feed: str, step: int) -> str:
    return f"{feed.split(':')[0]}@{step}"


def _finished(case: Case, draft: Draft, name: str) -> Case:
    for node in draft.graph.node:
        if node.op == "Const" and node.name in draft.sources:
            data_type = DataType(node.attr["dtype"].type)
            tensor = tensor_to_proto(draft.sources[node.name], data_type)
            node.attr["value"].tensor.CopyFrom(tensor)
        elif draft.of_node(node.name):  # the recorded static shape may no longer fit
            node.attr["shape"].shape.CopyFrom(pb.TensorShapeProto(unknown_rank=True))
    steps = tuple(
        dataclasses.replace(
            step, feeds={key: draft.sources[_source(key, number)] for key in step.feeds}
        )
        for number, step in enumerate(case.steps)
    )
    # The tolerance was chosen for the recorded case's element type.
    tolerance = None if case.tolerance is None else max(case.tolerance, 1e-5)
    random = any(
        part in node.op
        for node in draft.graph.node
        if not node.op.startswith("Stateless")
        for part in RANDOM
    )
    return dataclasses.replace(
        case, name=name, graph=draft.graph, steps=steps, tolerance=tolerance,
        shape_only=random or case.shape_only,
    )  # fmt: skip


def _sources_of(draft: Draft, attr: str) -> list[str]:
    """Return the sources of the subject's inputs whose type is this attribute."""
    names, position = [], 0
    for argument in op_def_registry.look_up(draft.op).input_arg:
        count = 1
        if argument.number_attr:
            count = draft.node.attr[argument.number_attr].i
        elif argument.type_list_attr:
            count = len(draft.node.attr[argument.type_list_attr].list.type)
        if argument.type_attr == attr:
            for each in draft.node.input[position : position + count]:
                names += draft.of_node(each.split(":")[0])
        position += count
    return names


def _retype(draft: Draft, attr: str, to: DataType) -> None:
    """Change one type attribute of the subject, and the sources of its inputs."""
    draft.node.attr[attr].type = to  # type: ignore[assignment] # an int is accepted
    for name in _sources_of(draft, attr):
        draft.sources[name] = converted(draft.sources[name], to, draft.random)
        draft.find(name).attr["dtype"].type = to  # type: ignore[assignment] # an int is accepted


def _retype_all(draft: Draft, old: DataType, to: DataType) -> None:
    """Replace one type by another in all attributes of all nodes, and in their values."""
    for node in draft.graph.node:
        for value in node.attr.values():
            if value.HasField("type") and value.type % 100 == old:
                value.type += to - old  # type: ignore[assignment] # keeps a reference type's offset
            if value.HasField("list"):
                value.list.type[:] = [to if each == old else each for each in value.list.type]
        for name in draft.of_node(node.name):
            if node.attr["dtype"].type == to:
                draft.sources[name] = converted(draft.sources[name], to, draft.random)


def allowed_types(op: str, attr: str) -> list[DataType]:
    """Return the types that the op's signature allows, without those that are not compared."""
    allowed = next(a for a in op_def_registry.look_up(op).attr if a.name == attr).allowed_values
    if not allowed.list.type:
        return list(PLAIN_TYPES)
    return [DataType(number) for number in allowed.list.type if number in KNOWN_TYPES]


def _other_type(draft: Draft) -> None:
    """Change the type of an attribute other than the leading one."""
    leading = leading_attr(draft.op)
    attrs = [a for a in op_def_registry.look_up(draft.op).attr if a.type == "type"]
    names = [a.name for a in attrs if a.name != leading]
    if names:
        attr = names[int(draft.random.integers(len(names)))]
        allowed = allowed_types(draft.op, attr)
        _retype(draft, attr, allowed[int(draft.random.integers(len(allowed)))])


def _some_source(draft: Draft) -> str | None:
    names = sorted(draft.sources)
    return names[int(draft.random.integers(len(names)))] if names else None


def _values(draft: Draft) -> None:
    name = _some_source(draft)
    if name is not None:
        quantised = DataType(draft.find(name).attr["dtype"].type) in QUANTIZED
        draft.sources[name] = changed_values(draft.sources[name], draft.random, quantised)


def _extent(draft: Draft) -> None:
    """Change all dimensions of one size to another size, in all inputs or in one."""
    random = draft.random
    extents = sorted({size for array in draft.sources.values() for size in array.shape})
    if not extents:
        return
    old = extents[int(random.integers(len(extents)))]
    new = int(random.choice([0, 1, old + 1, 2 * old, max(old - 1, 0), 3, 7]))
    everywhere = random.random() < 0.6
    name = _some_source(draft)
    for each in sorted(draft.sources):
        if everywhere or each == name:
            array = draft.sources[each]
            for axis, size in enumerate(array.shape):
                if size == old:
                    array = resized(array, axis, new, random)
            draft.sources[each] = array


def _rank(draft: Draft) -> None:
    name = _some_source(draft)
    if name is not None:
        draft.sources[name] = reranked(draft.sources[name], draft.random)


def _attribute(draft: Draft) -> None:
    """Change the value of one attribute."""
    taken = {a.number_attr for a in op_def_registry.look_up(draft.op).input_arg}
    attrs = [
        a
        for a in op_def_registry.look_up(draft.op).attr
        if a.name not in taken and a.name not in FIXED_ATTRS and a.name in draft.node.attr
    ]
    if not attrs:
        return
    attr = attrs[int(draft.random.integers(len(attrs)))]
    value = draft.node.attr[attr.name]
    change = ATTR_CHANGES.get(attr.type)
    if change is not None:
        change(draft, attr, value)


def _number(random: np.random.Generator, old: int) -> int:
    fresh = random.choice([0, 1, 2, 3, -1, old + 1, old - 1, 2 * old, -old])
    return max(min(int(fresh), 2**63 - 1), -(2**63))


def _float_attr(draft: Draft, _: pb.OpDef.AttrDef, value: pb.AttrValue) -> None:
    choices = [0.0, 1.0, -1.0, 0.5, value.f * 2, -value.f, value.f + 0.25, np.nan, np.inf]
    value.f = float(draft.random.choice(choices, p=[0.14] * 7 + [0.01] * 2))


def _int_attr(draft: Draft, _: pb.OpDef.AttrDef, value: pb.AttrValue) -> None:
    value.i = _number(draft.random, value.i)


def _bool_attr(_draft: Draft, _: pb.OpDef.AttrDef, value: pb.AttrValue) -> None:
    value.b = not value.b


def _string_attr(draft: Draft, attr: pb.OpDef.AttrDef, value: pb.AttrValue) -> None:
    allowed = list(attr.allowed_values.list.s)
    if not allowed:
        return
    value.s = allowed[int(draft.random.integers(len(allowed)))]
    explicit = draft.node.attr.get("explicit_paddings")
    if attr.name == "padding" and value.s == b"EXPLICIT" and explicit is not None:
        pads = [int(each) for each in draft.random.integers(0, 3, 8)]
        channels_last = draft.node.attr["data_format"].s in (b"NHWC", b"")
        zero = (0, 1, 6, 7) if channels_last else (0, 1, 2, 3)
        explicit.list.i[:] = [0 if k in zero else pad for k, pad in enumerate(pads)]


def _int_list(draft: Draft, _: pb.OpDef.AttrDef, value: pb.AttrValue) -> None:
    numbers = list(value.list.i)
    if not numbers:
        return
    at = int(draft.random.integers(len(numbers)))
    if draft.random.random() < 0.15:
        del numbers[at]
    else:
        numbers[at] = _number(draft.random, numbers[at])
    value.list.i[:] = numbers


def _type_attr(draft: Draft, attr: pb.OpDef.AttrDef, _: pb.AttrValue) -> None:
    if attr.name != leading_attr(draft.op) and not _sources_of(draft, attr.name):
        allowed = allowed_types(draft.op, attr.name)
        chosen = allowed[int(draft.random.integers(len(allowed)))]
        draft.node.attr[attr.name].type = chosen  # type: ignore[assignment] # an int is accepted


ATTR_CHANGES: dict[str, Callable[[Draft, pb.OpDef.AttrDef, pb.AttrValue], None]] = {
    "float": _float_attr,
    "int": _int_attr,
    "bool": _bool_attr,
    "string": _string_attr,
    "list(int)": _int_list,
    "type": _type_attr,
}
# Repeated entries are chosen more often.
CHANGES: tuple[Callable[[Draft], None], ...] = (
    _values, _values, _values, _values, _extent, _extent, _extent, _rank, _attribute, _attribute,
    _other_type,
)  # fmt: skip

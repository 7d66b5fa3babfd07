"""Composite tensors converted to variants and back to components."""

import numpy as np

import protos as pb
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

VALUES, SPLITS = np.int32([1, 2, 3]), np.int64([0, 2, 3])
INTS = (DataType.INT32, DataType.INT64)
SPEC = pb.TypeSpecProto(
    type_spec_class=pb.TypeSpecProto.TypeSpecClass.Value("RAGGED_TENSOR_SPEC"),
    type_spec_class_name="RaggedTensorSpec",
    num_flat_components=2,
).SerializeToString()


def through(
    name: str,
    components: list = (VALUES, SPLITS),
    types: tuple[DataType, ...] = INTS,
    metadata: bytes = SPEC,
    move: str = "Identity",
) -> Case:
    """Convert components to a variant, pass it through an op, and extract the components."""
    graph = Graph()
    encoded = graph.add(
        "CompositeTensorVariantFromComponents", list(components), metadata=metadata
    )[0]
    moved = graph.add(move, [encoded, encoded] if move == "Pack" else encoded)[0]
    outputs = graph.add(
        "CompositeTensorVariantToComponents", moved, metadata=SPEC, Tcomponents=types
    )
    fetches = tuple(output for output, _ in outputs)
    return Case(name, graph.graph_def, (Step({}, fetches),), message=metadata == SPEC)


def not_composite() -> Case:
    graph = Graph()
    other = graph.add("EmptyTensorList", np.int32([]), np.int32(1), element_dtype=DataType.INT32)[0]
    graph.add(
        "CompositeTensorVariantToComponents", other, metadata=SPEC, Tcomponents=INTS, name="result"
    )
    return Case("not_composite", graph.graph_def, (Step({}, ("result:0",)),))


CASES = (
    through("round_trip"),
    through("strings", ["a", np.float32([[1, 2]])], (DataType.STRING, DataType.FLOAT)),
    through("first_of_many", move="Pack"),
    through("fewer_components", types=INTS[:1]),
    through("other_types", types=(DataType.FLOAT, DataType.INT64)),
    through("empty_metadata", metadata=b""),
    through("bad_metadata", metadata=b"\xff\xff"),
    not_composite(),
)

"""Ragged tensors to variants and back, with ops that move variants in between."""

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

FLAT = np.float32([1, 2, 3, 4, 5, 6])
ROWS, OUTER = np.int64([0, 2, 2, 5, 6]), np.int64([0, 1, 4])


def decoded(graph: Graph, encoded: object, ranks: tuple[int, int], name: str) -> Case:
    outputs = graph.add(
        "RaggedTensorFromVariant", encoded, input_ragged_rank=ranks[0], name="result",
        output_ragged_rank=ranks[1], Tvalues=DataType.FLOAT, Tsplits=DataType.INT64,
    )  # fmt: skip
    return Case(name, graph.graph_def, (Step({}, tuple(output for output, _ in outputs)),))


def round_trip(name: str, nested: list, batched: bool, ranks: tuple[int, int]) -> Case:
    graph = Graph()
    encoded = graph.add("RaggedTensorToVariant", nested, FLAT, batched_input=batched)[0]
    return decoded(graph, encoded, ranks, f"round_trip_{name}")


def moved(op: str, ranks: tuple[int, int], *arguments: object, **attrs: object) -> Case:
    """Return a case that passes the rows of a ragged tensor as variants through another op."""
    graph = Graph()
    rows = graph.add("RaggedTensorToVariant", [ROWS], FLAT, batched_input=True)[0]
    inputs = {"rows": rows, "twice": [rows, rows]}
    given = [inputs[each] if isinstance(each, str) else each for each in arguments]
    return decoded(graph, graph.add(op, *given, **attrs)[0], ranks, f"moved_by_{op}")


def gradient(name: str, batched: bool, shape: list[int], *ops: str) -> Case:
    """Return a case of the gradient after ops that keep the rows."""
    graph = Graph()
    rows = graph.add("RaggedTensorToVariant", [ROWS], FLAT, batched_input=batched)[0]
    for op in ops:
        rows = graph.add(op, [rows, rows] if op == "AddN" else rows)[0]
    splits = ROWS if batched else np.int64([0, 6])
    graph.add(
        "RaggedTensorToVariantGradient", rows, splits, np.int32(shape), Tvalues=DataType.FLOAT,
        name="result",
    )  # fmt: skip
    return Case(f"gradient_{name}", graph.graph_def, (Step({}, ("result:0",)),))


def gradient_along(name: str, batched: bool, splits: object, shape: list[int]) -> Case:
    """Return a case of the gradient with other splits, values shape or type than encoded."""
    graph = Graph()
    rows = graph.add("RaggedTensorToVariant", [ROWS], FLAT, batched_input=batched)[0]
    values_type = DataType.INT8 if name == "of_another_type" else DataType.FLOAT
    graph.add(
        "RaggedTensorToVariantGradient", rows, np.int64(splits), np.int32(shape),
        Tvalues=values_type, name="result",
    )  # fmt: skip
    message = values_type == DataType.FLOAT  # for INT8, the node is named differently
    return Case(f"gradient_{name}", graph.graph_def, (Step({}, ("result:0",)),), message=message)


def encoded_scalar(name: str, nested: list, values: object, batched: bool) -> Case:
    """Return a case that fails to encode its input."""
    graph = Graph()
    graph.add("RaggedTensorToVariant", nested, values, batched_input=batched, name="result",
              Tsplits=DataType.INT64)  # fmt: skip
    return Case(f"encoded_{name}", graph.graph_def, (Step({}, (), ("result",)),), message=True)


def gradient_of_slice() -> Case:
    """Return a case of a sliced vector of variants: rows outside of the slice get zeros."""
    graph = Graph()
    bounds = [np.int32([1]), np.int32([3]), np.int32([1])]
    rows = graph.add("RaggedTensorToVariant", [ROWS], FLAT, batched_input=True)[0]
    part = graph.add("StridedSlice", rows, *bounds)[0]
    whole = graph.add("StridedSliceGrad", np.int32([4]), *bounds, part)[0]
    graph.add(
        "RaggedTensorToVariantGradient", whole, ROWS, np.int32([6]), Tvalues=DataType.FLOAT,
        name="result",
    )  # fmt: skip
    return Case("gradient_of_a_slice", graph.graph_def, (Step({}, ("result:0",)),))


CASES = (
    round_trip("scalar", [ROWS], False, (1, 1)),
    round_trip("nested", [OUTER, ROWS], False, (2, 2)),
    round_trip("batched", [ROWS], True, (0, 1)),
    round_trip("batched_nested", [OUTER, ROWS], True, (1, 2)),
    round_trip("inferred", [OUTER, ROWS], True, (-1, 2)),
    round_trip("wrong_rank", [ROWS], True, (1, 2)),
    moved("GatherV2", (0, 1), "rows", np.int32([2, 0]), np.int32(0)),
    moved("StridedSlice", (0, 1), "rows", np.int32([1]), np.int32([4]), np.int32([2])),
    moved("Pack", (0, 2), "twice"),
    moved("Reshape", (0, 2), "rows", np.int32([2, 2])),
    moved("Split", (0, 1), np.int32(0), "rows", num_split=2),
    moved("Identity", (0, 1), "rows"),
    moved("Unpack", (0, 0), "rows", num=4),
    moved("Tile", (0, 1), "rows", np.int32([2])),
    moved("Transpose", (0, 1), "rows", np.int32([0])),
    gradient("of_one", False, [6]),
    gradient("of_rows", True, [6]),
    gradient("in_another_shape", True, [6, 1]),
    gradient("of_zeros", False, [6], "ZerosLike"),
    gradient("of_a_sum", False, [6], "AddN"),
    gradient_of_slice(),
    gradient_along("along_falling_splits", False, [0, 6, 0], [6]),
    gradient_along("along_splits_from_one", True, [1, 2, 2, 5, 6], [6]),
    gradient_along("along_splits_beyond", True, [0, 2, 2, 5, 60], [6]),
    gradient_along("along_no_splits", True, [], [6]),
    gradient_along("along_a_scalar", False, 6, [6]),
    gradient_along("in_a_negative_shape", False, [0, 6], [-1]),
    gradient_along("in_an_empty_shape", True, ROWS, [0, 4]),
    gradient_along("of_another_type", False, [0, 6], [6]),
    encoded_scalar("falling", [np.int64([0, 4, 2, 6])], FLAT, False),
    encoded_scalar("nested_falling", [np.int64([0, 4, 2, 6]), np.int64([0, 7])], FLAT, False),
)

"""Xla ops that are given functions of scalars, and those that sort."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

import protos as pb
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType, from_numpy
from tests.conformance.case import Case, case
from tests.node_builder import build_node_def

_random = np.random.default_rng(12)
F32, I32, BOOL = DataType.FLOAT, DataType.INT32, DataType.BOOL
F = NameAttrList("f")
# Nodes of a function: (op, inputs); an input is a number of an argument, or "n0", "n1", … for the
# result of a node. The results of the function are named last.
Body = tuple[tuple[tuple[str, Sequence[Any]], ...], Sequence[str | int]]
OUTPUTS = {"SelectV2": "output", "Identity": "output", "Sub": "z", "Neg": "y", "Square": "y"}


def body(op: str) -> Body:
    return ((op, (0, 1)),), ("n0",)


ADD, MAX, MIN, MUL = body("AddV2"), body("Maximum"), body("Minimum"), body("Mul")
LESS, GREATER, AT_LEAST = body("Less"), body("Greater"), body("GreaterEqual")
ANY, ALL, OR = body("LogicalOr"), body("LogicalAnd"), body("BitwiseOr")
LAST: Body = ((("Identity", (1,)),), ("n0",))
# a + b, but no ufunc
SUM_OF_TWO: Body = ((("AddV2", (0, 1)), ("Neg", ("n0",)), ("Neg", ("n1",))), ("n2",))
TWICE: Body = ((("AddV2", (1, 1)), ("AddV2", (0, "n0"))), ("n1",))
MINUS: Body = body("Sub")
# the greater of (0, 2) with its number (1, 3), the lower number among equals
ARGMAX: Body = (
    (
        ("Greater", (0, 2)), ("Equal", (0, 2)), ("Less", (1, 3)), ("LogicalAnd", ("n1", "n2")),
        ("LogicalOr", ("n0", "n3")), ("SelectV2", ("n4", 0, 2)), ("SelectV2", ("n4", 1, 3)),
    ),
    ("n5", "n6"),
)  # fmt: skip
BY_FIRST: Body = ((("Less", (0, 1)),), ("n0",))
# descending by the second tensor; among equals ascending by the first
BY_BOTH: Body = (
    (
        ("Greater", (2, 3)), ("Equal", (2, 3)), ("Less", (0, 1)), ("LogicalAnd", ("n1", "n2")),
        ("LogicalOr", ("n0", "n3")),
    ),
    ("n4",),
)  # fmt: skip


def function(name: str, types: Sequence[DataType], given: Body) -> pb.FunctionDef:
    nodes, results = given
    definition = pb.FunctionDef()
    definition.signature.name = name
    known: dict[Any, tuple[str, DataType]] = {}
    for index, data_type in enumerate(types):
        definition.signature.input_arg.add(name=f"x{index}", type=int(data_type))
        known[index] = (f"x{index}", data_type)
    for index, (op, inputs) in enumerate(nodes):
        arguments = [known[each] for each in inputs]
        definition.node_def.append(build_node_def(op, f"m{index}", arguments, {}))
        is_bool = op in ("Less", "Greater", "GreaterEqual", "Equal", "LogicalAnd", "LogicalOr")
        result = BOOL if is_bool else arguments[-1][1]
        output = OUTPUTS.get(op, "z")
        known[f"n{index}"] = (f"m{index}:{output}:0", result)
    for index, name_ in enumerate(results):
        source, result = known[name_]
        definition.signature.output_arg.add(name=f"y{index}", type=int(result))
        definition.ret[f"y{index}"] = source
    return definition


def with_functions(made: Case, *functions: pb.FunctionDef) -> Case:
    made.graph.library.function.extend(functions)
    return made


def floats(*shape: int) -> np.ndarray:
    return _random.normal(size=shape).astype(np.float32)


def vector(given: Any) -> np.ndarray:
    return np.array(given, np.int32)


def reduce(value: np.ndarray, init: Any, dims: Sequence[int], given: Body) -> Case:
    kind = from_numpy(value.dtype)
    made = case("XlaReduce", value, np.asarray(init, value.dtype),
                dimensions_to_reduce=list(dims), reducer=F)  # fmt: skip
    return with_functions(made, function("f", [kind, kind], given))


def variadic(
    op: str, values: list[np.ndarray], inits: list[Any], dims: Sequence[int], given: Body
) -> Case:
    kinds = [from_numpy(each.dtype) for each in values]
    starts = [np.asarray(init, each.dtype) for init, each in zip(inits, values, strict=True)]
    made = case(op, values, starts, dimensions_to_reduce=list(dims), reducer=F)
    return with_functions(made, function("f", kinds + kinds, given))


def windows(
    value: np.ndarray, init: Any, sizes: Any, given: Body, strides: Any = None,
    base: Any = None, dilations: Any = None, padding: Any = None,
) -> Case:  # fmt: skip
    rank = value.ndim
    ones = [1] * rank
    kind = from_numpy(value.dtype)
    made = case(
        "XlaReduceWindow", value, np.asarray(init, value.dtype), vector(sizes),
        vector(strides or ones), vector(base or ones), vector(dilations or ones),
        vector(padding or [(0, 0)] * rank), computation=F,
    )  # fmt: skip
    return with_functions(made, function("f", [kind, kind], given))


def select(
    value: np.ndarray, sizes: Any, strides: Any, padding: Any, source: np.ndarray, init: Any,
    by: Body = AT_LEAST, join: Body = ADD,
) -> Case:  # fmt: skip
    kind = from_numpy(value.dtype)
    made = case(
        "XlaSelectAndScatter", value, vector(sizes), vector(strides), vector(padding), source,
        np.asarray(init, value.dtype), select=F, scatter=NameAttrList("g"),
    )  # fmt: skip
    return with_functions(made, function("f", [kind, kind], by), function("g", [kind, kind], join))


def scatter(
    value: np.ndarray, indices: Any, updates: np.ndarray, given: Body, **numbers: Any
) -> Case:
    kind = from_numpy(value.dtype)
    made = case(
        "XlaScatter", value, vector(indices), updates.astype(value.dtype), update_computation=F,
        dimension_numbers=pb.ScatterDimensionNumbers(**numbers).SerializeToString(),
        indices_are_sorted=False,
    )  # fmt: skip
    return with_functions(made, function("f", [kind, kind], given))


def sort(values: list[np.ndarray], dimension: Any, given: Body, stable: bool = True) -> Case:
    kinds = [from_numpy(each.dtype) for each in values for _ in range(2)]
    made = case("XlaVariadicSort", values, np.int32(dimension), comparator=F, is_stable=stable)
    return with_functions(made, function("f", kinds, given))


X = floats(3, 4, 5)
NUMBERS = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
TIES = _random.integers(0, 4, (3, 17)).astype(np.float32)
ORDER = np.tile(np.arange(17, dtype=np.int32), (3, 1))
SPECIAL = np.array([1, np.nan, -np.inf, 0, -0.0, np.inf, -1, -np.nan, 3], np.float32)
IMAGE = floats(1, 6, 7, 2)
ROWS = {"update_window_dims": [1, 2], "inserted_window_dims": [0],
        "scatter_dims_to_operand_dims": [0], "index_vector_dim": 1}  # fmt: skip
POINTS = {"update_window_dims": [], "inserted_window_dims": [0, 1],
          "scatter_dims_to_operand_dims": [0, 1], "index_vector_dim": 1}  # fmt: skip
PARTS = {"update_window_dims": [1, 2], "inserted_window_dims": [],
         "scatter_dims_to_operand_dims": [1, 0], "index_vector_dim": 1}  # fmt: skip
FLAT = floats(4, 5)

CASES = (
    *(reduce(X, init, dims, given)
      for init, dims, given in ((0, [0], ADD), (2, [1, 2], ADD), (-np.inf, [2], MAX),
                                (0, [0, 1, 2], MIN), (1, [1], MUL), (0, [], ADD),
                                (0, [2, 0], SUM_OF_TWO), (5, [1], MAX))),
    reduce(NUMBERS, 3, [1], ADD),
    reduce(NUMBERS, 0, [0, 2], OR),
    reduce(NUMBERS > 20, False, [1], ANY),
    reduce(NUMBERS > 20, True, [1, 2], ALL),
    reduce(X[:0], 4, [0], ADD),
    reduce(X[:, :, :0], 4, [0], ADD),
    reduce(X.astype(ml_dtypes.bfloat16), 0, [2], MAX),
    reduce(X, [0, 0], [1], ADD),
    variadic("XlaVariadicReduceV2", [X, NUMBERS], [-np.inf, 0], [1], ARGMAX),
    variadic("XlaVariadicReduceV2", [TIES, ORDER], [-1, 99], [1], ARGMAX),
    variadic("XlaVariadicReduceV2", [TIES, ORDER], [-1, 99], [0, 1], ARGMAX),
    variadic("XlaVariadicReduceV2", [X], [0], [1], ADD),
    variadic("XlaVariadicReduceV2", [X, NUMBERS[0]], [-np.inf, 0], [1], ARGMAX),
    variadic("XlaVariadicReduce", [X, -X], [-9, -9], [2], ARGMAX),
    windows(IMAGE, 0, [1, 2, 3, 1], ADD),
    windows(IMAGE, -np.inf, [1, 2, 2, 1], MAX, [1, 2, 2, 1]),
    windows(IMAGE, -np.inf, [1, 3, 3, 1], MAX, [1, 2, 2, 1], padding=[(0, 0), (1, 1), (2, 1),
                                                                     (0, 0)]),
    windows(IMAGE, 5, [1, 3, 3, 1], ADD, padding=[(0, 0), (3, 0), (1, 1), (0, 0)]),
    windows(IMAGE, 0, [1, 2, 2, 1], ADD, dilations=[1, 2, 3, 1]),
    windows(IMAGE, 0, [1, 2, 2, 1], ADD, base=[1, 2, 3, 1]),
    windows(IMAGE, 1, [1, 2, 2, 1], MUL, [1, 2, 1, 1], [1, 2, 3, 1], [1, 3, 2, 1],
            [(0, 0), (2, 1), (1, 0), (0, 0)]),
    windows(IMAGE, 0, [1, 2, 2, 1], ADD, padding=[(0, 0), (-1, -2), (1, 1), (0, 0)]),
    windows(np.arange(9, dtype=np.int32), 0, [9], ADD, padding=[(8, 0)]),
    windows(FLAT, 0, [2, 2], SUM_OF_TWO),
    windows(FLAT, 0, [5, 2], ADD),
    windows(FLAT, [0, 0], [2, 2], ADD),
    select(IMAGE, [1, 2, 2, 1], [1, 2, 2, 1], [(0, 0)] * 4, floats(1, 3, 3, 2), 0),
    select(IMAGE, [1, 3, 3, 1], [1, 1, 2, 1], [(0, 0)] * 4, floats(1, 4, 3, 2), 0),
    select(IMAGE, [1, 3, 3, 1], [1, 2, 2, 1], [(0, 0), (1, 1), (1, 1), (0, 0)],
           floats(1, 3, 4, 2), 2),
    select(np.round(IMAGE), [1, 3, 3, 1], [1, 2, 2, 1], [(0, 0), (1, 1), (1, 1), (0, 0)],
           floats(1, 3, 4, 2), 0, GREATER, ADD),
    scatter(X, [[0], [2]], floats(2, 4, 5), ADD, **ROWS),
    scatter(X, [[1], [1], [1]], floats(3, 4, 5), ADD, **ROWS),
    scatter(X, [[1], [1], [2]], floats(3, 4, 5), LAST, **ROWS),
    scatter(X, [[1], [-1], [3]], floats(3, 4, 5), ADD, **ROWS),
    scatter(X, [2, 0], floats(2, 4, 5), MAX, **ROWS),
    scatter(FLAT, [[0, 1], [3, 4], [0, 1], [4, 0]], floats(4), ADD, **POINTS),
    scatter(FLAT, [[0, 1], [3, 4], [0, 1], [0, 1]], floats(4), TWICE, **POINTS),
    scatter(FLAT, [[0, 1], [3, 4], [0, 1], [0, 1]], floats(4), MINUS, **POINTS),
    scatter(FLAT, [[0, 1], [3, 0], [4, 0]], floats(3, 2, 2), MUL, **PARTS),
    scatter(NUMBERS[0], [[0, 1], [3, 0], [2, 1]], np.ones((3, 2, 2)), ADD, **PARTS),
    scatter(X, [[[1], [3]], [[0], [0]], [[2], [1]]], floats(3, 2, 5), ADD,
            update_window_dims=[2], inserted_window_dims=[1], scatter_dims_to_operand_dims=[1],
            index_vector_dim=2, input_batching_dims=[0], scatter_indices_batching_dims=[0]),
    scatter(X, np.zeros((0, 1)), floats(0, 4, 5), ADD, **ROWS),
    scatter(FLAT, [1, 2], np.float32(9), LAST, update_window_dims=[], inserted_window_dims=[0, 1],
            scatter_dims_to_operand_dims=[0, 1], index_vector_dim=0),
    scatter(X, [[0], [2]], floats(3, 4, 5), ADD, **ROWS),
    scatter(X, [[0], [2]], floats(2, 4, 6), ADD, **ROWS),
    scatter(X, [[0, 0], [2, 2]], floats(2, 4, 5), ADD, **ROWS),
    scatter(X, [[0], [2]], floats(2, 4, 5), ADD, **{**ROWS, "update_window_dims": [1]}),
    scatter(X, [[0], [2]], floats(2, 4, 5), ADD, **{**ROWS, "inserted_window_dims": [4]}),
    case("XlaSort", X),
    case("XlaSort", SPECIAL),
    case("XlaSort", NUMBERS[:, :, ::-1].copy()),
    case("XlaSort", X.astype(ml_dtypes.bfloat16)),
    case("XlaSort", X[:, :0]),
    case("XlaSort", np.float32(1)),
    case("XlaSort", X[:, :, :1].astype(np.complex64)),
    case("XlaSort", X.astype(np.complex64)),
    case("XlaKeyValueSort", X, NUMBERS),
    case("XlaKeyValueSort", SPECIAL, np.arange(9, dtype=np.int32)),
    case("XlaKeyValueSort", NUMBERS[:, :, ::-1].copy(), X),
    case("XlaKeyValueSort", X, X[0]),
    sort([X], 2, BY_FIRST),
    sort([X], 0, BY_FIRST),
    sort([TIES, ORDER], 1, BY_FIRST),
    sort([ORDER, TIES], 1, BY_BOTH),
    sort([ORDER[:, ::-1].copy(), TIES], 1, BY_BOTH, False),
    sort([X, NUMBERS, -X], 1, BY_FIRST),
    sort([X], 3, BY_FIRST),
    sort([X, X[0]], 0, BY_FIRST),
    with_functions(
        case("XlaWhile", [np.float32(1), np.float32(100)], cond=F, body=NameAttrList("g")),
        function("f", [F32, F32], LESS),
        function("g", [F32, F32], ((("AddV2", (0, 0)),), ("n0", 1))),
    ),
)  # fmt: skip

"""Ops that return their input, constants, placeholders."""

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case, from_producer

ONE_INPUT = (
    "Copy", "CopyHost", "GuaranteeConst", "Identity", "PreventGradient",
    "Snapshot", "StopGradient",
)  # fmt: skip


def constant(name: str, value: np.ndarray, op: str = "Const") -> Case:
    graph = Graph()
    output, _ = graph.add(op, dtype=value.dtype, value=value, name="result")[0]
    return Case(f"{op}_{name}", graph.graph_def, (Step({}, (output,)),), exact=True)


def unfed(op: str, dtype: DataType, shape: tuple[int, ...] | None) -> Case:
    graph = Graph()
    output, _ = graph.add(op, dtype=dtype, shape=shape, name="result")[0]
    name = f"{op}_unfed_{dtype.tf_name}_{shape}"
    return Case(name, graph.graph_def, (Step({}, (output,)),), message=True)


def default_and_fed() -> Case:
    graph = Graph()
    value = graph.add("PlaceholderWithDefault", np.float32([1, 2]), shape=(2,), name="p")[0]
    output, _ = graph.add("Identity", value, name="result")[0]
    steps = (Step({}, (output,)), Step({"p:0": np.float32([3, 4])}, (output,)))
    return Case("PlaceholderWithDefault_both", graph.graph_def, steps)


def guaranteed_variable() -> Case:
    graph = Graph()
    handle = graph.add("VarHandleOp", dtype=DataType.FLOAT, shape=(), name="variable")[0]
    kept = graph.add("GuaranteeConst", handle)[0]
    known = graph.add("VarIsInitializedOp", kept, name="result")[0]
    return Case("GuaranteeConst_variable", graph.graph_def, (Step({}, (known[0],)),), message=True)


def no_operation() -> Case:
    graph = Graph()
    graph.add("NoOp", name="nothing")
    value = graph.add("Identity", 3, control=["nothing"], name="result")[0]
    return Case("NoOp_control", graph.graph_def, (Step({}, (value[0],), ("nothing",)),))


CASES = (
    constant("vector", np.array([1.5, 2], np.float32), "HostConst"),
    constant("text", np.array(b"a", object), "HostConst"),
    case("HostConst", dtype=DataType.INT32, value=np.float32([1, 2]), message=True),
    *(case(op, np.float32([[1, np.nan], [-0.0, np.inf]]), exact=True) for op in ONE_INPUT),
    case("Identity", [[b"a", b""], [b"\xff", b"long"]], name="Identity_string"),
    case("IdentityN", [1.5, [2, 3], "text"]),
    constant("float", np.float32([[1, 2], [3, 4]])),
    constant("scalar", np.int64(7)),
    constant("empty", np.zeros((0, 3), np.float64)),
    constant("string", np.array([b"a", b"bc"], object)),
    constant("complex", np.complex64([1 + 2j])),
    unfed("Placeholder", DataType.FLOAT, (-1, 3)),
    unfed("Placeholder", DataType.FLOAT, None),
    unfed("Placeholder", DataType.STRING, ()),
    unfed("Placeholder", DataType.INT64, (2,)),
    from_producer(22, unfed("PlaceholderV2", DataType.FLOAT, (2, 2))),
    default_and_fed(),
    guaranteed_variable(),
    no_operation(),
)

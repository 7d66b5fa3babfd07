"""Training ops: a variable and its slots before and after two updates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

START = ([[0.5, -1.5], [2.0, 0.25], [1.0, 3.0]], 0.5, 1.25, 0.75)  # variable, then its slots
GRADIENT = [[0.1, -0.2], [3.0, 0.5], [-1.0, 0.0]]
SCALARS = {
    "lr": 0.3, "alpha": 0.2, "beta1": 0.9, "beta2": 0.99, "beta1_power": 0.81,
    "beta2_power": 0.9801, "epsilon": 0.01, "rho": 0.8, "momentum": 0.7, "l1": 0.05, "l2": 0.1,
    "l2_shrinkage": 0.02, "lr_power": -0.5, "logbase": 1.0, "sign_decay": 0.6, "beta": 0.9,
    "global_step": 3,
}  # fmt: skip


def _variables(graph: Graph, op: str, dtype: DataType) -> tuple[list[Any], int]:
    """Variables with initial values that `init` assigns."""
    arguments = op_def_registry.look_up(op).input_arg
    count = sum(a.is_ref or a.type == DataType.RESOURCE for a in arguments)
    made = []
    for index in range(count):
        value = np.broadcast_to(np.array(START[index], dtype.numpy), (3, 2))
        if arguments[0].is_ref:
            variable = graph.add("VariableV2", dtype=dtype, shape=(3, 2), name=f"v{index}")[0]
            graph.add("Assign", variable, value, name=f"init{index}")
            graph.add("Identity", variable, name=f"read{index}")
        else:
            variable = graph.add(
                "VarHandleOp", dtype=dtype, shape=(3, 2), shared_name=f"v{index}", name=f"v{index}"
            )[0]
            graph.add("AssignVariableOp", variable, value, dtype=dtype, name=f"init{index}")
            graph.add("ReadVariableOp", variable, dtype=dtype, name=f"read{index}")
        made.append(variable)
    return made, count


def _updates(
    op: str, dtype: DataType, indices: Any = (2, 0, 2), changed: Any = None, **attrs: Any
) -> tuple[Graph, tuple[Step, ...]]:
    graph = Graph()
    inputs, count = _variables(graph, op, dtype)
    values = {**SCALARS, **(changed or {})}
    for argument in op_def_registry.look_up(op).input_arg[count:]:
        name = argument.name
        if name in ("grad", "delta"):
            rows = GRADIENT if "indices" not in _names(op) else GRADIENT[: len(indices)]
            inputs.append(graph.add("Identity", np.array(values.get(name, rows), dtype.numpy))[0])
        elif name == "indices":
            inputs.append(np.array(indices, np.int32))
        elif argument.type == DataType.INT64:
            inputs.append(np.array(values[name], np.int64))
        else:
            # Identity hides the value from shape inference.
            inputs.append(graph.add("Identity", np.array(values[name], dtype.numpy))[0])
    graph.add(op, *inputs, name="update", **attrs)
    read = Step({}, [f"read{index}:0" for index in range(count)])
    update = Step({}, (), ("update",))
    init = Step({}, (), [f"init{index}" for index in range(count)])
    return graph, (init, update, read, update, read)


def _names(op: str) -> list[str]:
    return [argument.name for argument in op_def_registry.look_up(op).input_arg]


OPS = sorted(
    op
    for op in op_def_registry.all_op_defs()
    if op.startswith(("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply"))
)
FLAGS = ("use_nesterov", "update_slots", "multiply_linear_by_lr")


def _variants() -> Iterator[Case]:
    for op in OPS:
        graph, steps = _updates(op, DataType.FLOAT)
        yield Case(op, graph.graph_def, steps)
        for attr in op_def_registry.look_up(op).attr:
            if attr.name in FLAGS:
                flipped = {attr.name: not attr.default_value.b}
                graph, steps = _updates(op, DataType.FLOAT, **flipped)
                yield Case(f"{op}_{attr.name}", graph.graph_def, steps)
    for op in OPS:
        if op.startswith("Resource") and "Sparse" not in op:
            graph, steps = _updates(op, DataType.DOUBLE)
            yield Case(f"{op}_double", graph.graph_def, steps)
    for op in ("ResourceApplyFtrl", "ResourceSparseApplyFtrl"):
        graph, steps = _updates(op, DataType.FLOAT, changed={"lr_power": -0.7})
        yield Case(f"{op}_power", graph.graph_def, steps)
    for op in ("ResourceApplyProximalAdagrad", "ResourceApplyAdagradDA"):
        graph, steps = _updates(op, DataType.FLOAT, changed={"l1": 0.0})
        yield Case(f"{op}_without_l1", graph.graph_def, steps)
    for op in ("RMSProp", "CenteredRMSProp"):
        for prefix in ("Apply", "SparseApply", "ResourceApply", "ResourceSparseApply"):
            infinite = np.where(np.eye(3, 2), np.inf, GRADIENT)
            graph, steps = _updates(f"{prefix}{op}", DataType.DOUBLE, changed={"grad": infinite})
            yield Case(f"{prefix}{op}_infinite", graph.graph_def, steps)
    for op in ("SparseApplyAdagradDA", "ResourceSparseApplyAdagradDA", "ResourceApplyAdagradDA"):
        for step in (-1, 0):
            graph, steps = _updates(op, DataType.DOUBLE, changed={"global_step": step})
            yield Case(f"{op}_step_{step}", graph.graph_def, steps)


def _errors() -> Iterator[Case]:
    sparse = "ResourceSparseApplyMomentum"
    built = {
        "index_beyond": _updates(sparse, DataType.FLOAT, indices=(0, 5, 1)),
        "index_negative": _updates(sparse, DataType.FLOAT, indices=(0, -1, 1)),
    }
    for name, (graph, steps) in built.items():
        # Later steps are omitted: TensorFlow has by then updated the rows before the bad index.
        yield Case(name, graph.graph_def, steps[:2], message=True)
    for op in ("SparseApplyFtrlV2", "ResourceSparseApplyFtrlV2"):
        graph, steps = _updates(op, DataType.FLOAT, changed={"l2_shrinkage": -0.5})
        yield Case(f"{op}_l2_shrinkage", graph.graph_def, steps, message=True)
    for op in ("ResourceSparseApplyAdagrad", "ResourceSparseApplyAdagradV2"):
        columns = np.expand_dims(GRADIENT, -1)
        graph, steps = _updates(op, DataType.FLOAT, changed={"grad": columns})
        yield Case(f"{op}_rank", graph.graph_def, steps, message=True)
    graph, steps = _updates("ResourceApplyAdam", DataType.FLOAT)
    yield Case("unassigned", graph.graph_def, steps[1:2], message=True)
    graph, steps = _updates("ApplyMomentum", DataType.FLOAT)
    yield Case("unassigned_ref", graph.graph_def, steps[1:2], message=True)


CASES = (*_variants(), *_errors())

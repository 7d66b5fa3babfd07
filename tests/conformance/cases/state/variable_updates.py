"""Scatters, slice assigns, counters and gathers of variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

SHAPE = (4, 2)


def _case(
    op: str,
    dtype: DataType,
    inputs: Sequence[Any],
    *,
    name: str = "",
    start: Any = None,
    **attrs: Any,
) -> Case:
    """Assign a variable, apply the op twice, and read after each."""
    graph = Graph()
    if start is None:
        start = np.arange(1, 9).reshape(SHAPE) * 5 - 12
    value = np.asarray(start).astype(dtype.numpy)
    is_ref = op_def_registry.look_up(op).input_arg[0].is_ref
    if is_ref:
        target = graph.add("VariableV2", dtype=dtype, shape=value.shape, name="v")[0]
        graph.add("Assign", target, value, name="init")
        graph.add("Identity", target, name="read")
    else:
        target = graph.add("VarHandleOp", dtype=dtype, shape=None, shared_name="v")[0]
        graph.add("AssignVariableOp", target, value, dtype=dtype, name="init")
        graph.add("ReadVariableOp", target, dtype=dtype, name="read")
    # Shapes are hidden from shape inference, so that the kernels check them.
    hidden = [graph.add("PlaceholderWithDefault", each, shape=None)[0] for each in inputs]
    known = {attr.name for attr in op_def_registry.look_up(op).attr}
    attrs |= {"dtype": dtype} if "dtype" in known else {}
    outputs = graph.add(op, target, *hidden, name="op", **attrs)
    fetches = [output for output, _ in outputs]
    run = Step({}, fetches, () if fetches else ("op",))
    steps: tuple[Step, ...] = (
        Step({}, (), ("init",)),
        run,
        Step({}, ("read:0",)),
        run,
        Step({}, ("read:0",)),
    )
    if "beyond" in name:  # TensorFlow has by then updated the rows before the bad index
        steps = steps[:2]
    # Resource scatters have a different message for shapes that do not fit.
    message = not name.endswith("_shape")
    return Case(name or f"{op}_{dtype.tf_name}", graph.graph_def, steps, message=message)


def _of(values: Any, dtype: DataType) -> np.ndarray:
    return np.asarray(values).astype(dtype.numpy)


COMBINES = ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")
ND = ("Add", "Max", "Min", "Sub", "Update")
F32, I32 = DataType.FLOAT, DataType.INT32
INDICES = np.array([2, 0, 2], np.int32)
ROWS = [[2, -3], [4, 5], [-7, 1]]


def _scatters() -> Iterator[Case]:
    for prefix in ("", "Resource"):
        for op in COMBINES:
            for dtype in (F32, I32, DataType.DOUBLE, DataType.INT64):
                # Replacing the same row twice has no defined result.
                indices = INDICES if op != "Update" else np.array([3, 0, 2], np.int64)
                yield _case(f"{prefix}Scatter{op}", dtype, (indices, _of(ROWS, dtype)))
            name = f"{prefix}Scatter{op}"
            yield _case(name, F32, (INDICES, _of(3, F32)), name=f"{name}_scalar")
            beyond = np.array([[0, 1], [4, 0]], np.int32)
            yield _case(name, F32, (beyond, np.ones((2, 2, 2), np.float32)), name=f"{name}_beyond")
            yield _case(name, F32, (INDICES, np.zeros((2, 2), np.float32)), name=f"{name}_shape")
        for dtype in (I32, DataType.INT64):
            lowest = np.full((3, 2), np.iinfo(dtype.numpy).min, dtype.numpy)
            name = f"{prefix}ScatterDiv_{dtype.tf_name}_lowest"
            yield _case(f"{prefix}ScatterDiv", dtype, (INDICES, lowest), name=name)
        for op in ("Max", "Min"):
            yield _with_nan(f"{prefix}Scatter{op}", np.array([0, 0, 1, 2], np.int32))
            yield _with_nan(f"{prefix}ScatterNd{op}", np.array([[0], [0], [1], [2]], np.int32))
        for dtype, rows in ((F32, ROWS), (F32, 0), (I32, 0)):
            if dtype == I32 and not prefix:
                continue  # TensorFlow crashes
            name = f"{prefix}ScatterDiv_{dtype.tf_name}_{np.ndim(rows)}_zero"
            updates = np.where(np.array(rows) == 1, 0, rows)
            yield _case(f"{prefix}ScatterDiv", dtype, (INDICES, _of(updates, dtype)), name=name)
        for op in ND:
            name = f"{prefix}ScatterNd{op}"
            for dtype in (F32, I32):
                full = np.array([[0, 1], [3, 0], [2, 1]], np.int32)
                yield _case(name, dtype, (full, _of([9, -8, 7], dtype)))
            rows = np.array([[1], [3]], np.int64)
            yield _case(name, F32, (rows, _of(ROWS[:2], F32)), name=f"{name}_rows")
            yield _case(
                name, F32, (np.array([[1], [4]], np.int32), _of(ROWS[:2], F32)),
                name=f"{name}_beyond",
            )  # fmt: skip
            yield _case(name, F32, (rows, _of(ROWS, F32)), name=f"{name}_shape")


def _with_nan(op: str, indices: np.ndarray) -> Case:
    """NaN in the variable and in the updates."""
    start = np.array([[np.nan, 1], [2, 3], [4, 5], [6, 7]])
    updates = np.array([[1, np.nan], [3, 0], [np.nan, np.nan], [np.inf, -np.inf]], np.float32)
    return _case(op, F32, (indices, updates), name=f"{op}_nan", start=start)


def _slices() -> Iterator[Case]:
    for op in ("StridedSliceAssign", "ResourceStridedSliceAssign"):
        for name, begin, end, strides, value, masks in (
            ("rows", [1], [3], [1], [[1, 2], [3, 4]], {}),
            ("steps", [3, 1], [0, 0], [-2, -1], [[1], [2]], {}),
            ("shrink", [2, 0], [3, 2], [1, 1], [8, 9], {"shrink_axis_mask": 1}),
            ("one", [2, 1], [3, 2], [1, 1], 7, {"shrink_axis_mask": 3}),
            (
                "mask",
                [0, 1],
                [0, 2],
                [1, 1],
                [[1], [2], [3], [4]],
                {"begin_mask": 1, "end_mask": 1},
            ),
            ("empty", [2], [2], [1], np.zeros((0, 2)), {}),
        ):
            inputs = [np.array(each, np.int32) for each in (begin, end, strides)]
            yield _case(op, F32, (*inputs, _of(value, F32)), name=f"{op}_{name}", **masks)


def _reads() -> Iterator[Case]:
    for indices in ([2, 0], [[1], [3]], 1, [4], []):
        array = np.array(indices, np.int32)
        yield _case("ResourceGather", F32, (array,), name=f"gather_{indices}")
    for indices in ([1, -1], [], [2, 0]):
        array, nothing = np.array(indices, np.int32), np.zeros((4, 0))
        yield _case("ResourceGather", F32, (array,), name=f"of_none_{indices}", start=nothing)
    batch = np.array([[1], [0], [0], [1]], np.int64)
    yield _case("ResourceGather", F32, (batch,), name="gather_batch", batch_dims=1)
    for indices in ([[2, 0], [0, 1]], [[3]], [[4]]):
        array = np.array(indices, np.int64)
        yield _case("ResourceGatherNd", I32, (array,), name=f"gather_nd_{indices}")
    for prefix in ("", "Resource"):
        attrs: dict[str, Any] = {"T": DataType.INT64} if prefix else {}
        yield _case(f"{prefix}CountUpTo", DataType.INT64, (), start=3, limit=4, **attrs)


CASES = (*_scatters(), *_slices(), *_reads())

"""Cases of conditional accumulators: several steps that add gradients and take their mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F32, I32, I64 = DataType.FLOAT, DataType.INT32, DataType.INT64
CONTROLS = (("count", ("count:0",)), ("step", ()))


class DenseGraph(Graph):
    """A dense accumulator `a` with one op of each kind; their inputs are fed."""

    def __init__(self, prefix: str = "", dtype: DataType = F32, **attrs: Any) -> None:
        super().__init__()
        attrs = {"shape": (2,), "shared_name": "a", **attrs}
        made = self.add(f"{prefix}ConditionalAccumulator", dtype=dtype, name="a", **attrs)[0]
        local, x = self.placeholder(I64, "local"), self.placeholder(dtype, "x")
        n, to = self.placeholder(I32, "n"), self.placeholder(I64, "to")
        op = f"{prefix}Accumulator"
        self.add(f"{op}ApplyGradient", made, local, x, name="apply")
        self.add(f"{op}TakeGradient", made, n, dtype=dtype, name="take")
        self.add(f"{op}NumAccumulated", made, name="count")
        self.add(f"{op}SetGlobalStep", made, to, name="set")


class SparseGraph(Graph):
    """A sparse accumulator `a` with one op of each kind; their inputs are fed."""

    def __init__(self, has_known_shape: bool = True, dtype: DataType = F32, **attrs: Any) -> None:
        super().__init__()
        attrs = {"shape": (4, 2), "shared_name": "a", **attrs}
        made = self.add("SparseConditionalAccumulator", dtype=dtype, name="a", **attrs)[0]
        local, x = self.placeholder(I64, "local"), self.placeholder(dtype, "x")
        rows, sizes = self.placeholder(I64, "rows"), self.placeholder(I64, "sizes")
        n, to = self.placeholder(I32, "n"), self.placeholder(I64, "to")
        apply = "SparseAccumulatorApplyGradient"
        self.add(apply, made, local, rows, x, sizes, name="apply", has_known_shape=has_known_shape)
        self.add("SparseAccumulatorTakeGradient", made, n, dtype=dtype, name="take")
        self.add("AccumulatorNumAccumulated", made, name="count")
        self.add("AccumulatorSetGlobalStep", made, to, name="set")


def give(x: Any, local: Any = 0, dtype: type = np.float32) -> Step:
    return Step({"local:0": np.array(local, np.int64), "x:0": np.asarray(x, dtype)}, (), ("apply",))


def rows(indices: Any, x: Any, sizes: Any = (4, 2), local: Any = 0) -> Step:
    feeds = {**give(x, local).feeds, "rows:0": np.array(indices, np.int64)}
    return Step({**feeds, "sizes:0": np.array(sizes, np.int64)}, (), ("apply",))


def take(n: Any, outputs: int = 1) -> Step:
    return Step({"n:0": np.array(n, np.int32)}, [f"take:{i}" for i in range(outputs)])


def move(step: Any) -> Step:
    return Step({"to:0": np.array(step, np.int64)}, (), ("set",))


COUNT, HANDLE = Step({}, ("count:0",)), Step({}, ("a:0",))


def dense(name: str, *steps: Step, **attrs: Any) -> Case:
    return Case(name, DenseGraph(**attrs).graph_def, steps, message=True)


def sparse(name: str, *steps: Step, **attrs: Any) -> Case:
    return Case(f"sparse_{name}", SparseGraph(**attrs).graph_def, steps, message=True)


A, B = [[1, 2], [3, 4]], [[10, 20], [30, 40]]

CASES = (
    dense("mean", COUNT, give([1, 2]), give([3, 5]), COUNT, take(1), COUNT, give([7, 7], 1),
          take(1)),
    dense("sum", give([1, 2]), give([3, 5]), take(2), COUNT, reduction_type="SUM"),
    dense("half", give([1, 2], 0, np.float16), give([2, 5], 0, np.float16), take(2),
          dtype=DataType.HALF),
    dense("double", give([1, 2], 0, np.float64), give([2, 5], 0, np.float64), take(2),
          dtype=DataType.DOUBLE),
    dense("stale", give([1, 2], 5), give([1, 2]), take(2), give([9, 9]), COUNT, give([1, 1], 1),
          take(1), move(8), give([5, 5], 7), COUNT, give([5, 5], 8), COUNT, take(1)),
    dense("step_goes_back", move(5), move(2), give([1, 1], 2), COUNT),
    dense("other_shape", give([1, 2, 3]), give(1), COUNT),
    dense("any_shape", give([1, 2, 3]), give([1, 2]), give([1, 1, 1]), take(2), give([1]), COUNT,
          shape=None),
    dense("shape_after_taking", give([1, 2], 9), give([1, 2, 3], 9), give([[1, 2]], 9), take(1),
          give([1, 2, 3], 9), COUNT, take(1), give([[1, 2]], 9), shape=(-1,)),
    dense("take_too_few", take(0), take(-1)),
    dense("not_scalars", give([1, 2], [0]), move([0])),
    dense("handle", HANDLE),
    dense("resource", COUNT, give([1, 2]), give([3, 5]), take(2), move(5), give([1, 2]), COUNT,
          prefix="Resource"),
    sparse("one", rows([0, 2], A), COUNT, take(1, 3), COUNT),
    sparse("mean", rows([0, 2], A), rows([0, 3], B), rows([1, 3], A), take(3, 3)),
    sparse("sum", rows([0, 2], A), rows([2, 3], B), take(2, 3), reduction_type="SUM"),
    sparse("stale", rows([0, 2], A, local=1), take(1, 3), rows([0, 2], A), COUNT),
    sparse("no_rows", rows([], np.zeros((0, 2))), take(1, 3)),
    sparse("vectors", rows([1, 3], [5, 6], (4,)), rows([3, 2], [5, 6], (4,)), COUNT, shape=(4,)),
    sparse("shape_unknown", rows([0, 2], A, ()), take(1, 3), has_known_shape=False),
    sparse("no_shape", rows([0, 2], A), take(1, 3), rows([0], [1], (4,)), COUNT, shape=None),
    sparse("other_sizes", rows([0], [[1, 2]], (5, 2)), rows([0], [[1, 2]], (4, 3)),
           rows([0], [[1, 2]], (4,)), rows([0], [[1, 2, 3]])),
    sparse("other_widths", rows([0], [[1, 2]], ()), rows([0], [[1, 2, 3]], ()),
           has_known_shape=False),
    sparse("bad_rows", rows([[0]], [[1, 2]]), rows([0], 1), rows([0, 1], [[1, 2]]),
           rows([0, 4], A)),
    sparse("rows_out_of_order", rows([2, 0], A), rows([0, 3], B), rows([3, -3], A), rows([1, 1], B),
           take(4, 3)),
    sparse("stale_and_bad", move(5), rows([[0]], [[1, 2]]), rows([0], 1),
           rows([0], [[1, 2]], (5, 2)),
           rows([9], [[1, 2]]), COUNT, rows([0], [[1, 2]], (5, 2), 5)),
    sparse("beyond_its_own_shape", rows([7], [[1, 2]], (4, 2)), take(1, 3),
           rows([7], [[1, 2]], (4, 3), 1), take(1, 3), shape=(-1, -1)),
    sparse("shape_after_taking", rows([0], [[1, 2]], local=9), take(1, 3),
           rows([0], [[1, 2, 3]], (), 9), rows([4], [[1, 2]], (), 9), rows([0], [1], (), 9), COUNT,
           rows([3], [[1, 2]], (), 9), take(1, 3), has_known_shape=False),
    sparse("width_after_taking", rows([0], [[1, 2]], local=9), take(1, 3),
           rows([0], [[1, 2, 3]], (4, 3), 9), rows([0], [[1, 2]], (4, 2), 9), take(1, 3),
           shape=(-1, -1)),
    sparse("take_too_few", take(0, 3)),
    sparse("ranks", rows([0], [1], ()), rows([4], [[1, 2]], ()), rows([0], [[[1, 2]] * 2], ()),
           rows([0], [[1, 2]], ()), rows([0], [[[1, 2]] * 2], ()), rows([1], [[1, 2]], ()), COUNT,
           has_known_shape=False),
)  # fmt: skip

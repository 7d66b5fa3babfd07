"""Tensor lists: created, changed and read within one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F32 = DataType.FLOAT
Built = Callable[["ListGraph"], Any]


class ListGraph(Graph):
    """Adds list ops; every constant is fed through a placeholder, which hides its shape."""

    def __init__(self) -> None:
        super().__init__()
        self.feeds: dict[str, np.ndarray] = {}

    def op(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        """The first output of `TensorList<op>` on float elements."""
        return self.ops(op, *inputs, **attrs)[0]

    def ops(self, op: str, *inputs: Any, dtype: DataType = F32, **attrs: Any) -> Any:
        """All outputs of `TensorList<op>`."""
        if op not in ("Length", "Resize", "ElementShape"):
            attrs["element_dtype"] = dtype
        name = op if op == "EmptyTensorList" else f"TensorList{op}"
        return self.add(name, *inputs, **attrs)

    def fed(self, value: Any, dtype: DataType = F32) -> Any:
        """A tensor whose shape is only known at run time."""
        name = f"fed_{len(self.feeds)}"
        self.feeds[f"{name}:0"] = np.asarray(value, dtype.numpy)
        return self.placeholder(dtype, name)

    def ints(self, value: Any) -> Any:
        """A fed int32 tensor."""
        return self.fed(value, DataType.INT32)

    def reserved(self) -> Any:
        """A list of three uninitialised elements of unknown shape."""
        return self.op("Reserve", self.ints(-1), 3)

    def pair(self) -> Any:
        """A list of the rows of [[1, 2], [3, 4]]."""
        return self.op("FromTensor", self.fed([[1, 2], [3, 4]]), self.ints(-1))

    def one_set(self) -> Any:
        """A list of three elements, of which only the middle one is set."""
        return self.op("SetItem", self.reserved(), 1, self.fed([1, 2]))

    def matrix_set(self) -> Any:
        """A list of three elements, of which only the middle one is set, to a [2, 2] matrix."""
        return self.op("SetItem", self.reserved(), 1, self.fed([[1, 2], [3, 4]]))

    def limited(self, count: int) -> Any:
        """A list limited to one element of shape [2], after `count` elements were pushed."""
        made = self.op("EmptyTensorList", self.ints([2]), 1)
        return made if not count else self.op("PushBack", made, self.fed([5, 6]))

    def stack(self, handle: Any, shape: Any = -1, **attrs: Any) -> Any:
        """All elements, stacked."""
        return self.op("Stack", handle, self.ints(shape), **attrs)

    def get(self, handle: Any, index: int, shape: Any = -1) -> Any:
        """One element."""
        return self.op("GetItem", handle, self.ints(index), self.ints(shape))

    def gather(self, handle: Any, indices: Any, shape: Any = -1) -> Any:
        """Some elements, stacked."""
        return self.op("Gather", handle, self.ints(indices), self.ints(shape))

    def scatter(self, indices: Any, size: int, rows: Any = ((1,), (2,))) -> Any:
        """The elements after TensorListScatterV2 of `rows`, stacked."""
        made = self.op("ScatterV2", self.fed(rows), self.ints(indices), self.ints(-1), size)
        return self.stack(made)

    def split(self, lengths: Any, tensor: Any = ((1,), (2,), (3,)), shape: Any = -1) -> Any:
        """A list of consecutive pieces of a tensor."""
        return self.op(
            "Split", self.fed(tensor), self.ints(shape), self.fed(lengths, DataType.INT64)
        )

    def concat(self, handle: Any, shape: Any = -1, leading: Any = ()) -> Any:
        """The concatenated elements and their lengths."""
        leading_dims = self.fed(leading, DataType.INT64)
        return self.ops("ConcatV2", handle, self.ints(shape), leading_dims)


def _built(name: str, build: Built) -> Case:
    graph = ListGraph()
    outputs = build(graph)
    outputs = [outputs] if isinstance(outputs, tuple) else outputs
    fetches = tuple(output for output, _ in outputs)
    return Case(name, graph.graph_def, (Step(graph.feeds, fetches),), message=True)


def _versions(g: ListGraph) -> Any:
    """A list that later ops were applied to keeps its elements."""
    first = g.pair()
    second = g.op("SetItem", first, 0, g.fed([9, 9]))
    third = g.op("PushBack", second, g.fed([7, 7]))
    fourth, popped = g.ops("PopBack", third, g.ints(-1))
    other = g.op("SetItem", first, 1, g.fed([8, 8]))
    return [popped, *(g.stack(each) for each in (first, second, third, fourth, other))]


def _dtype(dtype: DataType) -> Built:
    def build(g: ListGraph) -> Any:
        made = g.op("Reserve", g.ints(-1), 3, dtype=dtype)
        value = [b"a", b"b"] if dtype == DataType.STRING else [1, 0]
        changed = g.op("SetItem", made, 2, g.fed(value, dtype), dtype=dtype)
        return [
            g.op("Stack", changed, g.ints(-1), dtype=dtype),
            g.op("GetItem", changed, 0, g.ints([2]), dtype=dtype),
            g.op("Gather", changed, g.ints([2, 1]), g.ints(-1), dtype=dtype),
        ]

    return build


def _batch(g: ListGraph) -> Any:
    lists = g.add("Pack", [g.limited(0), g.pair()])[0]
    pushed = g.op("PushBackBatch", lists, g.fed([[1, 2], [3, 4]]))
    one, two = g.add("Unpack", pushed, num=2)
    return [g.stack(one), g.stack(two)]


def _zeros_of_lists(g: ListGraph) -> Any:
    """ZerosLike of a list of lists with an uninitialised element."""
    outer = g.op("Reserve", g.ints([]), 2, dtype=DataType.VARIANT)
    outer = g.op("SetItem", outer, 1, g.pair(), dtype=DataType.VARIANT)
    zeros = g.add("ZerosLike", outer)[0]
    inner = g.op("GetItem", zeros, g.ints(1), g.ints([]), dtype=DataType.VARIANT)
    return g.stack(inner)


def _optional(g: ListGraph) -> Any:
    optional = g.add("OptionalFromValue", [g.fed([1.5]), g.ints(2)])[0]
    none = g.add("OptionalNone")[0]
    types = {"output_types": (F32, DataType.INT32), "output_shapes": ((1,), ())}
    zeros = g.add("ZerosLike", optional)[0]
    total = g.add("AddN", [optional, optional])[0]
    return [
        *(g.add("OptionalHasValue", each)[0] for each in (optional, none)),
        *g.add("OptionalGetValue", optional, **types),
        *g.add("OptionalGetValue", zeros, **types),
        *g.add("OptionalGetValue", total, **types),
    ]


def _wrong_optional(components: int, types: tuple[DataType, ...], shapes: tuple[Any, ...]) -> Built:
    def build(g: ListGraph) -> Any:
        values = [g.fed([1.5]), g.ints(2)][:components]
        made = g.add("OptionalFromValue", values) if values else g.add("OptionalNone")
        return g.add("OptionalGetValue", made[0], output_types=types, output_shapes=shapes)

    return build


BUILT: dict[str, Built] = {
    "versions": _versions,
    "batch": _batch,
    "get_at_a_vector": lambda g: g.get(g.pair(), [1]),
    "get_at_a_matrix": lambda g: g.get(g.pair(), [[0]]),
    "get_unset": lambda g: g.get(g.reserved(), 0, [2]),
    "get_unset_unknown": lambda g: g.get(g.reserved(), 0),
    "get_beside_set": lambda g: g.get(g.one_set(), 0),
    "get_beyond": lambda g: g.get(g.reserved(), 5, [2]),
    "get_negative": lambda g: g.get(g.reserved(), -1, [2]),
    "get_other_shape": lambda g: g.get(g.pair(), 0, [3]),
    "stack_unset": lambda g: g.stack(g.reserved(), [2]),
    "stack_unset_unknown": lambda g: g.stack(g.reserved()),
    "stack_count": lambda g: g.stack(g.reserved(), [2], num_elements=4),
    "stack_partial": lambda g: g.stack(g.one_set()),
    "stack_conflict": lambda g: g.stack(g.one_set(), [3]),
    "stack_ragged": lambda g: g.stack(g.op("SetItem", g.one_set(), 2, g.fed([1]))),
    "stack_empty": lambda g: g.stack(g.limited(0)),
    "stack_empty_unknown": lambda g: g.stack(g.op("EmptyTensorList", g.ints(-1), -1)),
    "set_beyond": lambda g: g.stack(g.op("SetItem", g.one_set(), 7, g.fed([1]))),
    "set_negative": lambda g: g.stack(g.op("SetItem", g.one_set(), -1, g.fed([1]))),
    "set_resizes": lambda g: g.stack(
        g.op("SetItem", g.one_set(), 4, g.fed([1, 7]), resize_if_index_out_of_bounds=True)
    ),
    "set_shape": lambda g: g.stack(
        g.op("SetItem", g.op("Reserve", g.ints([2]), 1), 0, g.fed([1, 2, 3]))
    ),
    "pop": lambda g: g.ops("PopBack", g.limited(1), g.ints(-1))[1],
    "pop_empty": lambda g: g.ops("PopBack", g.limited(0), g.ints(-1))[1],
    "pop_unset": lambda g: g.ops("PopBack", g.reserved(), g.ints([3]))[1],
    "push_shape": lambda g: g.stack(g.op("PushBack", g.limited(0), g.fed([1]))),
    "push_full": lambda g: g.stack(g.op("PushBack", g.limited(1), g.fed([1, 2]))),
    "length": lambda g: g.op("Length", g.pair()),
    "element_shape": lambda g: g.op("ElementShape", g.limited(0), shape_type=DataType.INT32),
    "element_shape_unknown": lambda g: g.op(
        "ElementShape", g.pair(), shape_type=DataType.INT64
    ),
    "resize_longer": lambda g: g.stack(g.op("Resize", g.pair(), 3)),
    "resize_shorter": lambda g: g.stack(g.op("Resize", g.pair(), 1)),
    "resize_negative": lambda g: g.stack(g.op("Resize", g.pair(), -4)),
    "reserve_negative": lambda g: g.stack(g.op("Reserve", g.ints(-1), -3)),
    "reserve_bad_shape": lambda g: g.stack(g.op("Reserve", g.ints([-2]), 3)),
    "from_other_shape": lambda g: g.stack(g.op("FromTensor", g.fed([1.0]), g.ints([2]))),
    "gather": lambda g: g.gather(g.pair(), [1, 0, 1]),
    "gather_none": lambda g: g.gather(g.pair(), [], [2]),
    "gather_none_unknown": lambda g: g.gather(g.pair(), []),
    "gather_beyond": lambda g: g.gather(g.pair(), [2]),
    "gather_negative": lambda g: g.gather(g.pair(), [-1]),
    "gather_partial": lambda g: g.gather(g.one_set(), [0, 1]),
    "gather_unset": lambda g: g.gather(g.one_set(), [0]),
    "scatter": lambda g: g.stack(
        g.op("Scatter", g.fed([[1], [2]]), g.ints([1, 3]), g.ints(-1))
    ),
    "scatter_size": lambda g: g.scatter([1, 3], 6),
    "scatter_beyond": lambda g: g.scatter([1, 3], 2),
    "scatter_negative": lambda g: g.scatter([1, -3], -1),
    "scatter_bad_size": lambda g: g.scatter([1, 3], -7),
    "scatter_few_rows": lambda g: g.scatter([1, 3, 4], -1),
    "scatter_many_rows": lambda g: g.scatter([1, 3], -1, [[1], [2], [3]]),
    "scatter_existing": lambda g: g.stack(
        g.op("ScatterIntoExistingList", g.pair(), g.fed([[7, 8]]), g.ints([1]))
    ),
    "scatter_existing_gap": lambda g: g.stack(
        g.op("ScatterIntoExistingList", g.pair(), g.fed([[7, 8]]), g.ints([3]))
    ),
    "split": lambda g: [g.get(g.split([1, 2]), 1), g.op("Length", g.split([0, 3, 0]))],
    "split_unused": lambda g: g.op("Length", g.split([1, 1])),
    "split_beyond": lambda g: g.op("Length", g.split([1, 3])),
    "split_negative": lambda g: g.op("Length", g.split([-1, 4])),
    "split_matrix": lambda g: g.op("Length", g.split([[1, 2]])),
    "split_shape": lambda g: g.op("Length", g.split([1, 2], shape=[-1, 2])),
    "split_scalar": lambda g: g.op("Length", g.split([1, 2], 1.0)),
    "concat": lambda g: g.concat(g.split([1, 2]), [-1, 1]),
    "concat_v1": lambda g: g.ops("Concat", g.split([1, 2]), element_shape=None),
    "concat_unset": lambda g: g.concat(g.reserved(), [-1, 1], [1, 0, 2]),
    "concat_unset_unknown": lambda g: g.concat(g.reserved()),
    "concat_short_dims": lambda g: g.concat(g.reserved(), [-1, 1], [1, 0]),
    "concat_empty": lambda g: g.concat(g.limited(0)),
    "concat_empty_unknown": lambda g: g.concat(g.op("EmptyTensorList", g.ints(-1), -1)),
    "concat_scalars": lambda g: g.concat(g.op("FromTensor", g.fed([1.0, 2]), g.ints(-1))),
    "concat_lists": lambda g: g.stack(g.op("ConcatLists", g.pair(), g.pair())),
    "concat_lists_shapes": lambda g: g.stack(g.op("ConcatLists", g.pair(), g.limited(0))),
    "concat_unset_one_length": lambda g: g.concat(g.matrix_set()),
    "concat_unset_two_lengths": lambda g: g.concat(
        g.op("SetItem", g.matrix_set(), 0, g.fed([[5, 6]]))
    ),
    "concat_unset_two_lengths_given": lambda g: g.concat(
        g.op("SetItem", g.matrix_set(), 0, g.fed([[5, 6]])), -1, [5, 5, 4]
    ),
    "concat_unset_lengths_count": lambda g: g.concat(g.matrix_set(), -1, [5, 2, 4]),
    "concat_unset_list_shape": lambda g: g.concat(g.op("Reserve", g.ints([2, 3]), 3)),
    "concat_unset_op_shape": lambda g: g.concat(g.reserved(), [2, 3]),
    "concat_first_dimension": lambda g: g.concat(g.matrix_set(), [3, 2]),
    "concat_inner_shape": lambda g: g.concat(g.matrix_set(), [-1, 3]),
    "concat_inner_rank": lambda g: g.concat(g.matrix_set(), [-1, 3, 1]),
    "concat_other_shape": lambda g: g.concat(g.op("Reserve", g.ints([2, 3]), 3), [1, 3]),
    "concat_scalar_list": lambda g: g.concat(g.op("EmptyTensorList", g.ints([]), -1)),
    "concat_v1_scalar": lambda g: g.ops("Concat", g.limited(0), element_shape=()),
    "concat_v1_unset": lambda g: g.ops("Concat", g.reserved(), element_shape=(2, 3)),
    "concat_v1_list_shape": lambda g: g.ops("Concat", g.limited(0), element_shape=None),
    "concat_v1_first": lambda g: g.ops("Concat", g.split([1, 2]), element_shape=(2, 1)),
    "gather_ranks": lambda g: g.gather(
        g.op("PushBack", g.pair(), g.fed(3.0)), [0, 2]
    ),
    "scatter_size_vector": lambda g: g.scatter([1, 3], [3]),
    "scatter_existing_matrix": lambda g: g.stack(
        g.op("ScatterIntoExistingList", g.pair(), g.fed([[7, 8]]), g.ints([[1]]))
    ),
    "resize_vector": lambda g: g.stack(g.op("Resize", g.pair(), g.ints([3]))),
    "reserve_vector": lambda g: g.stack(g.op("Reserve", g.ints(-1), g.ints([3]))),
    "empty_limit_vector": lambda g: g.stack(
        g.op("EmptyTensorList", g.ints(-1), g.ints([3]))
    ),
    "zeros_like_lists": _zeros_of_lists,
    "zeros_like": lambda g: g.stack(g.add("ZerosLike", g.pair())[0]),
    "add_n": lambda g: g.stack(g.add("AddN", [g.pair(), g.pair(), g.pair()])[0]),
    "add_n_shapes": lambda g: g.stack(
        g.add("AddN", [g.pair(), g.op("FromTensor", g.fed([1.0, 2]), g.ints(-1))])[0]
    ),
    "split_scalar_shape": lambda g: g.stack(g.split([1, 2], shape=[])),
    "split_other_shapes": lambda g: g.stack(g.split([1, 2], shape=[-1, 2])),
    "split_shape_of_a_vector": lambda g: g.stack(g.split([1, 2], shape=[1])),
    "add_n_element_shapes": lambda g: g.stack(
        g.add(
            "AddN",
            [g.op("Reserve", g.ints([]), 3), g.op("Reserve", g.ints([2]), 3)],
        )[0]
    ),
    "optional": _optional,
    "optional_type": _wrong_optional(2, (F32, F32), ((1,), ())),
    "optional_count": _wrong_optional(2, (F32,), ((1,),)),
    "optional_shape": _wrong_optional(1, (F32,), ((3,),)),
    "optional_none": _wrong_optional(0, (F32,), ((1,),)),
    **{
        f"dtype_{dtype.tf_name}": _dtype(dtype)
        for dtype in (
            DataType.DOUBLE, DataType.HALF, DataType.INT32, DataType.BOOL, DataType.STRING,
            DataType.COMPLEX64, DataType.INT8,
        )
    },
}  # fmt: skip

CASES = tuple(_built(name, build) for name, build in BUILT.items())

"""TensorArrays: created, written and read within one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F32 = DataType.FLOAT


class ArrayGraph(Graph):
    """A float TensorArray and ops on it; `flow` orders them."""

    def __init__(self, version: str = "V3", size: int = 3, **attrs: Any) -> None:
        super().__init__()
        self.version = version
        if version == "V2":
            self.graph_def.versions.producer = 20  # graphs from version 26 on reject these ops
        attrs = {"dtype": F32, **attrs}
        outputs = self.add(f"TensorArray{version}", np.int32(size), **attrs)
        self.handle = outputs[0]
        self.flow = outputs[1] if version == "V3" else self.add("Identity", np.float32(0))[0]

    def op(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        return self.add(f"TensorArray{op}{self.version}", self.handle, *inputs, self.flow, **attrs)

    def write(self, index: int, value: Any) -> ArrayGraph:
        self.flow = self.op("Write", np.int32(index), np.asarray(value, np.float32))[0]
        return self

    def scatter(self, indices: Any, value: Any) -> ArrayGraph:
        self.flow = self.op("Scatter", np.array(indices, np.int32), np.asarray(value, np.float32))[
            0
        ]
        return self

    def split(self, value: Any, lengths: Any) -> ArrayGraph:
        self.flow = self.op("Split", np.asarray(value, np.float32), np.array(lengths, np.int64))[0]
        return self

    def read(self, index: int) -> Any:
        return self.op("Read", np.int32(index), dtype=F32)[0]

    def gather(self, indices: Any, **attrs: Any) -> Any:
        return self.op("Gather", np.array(indices, np.int32), dtype=F32, **attrs)[0]

    def concat(self, **attrs: Any) -> Any:
        return self.op("Concat", dtype=F32, **attrs)

    def size(self) -> Any:
        return self.op("Size")[0]

    def gradient(self, source: str = "g") -> ArrayGraph:
        """The array of this array's gradients, in the same graph."""
        made = ArrayGraph.__new__(ArrayGraph)
        made.graph_def, made.version = self.graph_def, self.version
        made.handle, made.flow = self.op("Grad", source=source)
        return made


def _case(name: str, build: Callable[[], tuple[ArrayGraph, Any]]) -> Case:
    graph, outputs = build()
    fetches = [output for output, _ in (outputs if isinstance(outputs, list) else [outputs])]
    return Case(name, graph.graph_def, (Step({}, fetches),))


def _read_all(version: str) -> tuple[ArrayGraph, Any]:
    g = ArrayGraph(version, clear_after_read=False)
    g.write(0, [1, 2]).write(2, [3, 4]).write(1, [5, 6])
    return g, [g.read(0), g.read(2), g.gather([1, 0]), g.size(), *g.concat()]


def _scattered(version: str) -> tuple[ArrayGraph, Any]:
    g = ArrayGraph(version, size=1, dynamic_size=True).scatter([3, 1, 0, 2], [[1], [2], [3], [4]])
    return g, [g.gather([0, 1, 2, 3]), g.size()]


def _split(version: str) -> tuple[ArrayGraph, Any]:
    g = ArrayGraph(version, clear_after_read=False).split([[1, 2], [3, 4], [5, 6]], [2, 0, 1])
    return g, [g.read(0), g.read(1), *g.concat()]


def _gradients() -> tuple[ArrayGraph, Any]:
    g = ArrayGraph(element_shape=(2,)).write(0, [1, 2])
    gradient = g.gradient().write(0, [1, 1]).write(0, [2, 3]).write(1, [5, 5])
    return g, [gradient.gather([0, 1, 2]), gradient.size()]


def _joined_gradients(*marks: str) -> tuple[ArrayGraph, Any]:
    """A concat of gradients takes as many elements as the forward array was last marked with."""
    g = ArrayGraph(size=3, dynamic_size=True)
    for mark in marks:
        g = g.split([1, 2, 3], [1, 1, 1]) if mark == "split" else g.scatter([3], [[4]])
    gradient = g.write(4, [5]).gradient()
    for index in range(5):
        gradient = gradient.write(index, [index])
    return g, gradient.concat(element_shape_except0=())


def _after(g: ArrayGraph, output: Any) -> ArrayGraph:
    """The array, with a flow that waits for `output`."""
    g.flow = g.add("Identity", g.flow, control=[output[0].split(":")[0]])[0]
    return g


def _shape_from_gather(item: Any) -> tuple[ArrayGraph, Any]:
    """The element shape given to a gather also applies to later ops."""
    g = ArrayGraph().write(0, [1, 2])
    gathered = g.gather([0], element_shape=(-1,))
    return g, [gathered, _after(g, gathered).write(1, item).read(1)]


def _zeros_after_gather() -> tuple[ArrayGraph, Any]:
    g = ArrayGraph().write(0, [1, 2])
    gathered = g.gather([0], element_shape=(2,))
    return g, [gathered, _after(g, gathered).read(1)]


def _read_gradient_twice() -> tuple[ArrayGraph, Any]:
    g = ArrayGraph().write(0, [1, 2]).gradient().write(0, [3, 4])
    first = g.read(0)
    return g, [first, _after(g, first).read(0)]


def _closed() -> tuple[ArrayGraph, Any]:
    g = ArrayGraph().write(0, [1])
    g.add("TensorArrayCloseV3", g.handle, name="close", control=[g.flow[0].split(":")[0]])
    g.flow = g.add("Identity", g.flow, control=["close"])[0]
    return g, g.size()


def _grad_with_shape() -> tuple[ArrayGraph, Any]:
    g = ArrayGraph(element_shape=(2,)).write(0, [1, 2])
    handle, flow = g.add(
        "TensorArrayGradWithShape", g.handle, g.flow, np.array([3], np.int32), source="s"
    )
    return g, g.add("TensorArrayReadV3", handle, np.int32(0), flow, dtype=F32)


def _grad_with_shape_of_matrix() -> tuple[ArrayGraph, Any]:
    g = ArrayGraph(element_shape=(2,)).write(0, [1, 2])
    prefix = np.array([[3]], np.int32)
    handle, flow = g.add("TensorArrayGradWithShape", g.handle, g.flow, prefix, source="s")
    return g, g.add("TensorArrayReadV3", handle, np.int32(0), flow, dtype=F32)


def _grad_with_shape_written() -> tuple[ArrayGraph, Any]:
    """An element written in the array is present in its gradient, as zeros of its own shape."""
    g = ArrayGraph().write(0, [1, 2])
    handle, flow = g.add(
        "TensorArrayGradWithShape", g.handle, g.flow, np.array([3], np.int32), source="s"
    )
    return g, g.add("TensorArrayReadV3", handle, np.int32(0), flow, dtype=F32)


def _strings() -> tuple[ArrayGraph, Any]:
    g = ArrayGraph(dtype=DataType.STRING, element_shape=())
    for index, text in enumerate((b"x", b"yz")):
        g.flow = g.op("Write", np.int32(index), np.array(text, object))[0]
    return g, g.op("Gather", np.array([0, 1], np.int32), dtype=DataType.STRING)


def _from(make: Callable[..., ArrayGraph], **attrs: Any) -> Callable[..., Any]:
    return lambda use: lambda: (lambda g: (g, use(g)))(make(**attrs))


_fixed, _named = _from(ArrayGraph, clear_after_read=False), _from(ArrayGraph, element_shape=(2,))
_dynamic = _from(ArrayGraph, dynamic_size=True, size=0)
_identical = _from(ArrayGraph, identical_element_shapes=True)
_OK = {
    **{f"read_all_{v}": (lambda v=v: _read_all(v)) for v in ("V2", "V3")},
    **{f"scatter_{v}": (lambda v=v: _scattered(v)) for v in ("V2", "V3")},
    **{f"split_{v}": (lambda v=v: _split(v)) for v in ("V2", "V3")},
    "gradients": _gradients,
    "joined_gradients_of_split": lambda: _joined_gradients("split"),
    "joined_gradients_of_scatter": lambda: _joined_gradients("split", "scatter"),
    "grad_with_shape": _grad_with_shape,
    "grad_with_shape_written": _grad_with_shape_written,
    "gradient_unset": lambda: (g := ArrayGraph().write(0, [1, 2]), g.gradient().gather([0])),
    "gather_empty_first": _fixed(lambda g: g.write(0, []).write(1, [1, 2]).gather([0, 1])),
    "shape_from_gather": lambda: _shape_from_gather([1, 2, 3]),
    "zeros_after_gather": _zeros_after_gather,
    "strings": _strings,
    "strings_unset": _from(ArrayGraph, dtype=DataType.STRING, element_shape=(0,))(
        lambda g: g.op("Read", np.int32(1), dtype=DataType.STRING)
    ),
    "read_unset": _named(lambda g: g.read(1)),
    "gather_none": _named(lambda g: g.gather([], element_shape=(2,))),
    "concat_none": _dynamic(lambda g: g.concat(element_shape_except0=(4,))),
    "grow": _dynamic(lambda g: [g.write(4, [1]).size()]),
}
_WRONG = {
    "grad_with_shape_of_matrix": _grad_with_shape_of_matrix,
    "closed": _closed,
    "read_unset_unknown": _fixed(lambda g: g.read(1)),
    "read_beyond": _fixed(lambda g: g.read(3)),
    "read_negative": _fixed(lambda g: g.read(-1)),
    "write_beyond": _fixed(lambda g: g.write(3, [1]).size()),
    "write_negative": _dynamic(lambda g: g.write(-1, [1]).size()),
    "write_twice": _fixed(lambda g: g.write(1, [1]).write(1, [1]).size()),
    "write_shape": _named(lambda g: g.write(1, [1, 2, 3]).size()),
    "write_other_shape": _identical(lambda g: g.write(1, [1, 2]).write(0, [1]).size()),
    "gather_ragged": _fixed(lambda g: g.write(0, [1]).write(1, [1, 2]).gather([0, 1])),
    "gather_none_unknown": _fixed(lambda g: g.gather([])),
    "gather_none_of_known": _named(lambda g: g.gather([])),
    "gather_other_shape": _named(lambda g: g.gather([0], element_shape=(3,))),
    "gather_not_the_shape": _fixed(lambda g: g.write(0, [1, 2]).gather([0], element_shape=(3,))),
    "shape_from_gather_not_kept": lambda: _shape_from_gather([[1]]),
    "gradient_of_other_shape": _fixed(
        lambda g: g.write(0, [1, 2]).gradient().write(0, [1]).read(0)
    ),
    "gradient_read_twice": _read_gradient_twice,
    "concat_not_the_shape": _fixed(
        lambda g: g.split([[1], [2], [3]], [1, 1, 1]).concat(element_shape_except0=(5,))
    ),
    "concat_scalars": _fixed(lambda g: g.scatter([0, 1, 2], [1, 2, 3]).concat()),
    "concat_none_unknown": _dynamic(lambda g: g.concat()),
    "concat_ragged": _fixed(
        lambda g: g.write(0, [[1]]).write(1, [[1, 2]]).write(2, [[1]]).concat()
    ),
    "scatter_beyond": _fixed(lambda g: g.scatter([0, 5], [1, 2]).size()),
    "scatter_count": _fixed(lambda g: g.scatter([0, 1], [1, 2, 3]).size()),
    "split_count": _fixed(lambda g: g.split([1, 2, 3], [1, 2]).size()),
    "split_sum": _fixed(lambda g: g.split([1, 2, 3], [1, 1, 2]).size()),
    "size_negative": _from(ArrayGraph, size=-1)(lambda g: g.size()),
    "dtype": _fixed(lambda g: g.op("Read", np.int32(0), dtype=DataType.INT32)),
}


def _handle_of_strings() -> Case:
    """A handle of two strings that no TensorArrayV2 has returned."""
    g = Graph()
    g.graph_def.versions.producer = 20  # graphs from version 26 on reject this op
    handle = np.array([b"a", b"b"], object)
    g.add("TensorArraySizeV2", handle, np.float32(0), name="size")
    return Case("TensorArrayV2_strings", g.graph_def, (Step({}, ("size:0",)),))


# Messages contain the array's or the step's name, which vary: only error codes are compared.
CASES = (
    *(_case(name, build) for name, build in (_OK | _WRONG).items()),
    _handle_of_strings(),
)

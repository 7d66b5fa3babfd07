"""Tensor maps: created, changed and read within one step."""

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F32, I32, STRING = DataType.FLOAT, DataType.INT32, DataType.STRING
NAN = np.float32("nan")


class MapGraph(Graph):
    """A graph of tensor map ops."""

    def map_of(self, *entries: tuple[Any, Any]) -> Any:
        """A map with these (key, value) entries, inserted in order."""
        made = self.add("EmptyTensorMap")[0]
        for key, value in entries:
            made = self.add("TensorMapInsert", made, key, value)[0]
        return made

    def size(self, of: Any) -> Any:
        """The number of entries."""
        return self.add("TensorMapSize", of)[0]

    def look_up(self, of: Any, key: Any, value_dtype: DataType = F32) -> Any:
        """The value at a key."""
        return self.add("TensorMapLookup", of, key, value_dtype=value_dtype)[0]

    def erased(self, of: Any, key: Any, value_dtype: DataType = F32) -> Any:
        """The map without a key."""
        return self.add("TensorMapErase", of, key, value_dtype=value_dtype)[0]

    def has(self, of: Any, key: Any) -> Any:
        """Whether the map has a key."""
        return self.add("TensorMapHasKey", of, key)[0]

    def keys(self, of: Any, key_dtype: DataType = F32) -> Any:
        """All keys; TensorFlow returns them in the order of its hash table."""
        return self.add("TensorMapStackKeys", of, key_dtype=key_dtype)[0]


PAIR, WORDS = np.float32([2, 3]), np.array([b"a", b"b"], object)
ONE = (1.0, PAIR)
BUILT: dict[str, Callable[[MapGraph], Any]] = {
    "size_empty": lambda g: g.size(g.map_of()),
    "size": lambda g: g.size(g.map_of(ONE, (2.0, 1.0), (2, 1.0))),
    "size_same_key": lambda g: g.size(g.map_of(ONE, (1.0, 1.0))),
    "look_up": lambda g: g.look_up(g.map_of(ONE, (2.0, 5)), 1.0),
    "look_up_replaced": lambda g: g.look_up(g.map_of(ONE, (1.0, 9.0)), 1.0),
    "look_up_string": lambda g: g.look_up(g.map_of((1.0, "text")), 1.0, STRING),
    "look_up_missing": lambda g: g.look_up(g.map_of(ONE), 7.0),
    "look_up_missing_vector": lambda g: g.look_up(g.map_of(ONE), np.float32([1.5, 2, 3, 4])),
    "look_up_empty": lambda g: g.look_up(g.map_of(), 1.0),
    "look_up_other_type": lambda g: g.look_up(g.map_of(ONE), 1.0, I32),
    "erased": lambda g: g.size(g.erased(g.map_of(ONE, (2.0, 1.0)), 1.0)),
    "erased_other_type": lambda g: g.size(g.erased(g.map_of(ONE), 1.0, I32)),
    "erased_missing": lambda g: g.size(g.erased(g.map_of(ONE), 7.0)),
    "has": lambda g: g.has(g.map_of(ONE), 1.0),
    "has_not": lambda g: g.has(g.map_of(ONE), 2.0),
    "has_other_shape": lambda g: g.has(g.map_of(ONE), np.float32([1])),
    "has_other_type": lambda g: g.has(g.map_of(ONE), 1),
    "has_nan": lambda g: g.has(g.map_of((NAN, 1.0)), NAN),
    "has_negative_zero": lambda g: g.has(g.map_of((0.0, 1.0)), -0.0),
    "has_other_empty": lambda g: g.has(
        g.map_of((np.zeros(0, np.float32), 1.0)), np.zeros((0, 2), np.float32)
    ),
    "has_string": lambda g: g.has(g.map_of((WORDS, 1.0)), WORDS),
    "keys": lambda g: g.keys(g.map_of(ONE)),
    "keys_of_vectors": lambda g: g.keys(g.map_of((PAIR, 1.0))),
    "keys_of_strings": lambda g: g.keys(g.map_of(("a", 1.0)), STRING),
    "keys_of_empty": lambda g: g.keys(g.map_of()),
    "keys_of_other_type": lambda g: g.keys(g.map_of(ONE), I32),
    "keys_of_shapes": lambda g: g.keys(g.map_of(ONE, (PAIR, 1.0))),
    "sum": lambda g: g.look_up(g.add("AddN", [g.map_of(ONE), g.map_of(ONE)])[0], 1.0),
    "sum_other_keys": lambda g: g.size(g.add("AddN", [g.map_of(ONE), g.map_of((2.0, 1.0))])[0]),
    "zeros": lambda g: g.size(g.add("ZerosLike", g.map_of(ONE))[0]),
    "vector_of_maps": lambda g: g.size(g.add("Pack", [g.map_of(ONE), g.map_of()])[0]),
}


def built(name: str, build: Callable[[MapGraph], Any]) -> Case:
    graph = MapGraph()
    step = Step({}, (build(graph)[0],))
    # In this case the message is from TensorFlow's executor, which adds no node name at the end.
    return Case(name, graph.graph_def, (step,), message=name != "look_up_other_type")


def of_a_list() -> Case:
    """A list in place of a map: not its message, in which TensorFlow prints its C++ type."""
    graph = MapGraph()
    made = graph.add("EmptyTensorList", np.int32([]), np.int32(1), element_dtype=I32)[0]
    return Case("of_a_list", graph.graph_def, (Step({}, (graph.size(made)[0],)),))


CASES = (*(built(name, build) for name, build in BUILT.items()), of_a_list())

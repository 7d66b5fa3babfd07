"""Cases of barriers: several steps on one session that insert, take and close."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F32, I32, TEXT = DataType.FLOAT, DataType.INT32, DataType.STRING
TYPES = (F32, F32)


class BarrierGraph(Graph):
    """A barrier `b` with one op of each kind; keys, values and counts are fed."""

    def __init__(
        self, types: tuple[DataType, ...] = TYPES, shapes: Any = ((), ()), **attrs: Any
    ) -> None:
        super().__init__()
        attrs = {"capacity": -1, "shared_name": "b", **attrs}
        self.types = types
        made = self.add("Barrier", component_types=types, shapes=shapes, name="b", **attrs)[0]
        self.barrier = made
        self.keys = self.placeholder(TEXT, "keys")
        self.n = self.placeholder(I32, "n")
        for index, each in enumerate(types):
            values = self.placeholder(each, f"x{index}")
            self.insert(f"insert_{index}", values, index)
        self.take("take")
        self.take("take_small", allow_small_batch=True)
        self.add("BarrierClose", made, name="close")
        self.add("BarrierClose", made, cancel_pending_enqueues=True, name="cancel")
        self.add("BarrierReadySize", made, name="ready")
        self.add("BarrierIncompleteSize", made, name="incomplete")

    def insert(self, name: str, values: Any, index: int) -> None:
        """Add an op that inserts a component."""
        inputs = (self.barrier, self.keys, values)
        self.add("BarrierInsertMany", *inputs, component_index=index, name=name)

    def take(self, name: str, types: tuple[DataType, ...] = (), **attrs: Any) -> None:
        """Add an op that takes elements."""
        types = types or self.types
        self.add("BarrierTakeMany", self.barrier, self.n, component_types=types, name=name, **attrs)


def put(component: int, keys: str, *values: Any) -> Step:
    """Insert values of a component; each letter of `keys` is a key."""
    letters = np.array([letter.encode() for letter in keys], object)
    feeds = {"keys:0": letters, f"x{component}:0": np.float32(values)}
    return Step(feeds, (), (f"insert_{component}",))


def take(n: int, op: str = "take", outputs: int = 4) -> Step:
    """Take n elements."""
    return Step({"n:0": np.int32(n)}, [f"{op}:{i}" for i in range(outputs)])


def small(n: int) -> Step:
    """Take n elements, or fewer of a closed barrier."""
    return take(n, "take_small")


CLOSE, CANCEL = Step({}, (), ("close",)), Step({}, (), ("cancel",))
STATE = Step({}, ("ready:0", "incomplete:0"))
HALF, OTHER_HALF = put(0, "ab", 1, 2), put(1, "ba", 20, 10)
NOTHING = put(0, "")


def on(name: str, *steps: Step, graph: BarrierGraph | None = None) -> Case:
    return Case(name, (graph or BarrierGraph()).graph_def, steps, message=True)


def shaped() -> Case:
    values = np.arange(4, dtype=np.float32).reshape(2, 2)
    graph = BarrierGraph(shapes=((2,), ()))
    return on("shaped", put(0, "ab", *values), OTHER_HALF, take(2), graph=graph)


def other_shapes() -> Case:
    """Shapes are checked when an element is complete: it is dropped if one does not fit."""
    wide = np.ones((1, 3), np.float32)
    steps = (put(0, "a", *wide[:, :2]), put(0, "b", *wide), STATE, put(1, "b", 1), STATE)
    graph = BarrierGraph(shapes=((2,), ()))
    return on("other_shapes", *steps, put(1, "a", 2), STATE, take(1), graph=graph)


def typed(name: str, change: str, steps: tuple[Step, ...]) -> Case:
    """An additional op whose types or component index do not fit the barrier."""
    graph = BarrierGraph()
    ints = graph.placeholder(I32, "ints")
    if change == "insert":
        graph.insert("other", ints, 0)
    elif change == "component":
        graph.insert("other", graph.placeholder(F32, "floats"), 2)
    else:
        graph.take("other", types=(I32, F32) if change == "take" else (F32,))
    return on(name, *steps, graph=graph)


def other(**feeds: Any) -> Step:
    return Step({f"{key}:0": value for key, value in feeds.items()}, (), ("other",))


KEYS = np.array([b"a"], object)
CASES = (
    on("insert_and_take", STATE, HALF, STATE, OTHER_HALF, STATE, take(2), STATE),
    on("in_order_of_first_parts", HALF, put(0, "c", 3), put(1, "c", 30), OTHER_HALF, take(3)),
    on("take_nothing", take(0)),
    # After completion a key counts as new; what the step inserted before the error is lost.
    on("complete_and_again", HALF, CLOSE, put(1, "bab", 20, 10, 30), STATE, small(1)),
    on("take_less_than_nothing", CLOSE, take(-2), small(-2)),
    on("key_comes_again", put(0, "a", 1), put(1, "a", 2), put(0, "a", 3), STATE),
    on("twice", HALF, HALF, STATE),
    on("twice_at_once", put(0, "aa", 1, 2)),
    on("too_many_values", Step({**HALF.feeds, "x0:0": np.float32([1, 2, 3])}, (), ("insert_0",))),
    on("no_values", NOTHING, STATE),
    on("close", HALF, CLOSE, CLOSE, put(0, "c", 3), put(1, "a", 10), small(2), take(3), STATE),
    on("close_complete", HALF, OTHER_HALF, CLOSE, take(1), small(2), take(1), small(1), NOTHING),
    on("close_after_close", HALF, CLOSE, OTHER_HALF, take(2), take(1), HALF, NOTHING, CANCEL),
    on("cancel", HALF, CANCEL, CANCEL, CLOSE, OTHER_HALF, take(1), NOTHING, STATE),
    on("close_then_cancel", HALF, CLOSE, CANCEL, take(1), STATE),
    on("capacity", STATE, graph=BarrierGraph(capacity=3)),
    on("no_shapes", STATE, graph=BarrierGraph(shapes=())),
    on("unknown_shapes", put(0, "a", 1), STATE, graph=BarrierGraph(shapes=(None, None))),
    on("handle", Step({}, ("b:0",))),
    on("empty_rows", put(0, "a", []), graph=BarrierGraph(shapes=((0,), ()))),
    shaped(),
    other_shapes(),
    on("stops_at_what_is_there", HALF, put(0, "cad", 3, 4, 5), STATE, put(1, "cbb", 6, 7, 8), STATE,
       put(0, "b", 9), STATE, take(1)),
    typed("insert_other_type", "insert", (other(keys=KEYS, ints=np.int32([1])),)),
    typed("insert_other_component", "component", (other(keys=KEYS, floats=np.float32([1])),)),
    typed("take_other_types", "take", (other(n=np.int32(1)),)),
    typed("take_fewer_types", "fewer", (other(n=np.int32(1)),)),
)  # fmt: skip

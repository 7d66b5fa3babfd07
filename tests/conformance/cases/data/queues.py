"""Queues: several steps in one session, with operations that wait for each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F32, I32, I64, TEXT = DataType.FLOAT, DataType.INT32, DataType.INT64, DataType.STRING


class QueueGraph(Graph):
    """A graph with a queue `q` and one op of each kind; the elements are fed."""

    def __init__(
        self, kind: str, types: tuple[DataType, ...], version: str = "V2", **attrs: Any
    ) -> None:
        super().__init__()
        attrs = {"capacity": 3, "shared_name": "q", **attrs}
        self.version, self.types = version, types
        self.queue = self.add(kind + version, component_types=types, name="q", **attrs)[0]
        self.seen = (I64, *types) if kind.startswith("Priority") else types
        values = [self.placeholder(t, f"x{i}") for i, t in enumerate(self.seen)]
        self.n = self.placeholder(I32, "n")
        self.op("Enqueue", values)
        self.op("EnqueueMany", values, name="enqueue_many")
        self.op("Dequeue", component_types=self.seen)
        self.op("DequeueMany", self.n, component_types=self.seen, name="dequeue_many")
        self.op("DequeueUpTo", self.n, component_types=self.seen, name="dequeue_up_to")
        self.op("Close")
        self.op("Close", cancel_pending_enqueues=True, name="cancel")
        self.op("Size")
        self.op("IsClosed", name="is_closed")

    def op(self, op: str, *inputs: Any, name: str = "", **attrs: Any) -> None:
        self.add(f"Queue{op}{self.version}", self.queue, *inputs, name=name or op.lower(), **attrs)

    def put(self, *values: Any, many: bool = False) -> Step:
        feeds = {
            f"x{i}:0": np.asarray(value, t.numpy)
            for i, (value, t) in enumerate(zip(values, self.seen, strict=True))
        }
        return Step(feeds, (), ("enqueue_many" if many else "enqueue",))

    def take(self, n: int | None = None, op: str = "dequeue_many") -> Step:
        outputs = range(len(self.seen))
        if n is None:
            return Step({}, [f"dequeue:{i}" for i in outputs])
        return Step({"n:0": np.int32(n)}, [f"{op}:{i}" for i in outputs])

    def up_to(self, n: int) -> Step:
        return self.take(n, "dequeue_up_to")

    close = Step({}, (), ("close",))
    cancel = Step({}, (), ("cancel",))
    state = Step({}, ("size:0", "is_closed:0"))


def _order(kind: str, version: str, **attrs: Any) -> Case:
    """Return a case that enqueues, dequeues in parts, closes, and dequeues the rest."""
    g = QueueGraph(kind, (F32, I32), version, shapes=((2,), ()), **attrs)
    key = ((5,), (1,), (3,)) if kind.startswith("Priority") else ((),) * 3
    puts = [g.put(*k, [i, i + 1], i) for i, k in enumerate(key)]
    many = [g.put(*zip(*key, strict=True), [[7, 8], [9, 10], [11, 12]], [7, 9, 11], many=True)]
    steps = (
        *puts, g.state, g.take(), g.take(2), g.take(0), g.state, *many, g.take(2), g.close,
        # TensorFlow's PriorityQueue loses elements when DequeueUpTo gets fewer than requested.
        g.state, g.take() if key[0] else g.up_to(5), g.up_to(5), g.take(), g.take(2), puts[0],
        g.state,
    )  # fmt: skip
    return Case(f"{kind}{version}", g.graph_def, steps, message=True)


def _shuffle(seed: int) -> Case:
    g = QueueGraph(
        "RandomShuffleQueue", (I32,), shapes=((),), capacity=40, min_after_dequeue=3, seed=seed,
        seed2=7,
    )  # fmt: skip
    steps = (
        g.put(range(20), many=True), g.take(5), g.take(), g.put(range(20, 30), many=True),
        g.take(20), g.close, g.take(2), g.up_to(9), g.take(),
    )  # fmt: skip
    return Case(f"shuffle_{seed}", g.graph_def, steps, message=True)


def _padding() -> Case:
    types, shapes = (F32, TEXT), ((-1, 2), (-1,))
    g = QueueGraph("PaddingFIFOQueue", types, shapes=shapes)
    one, two = ([[1, 2]], [b"a", b"b"]), ([[3, 4], [5, 6]], [b"c"])
    steps = (
        g.put(*one), g.put(*two), g.take(2), g.put(*two), g.put(*one), g.take(), g.take(0),
        g.put([[1, 2, 3]], [b"a"]), g.close, g.up_to(3), g.take(),
    )  # fmt: skip
    return Case("padding", g.graph_def, steps, message=True)


def _errors() -> Case:
    g = QueueGraph("FIFOQueue", (F32, I32), shapes=((2,), ()))
    g.op("Enqueue", [g.placeholder(I32, "wrong")], name="wrong_types")
    g.op("Dequeue", component_types=(I32,), name="wrong_outputs")
    steps = (
        g.put([1, 2, 3], 1), g.put([1, 2], [1]), g.put([[1, 2, 3]], [1], many=True),
        g.put([[1, 2], [3, 4]], [1], many=True), g.put([[1, 2]], 1, many=True),
        Step({"wrong:0": np.int32(1)}, (), ("wrong_types",)), Step({}, ("wrong_outputs:0",)),
        g.take(-1), g.up_to(-2), g.put(np.zeros((0, 2)), [], many=True), g.state, g.close, g.close,
        g.put(np.zeros((0, 2)), [], many=True), g.cancel,
    )  # fmt: skip
    return Case("errors", g.graph_def, steps, message=True)


def _open_shapes() -> Case:
    g = QueueGraph("FIFOQueue", (F32,), shapes=(), capacity=-1)
    steps = (g.put([1, 2, 3]), g.put(4), g.take(), g.take(), g.take(1), g.cancel, g.take())
    return Case("open_shapes", g.graph_def, steps, message=True)


def _waiting() -> Case:
    """Return a case where an enqueue and a dequeue of one step wait for each other."""
    g = QueueGraph("FIFOQueue", (I32,), shapes=((),), capacity=2)
    many = np.arange(6, dtype=np.int32)
    steps = (
        Step({"x0:0": np.int32(4)}, ("dequeue:0",), ("enqueue",)),
        Step({"x0:0": many, "n:0": np.int32(5)}, ("dequeue_many:0",), ("enqueue_many",)),
        g.state,
        Step({"n:0": np.int32(3)}, ("dequeue_up_to:0",), ("close",)),
    )
    return Case("waiting", g.graph_def, steps, message=True)


def _clash(name: str, kind: str, **attrs: Any) -> Case:
    """Return a case of a second queue node of the same name with other attributes."""
    g = QueueGraph("FIFOQueue", (F32,), shapes=((2,),))
    wanted = {"component_types": (F32,), "shapes": ((2,),), "capacity": 3, **attrs}
    other = g.add(kind, shared_name="q", name="other", **wanted)[0]
    g.add("QueueSizeV2", other, name="other_size")
    return Case(f"clash_{name}", g.graph_def, (g.state, Step({}, ("other_size:0",))), message=True)


def _shuffled_clash(name: str, **attrs: Any) -> Case:
    """Return a case of two RandomShuffleQueues of one name with different attributes."""
    g = Graph()
    alike = {"component_types": (F32,), "shared_name": "q", "capacity": 5}
    for each, own in (("one", {"min_after_dequeue": 1, "seed": 3}), ("other", attrs)):
        queue = g.add("RandomShuffleQueueV2", **alike, **own)[0]
        g.add("QueueSizeV2", queue, name=each)
    steps = (Step({}, ("one:0",)), Step({}, ("other:0",)))
    return Case(f"clash_{name}", g.graph_def, steps, message=True)


def _bad(name: str, kind: str, **attrs: Any) -> Case:
    g = Graph()
    queue = g.add(kind, component_types=(F32,), shared_name="q", **attrs)[0]
    g.add("QueueSizeV2", queue, name="size")
    return Case(f"bad_{name}", g.graph_def, (Step({}, ("size:0",)),), message=True)


CASES = (
    *(
        _order(kind, version)
        for kind in ("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue")
        for version in ("", "V2")
    ),
    *(_order("RandomShuffleQueue", v, min_after_dequeue=0, seed=3) for v in ("", "V2")),
    _shuffle(1),
    _shuffle(12345),
    _padding(),
    _errors(),
    _open_shapes(),
    _waiting(),
    _clash("capacity", "FIFOQueueV2", capacity=4),
    _clash("types", "FIFOQueueV2", component_types=(I32,)),
    _clash("shapes", "FIFOQueueV2", shapes=((3,),)),
    _clash("kind", "PaddingFIFOQueueV2"),
    _shuffled_clash("minimum", min_after_dequeue=2, seed=3),
    _shuffled_clash("seeds", min_after_dequeue=1, seed=3, seed2=4),
    _shuffled_clash("no_seeds", min_after_dequeue=1),
    _bad("padding", "PaddingFIFOQueueV2", shapes=()),
    _bad("shuffle", "RandomShuffleQueueV2", capacity=3, min_after_dequeue=4),
    _bad("minimum", "RandomShuffleQueueV2", capacity=3, min_after_dequeue=-1),
)

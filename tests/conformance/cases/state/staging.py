"""Staging areas, in order and by key, over several steps of one session; no op has to wait."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

F32, I32, I64 = DataType.FLOAT, DataType.INT32, DataType.INT64
TYPES = (F32, F32)


def turns(**limits: int) -> Graph:
    """A graph with one op of each kind on a Stage area of pairs."""
    graph = Graph()
    attrs = {"shared_name": "s", "dtypes": TYPES, **limits}
    x, y = graph.placeholder(F32, "x"), graph.placeholder(F32, "y")
    graph.add("Stage", [x, y], name="put", **attrs)
    graph.add("Unstage", name="get", **attrs)
    graph.add("StagePeek", graph.placeholder(I32, "index"), name="peek", **attrs)
    graph.add("StageSize", name="size", **attrs)
    graph.add("StageClear", name="clear", **attrs)
    return graph


def keys(prefix: str, **limits: int) -> Graph:
    """A graph with ops of each kind on a MapStage area of pairs, for pairs and for components."""
    graph = Graph()
    attrs = {"shared_name": "m", "dtypes": TYPES, **limits}
    key, where = graph.placeholder(I64, "key"), graph.placeholder(I32, "where")
    x, y = graph.placeholder(F32, "x"), graph.placeholder(F32, "y")
    part = {**attrs, "dtypes": (F32,)}
    graph.add(f"{prefix}MapStage", key, where, [x, y], name="put", **attrs)
    graph.add(f"{prefix}MapStage", key, where, [x], name="put_part", **attrs)
    graph.add(f"{prefix}MapUnstage", key, where, name="get", **attrs)
    graph.add(f"{prefix}MapUnstage", key, where, name="get_part", **part)
    graph.add(f"{prefix}MapPeek", key, where, name="peek", **attrs)
    graph.add(f"{prefix}MapUnstageNoKey", where, name="get_any", **attrs)
    graph.add(f"{prefix}MapSize", name="size", **attrs)
    graph.add(f"{prefix}MapIncompleteSize", name="incomplete", **attrs)
    graph.add(f"{prefix}MapClear", name="clear", **attrs)
    return graph


def put(x: Any, y: Any) -> Step:
    return Step({"x:0": np.array(x, "f"), "y:0": np.array(y, "f")}, (), ("put",))


def put_key(key: Any, x: Any, y: Any, where: Any = (0, 1)) -> Step:
    return Step({**put(x, y).feeds, **at(key, where)}, (), ("put",))


def put_part(key: int, x: Any, where: Any) -> Step:
    return Step({"x:0": np.array(x, "f"), **at(key, where)}, (), ("put_part",))


def at(key: Any, where: Any = (0, 1)) -> dict[str, np.ndarray]:
    return {"key:0": np.array(key, np.int64), "where:0": np.array(where, np.int32)}


def get(op: str, key: Any, where: Any = (0, 1), outputs: int = 2) -> Step:
    return Step(at(key, where), [f"{op}:{i}" for i in range(outputs)])


def peek(index: Any) -> Step:
    return Step({"index:0": np.array(index, np.int32)}, ("peek:0", "peek:1"))


GET, SIZE, CLEAR = Step({}, ("get:0", "get:1")), Step({}, ("size:0",)), Step({}, (), ("clear",))
ANY = Step({"where:0": np.array([0, 1], np.int32)}, [f"get_any:{i}" for i in range(3)])
STATE = Step({}, ("size:0", "incomplete:0"))
CASES = tuple(
    Case(name, graph.graph_def, steps, message=name not in ("too_large", "as_many_as_types"))
    for name, graph, steps in (
        ("turns", turns(),
         (SIZE, put(1, [2, 3]), put([], 4), SIZE, peek(1), peek(0), GET, SIZE, GET)),
        ("clear", turns(), (put(1, 2), put(3, 4), CLEAR, SIZE, put(5, 6), GET)),
        ("too_large", turns(memory_limit=8), (put(1, [2, 3]), put(1, 2), SIZE, GET, put(3, 4))),
        *(
            (f"{prefix}keys", keys(prefix), steps)
            for prefix in ("", "Ordered")
            for steps in (
                (STATE, put_key(1, 1, 2), put_key(2, [3, 4], 5), STATE, get("peek", 2),
                 get("get", 2), STATE, get("get", 1), STATE, put_key(7, 1, 2), ANY, STATE),
            )
        ),
        ("smallest_key_first", keys("Ordered"), (put_key(5, 1, 2), put_key(-3, 3, 4), ANY, ANY)),
        *(
            (f"{prefix}keys_of_rank_1", keys(prefix),
             (put_key([7], 1, 2), STATE, get("get", [7]), get("peek", [[7]]), get("peek", 7), ANY,
              put_key([1, 2], 1, 2), put_key([], 1, 2), put_key([[3]], 1, 2), get("get", 3),
              get("get", []), STATE))
            for prefix in ("", "Ordered")
        ),
        ("newest_key_first", keys(""), (put_key(5, 1, 2), put_key(-3, 3, 4), ANY, ANY)),
        ("as_many_as_types", keys(""),
         (put_key(1, 1, 2, [-1, 7]), STATE, get("peek", 1), put_key(2, 3, 4, [1]), STATE,
          put_part(2, 5, [0]), get("get", 2), get("peek", 1, [0]), get("get", 1, [1]), STATE,
          get("get_part", 1, [0], 1), STATE, put_part(4, 1, [-1]), STATE)),
        ("in_parts", keys(""),
         (put_part(1, 1, [0]), STATE, put_part(1, 4, [0]), put_part(1, 4, [5]),
          put_part(1, 7, [1]), STATE, get("get_part", 1, [0], 1), STATE,
          get("get_part", 1, [0], 1), get("peek", 1), get("get_part", 1, [1], 1), STATE)),
        ("key_again", keys(""), (put_key(1, 1, 2), put_key(1, 3, 4), STATE, get("get", 1))),
        ("bad_indices", keys(""), (put_key(1, 1, 2, [1, 0]), put_key(1, 1, 2, [0, 0]), STATE,
                                   put_key(1, 1, 2), get("peek", 1, [0, 4]), STATE)),
        ("clear_keys", keys(""), (put_key(1, 1, 2), put_part(2, 1, [0]), STATE, CLEAR, STATE)),
    )
)  # fmt: skip

"""TensorFlow 1 loops: nested frames, conditions in loops, TensorArrays written in loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

INT = DataType.INT32
Output = tuple[str, DataType]
Outputs = list[Output]


class LoopGraph(Graph):
    """A graph with while loops of Enter, Merge, Switch and Exit, as TensorFlow 1 builds them."""

    def enter(self, value: object, frame: str, **attrs: object) -> Output:
        return self.add("Enter", value, frame_name=frame, **attrs)[0]

    def constant(self, value: object, frame: str) -> Output:
        """Return a loop-invariant value (Enter with is_constant)."""
        return self.enter(value, frame, is_constant=True)

    def while_loop(
        self,
        name: str,
        variables: Sequence[object],
        condition: Callable[[Outputs], Output],
        body: Callable[[Outputs], Outputs],
        **attrs: object,
    ) -> Outputs:
        """Add a loop and return its variables after it; `condition` and `body` add its nodes."""
        merges: Outputs = []
        for index, value in enumerate(variables):
            entered = self.enter(value, name, **attrs)
            merges += self.add("Merge", [entered, entered], name=f"{name}/merge{index}")[:1]
            self.graph_def.node[-1].input[1] = f"{name}/next{index}"
        goes_on = self.add("LoopCond", condition(merges), name=f"{name}/cond")[0]
        switches = [self.add("Switch", merge, goes_on) for merge in merges]
        exits = [self.add("Exit", switch[0])[0] for switch in switches]
        inside = [self.add("Identity", switch[1])[0] for switch in switches]
        for index, value in enumerate(body(inside)):
            self.add("NextIteration", value, name=f"{name}/next{index}")
        return exits

    def cond(
        self, condition: Output, value: Output, *branches: Callable[[Output], Output]
    ) -> Output:
        """Return `branches[0](value)` if the condition is false, else `branches[1](value)`."""
        sides = self.add("Switch", value, condition)
        results = [branch(side) for branch, side in zip(branches, sides, strict=True)]
        return self.add("Merge", results)[0]

    def one(self, op: str, *inputs: object, **attrs: object) -> Output:
        """Add a node and return its first output."""
        return self.add(op, *inputs, **attrs)[0]


def steps(fetch: Output, *rows: dict[str, int]) -> tuple[Step, ...]:
    """Return a step for each row of feeds."""
    return tuple(
        Step({f"{name}:0": np.int32(value) for name, value in row.items()}, (fetch[0],))
        for row in rows
    )


def single(parallel_iterations: int) -> Case:
    """A loop that adds i + 1, i + 2, … to j while i is less than 10."""
    graph = LoopGraph()
    i, j = graph.placeholder("int32", "i"), graph.placeholder("int32", "j")
    one = graph.constant(np.int32(1), "loop")
    limit = graph.constant(np.int32(10), "loop")

    def body(values: Outputs) -> Outputs:
        following = graph.one("Add", values[0], one)
        return [following, graph.one("Add", values[1], following)]

    exits = graph.while_loop(
        "loop", [i, j], lambda values: graph.one("Less", values[0], limit), body,
        parallel_iterations=parallel_iterations,
    )  # fmt: skip
    rows = ({"i": 0, "j": 5}, {"i": 20, "j": 5}, {"i": 9, "j": 0})
    return Case(f"loop_{parallel_iterations}", graph.graph_def, steps(exits[1], *rows))


def nested() -> Case:
    """Nested loops that count the pairs (a, b) with b ≤ a < n."""
    graph = LoopGraph()
    n = graph.placeholder("int32", "n")
    limit = graph.constant(n, "outer")
    one = graph.constant(np.int32(1), "outer")
    zero = graph.constant(np.int32(0), "outer")

    def outer(values: Outputs) -> Outputs:
        a, count = values
        inner_limit, inner_one = graph.constant(a, "inner"), graph.constant(one, "inner")
        found = graph.while_loop(
            "inner",
            [zero, count],
            lambda inside: graph.one("LessEqual", inside[0], inner_limit),
            lambda inside: [graph.one("Add", each, inner_one) for each in inside],
        )
        return [graph.one("Add", a, one), found[1]]

    exits = graph.while_loop(
        "outer",
        [np.int32(0), np.int32(0)],
        lambda values: graph.one("Less", values[0], limit),
        outer,
    )
    return Case("nested", graph.graph_def, steps(exits[1], {"n": 0}, {"n": 1}, {"n": 6}))


def array_of_conditions() -> Case:
    """A loop that writes i² for odd i and −i for even i into a TensorArray, for all i < n."""
    graph = LoopGraph()
    n = graph.placeholder("int32", "n")
    handle, flow = graph.add("TensorArrayV3", n, dtype=INT)
    limit, one, two, inside = (
        graph.constant(value, "loop") for value in (n, np.int32(1), np.int32(2), handle)
    )

    def body(values: Outputs) -> Outputs:
        i, written = values
        is_odd = graph.one("Equal", graph.one("FloorMod", i, two), one)
        value = graph.cond(
            is_odd, i, lambda x: graph.one("Neg", x), lambda x: graph.one("Square", x)
        )
        return [
            graph.one("Add", i, one),
            graph.one("TensorArrayWriteV3", inside, i, value, written),
        ]

    exits = graph.while_loop(
        "loop", [np.int32(0), flow], lambda values: graph.one("Less", values[0], limit), body
    )
    indices = graph.one("Range", np.int32(0), n, np.int32(1))
    whole = graph.one("TensorArrayGatherV3", handle, indices, exits[1], dtype=INT)
    return Case("array_of_conditions", graph.graph_def, steps(whole, {"n": 1}, {"n": 7}))


def untaken() -> Case:
    """A loop in the untaken branch of a condition does not run; Merge gives the other value."""
    graph = LoopGraph()
    n, runs = graph.placeholder("int32", "n"), graph.placeholder("bool", "runs")
    one = np.int32(1)

    def loop(value: Output) -> Output:
        limit, step = graph.constant(value, "loop"), graph.constant(value, "loop")
        return graph.while_loop(
            "loop",
            [value],
            lambda values: graph.one("LessEqual", values[0], limit),
            lambda values: [graph.one("Add", values[0], step)],
        )[0]

    result = graph.cond(runs, n, lambda x: graph.one("Sub", x, one), loop)
    rows = tuple(
        Step({"n:0": np.int32(4), "runs:0": np.bool_(side)}, (result[0],)) for side in (0, 1)
    )
    return Case("untaken", graph.graph_def, rows)


def side_by_side() -> Case:
    """The difference of the results of a short and a long loop, which run concurrently."""
    graph = LoopGraph()
    n = graph.placeholder("int32", "n")

    def count(name: str, end: Output) -> Output:
        limit, step = graph.constant(end, name), graph.constant(np.int32(1), name)
        return graph.while_loop(
            name,
            [np.int32(0)],
            lambda values: graph.one("Less", values[0], limit),
            lambda values: [graph.one("Add", values[0], step)],
        )[0]

    end = graph.one("Mul", n, np.int32(5))
    total = graph.one("Sub", count("short", n), count("long", end))
    return Case("side_by_side", graph.graph_def, steps(total, {"n": 0}, {"n": 2}, {"n": 9}))


CASES = (
    single(1),
    single(10),
    nested(),
    array_of_conditions(),
    untaken(),
    side_by_side(),
)

"""Recognises loops that are recurrent cells over the elements of a list."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from runtime.clusters.loops.cells import RecurrentCell, recurrent_cells
from runtime.clusters.loops.forms import Form, Forms, Kind, UnrecognisedError, array_of
from runtime.clusters.loops.interpretation import interpret, variable
from runtime.foundation.errors import OpError
from runtime.graph.function_library import FunctionBody, FunctionLibrary
from runtime.graph.node import Node

LOOPS = frozenset(("While", "StatelessWhile"))


@dataclasses.dataclass(frozen=True, slots=True)
class WrittenList:
    """A list that a loop writes: the hidden states of `cell`, at a counter or at position 0."""

    index: int  # of the loop variable
    cell: RecurrentCell
    counter: int | None  # index of the loop variable; None if each element replaces the last


@dataclasses.dataclass(frozen=True, slots=True)
class RecurrentLoop:
    """A loop that runs `cells` over a list, as long as each counter is less than its limit.

    Counters grow by 1 in each iteration. `limits` are (counter, form of a constant or invariant).
    """

    cells: tuple[RecurrentCell, ...]  # each after the one that computes its source
    lists: tuple[WrittenList, ...]
    counters: tuple[int, ...]
    invariants: tuple[int, ...]
    limits: tuple[tuple[int, Form], ...]


def recognised(node: Node, library: FunctionLibrary) -> RecurrentLoop | None:
    """Return what the loop `node` computes, or None if it is something other than known cells.

    Shapes, types and the number of iterations are not known yet; emission checks these.
    """
    if node.op not in LOOPS:
        return None
    try:
        return recognise(node, library)
    except (UnrecognisedError, OpError):
        return None


def recognise(node: Node, library: FunctionLibrary) -> RecurrentLoop:
    """Return what the loop `node` computes.

    Raises UnrecognisedError, which says why it is not known, or OpError if a function is invalid.
    """
    body, cond = (library.body(node.attr(name)) for name in ("body", "cond"))
    count = len(node.inputs)
    if not len(body.arguments) == len(cond.arguments) == len(body.results) == count:
        raise UnrecognisedError("the functions do not take what the loop gives")
    forms = Forms()
    invariants = _invariants(body)
    before = [
        forms.make(Kind.INVARIANT, detail=index)
        if index in invariants
        else variable(forms, index, argument.output_types[0])
        for index, argument in enumerate(body.arguments)
    ]
    after = interpret(body, before, forms, library)
    condition = interpret(cond, before, forms, library)
    changed = [index for index in range(count) if index not in invariants]
    counters = [index for index in changed if before[index].kind is Kind.COUNTER]
    if any(after[index] is not forms.make(Kind.COUNTER, detail=(index, 1)) for index in counters):
        raise UnrecognisedError("a counter that does not grow by 1")
    lists = [index for index in changed if after[index].kind is Kind.LIST]
    states = {
        index: after[index] for index in changed if index not in counters and index not in lists
    }
    cells = recurrent_cells(states, before.__getitem__)
    _check_sources(cells)
    return RecurrentLoop(
        tuple(cells),
        tuple(_written(index, after[index], before[index], cells) for index in lists),
        tuple(counters),
        tuple(sorted(invariants)),
        _limits(condition),
    )


def _invariants(body: FunctionBody) -> set[int]:
    """Return the indices of the arguments that the body returns as they are."""
    found = set()
    for index, (node, _) in enumerate(body.results):
        while node.op == "Identity":
            node = node.inputs[0][0]
        if node is body.arguments[index]:
            found.add(index)
    return found


def _check_sources(cells: Sequence[RecurrentCell]) -> None:
    """Raise UnrecognisedError unless each source is an element of a list, or a cell's output."""
    outputs = {cell.output for cell in cells}
    for cell in cells:
        if cell.source.kind is Kind.ITEM:
            _counter_of(cell.source.operands[1])
        elif cell.source not in outputs:
            raise UnrecognisedError("a cell's input is not an element of a list")


def _counter_of(form: Form) -> int:
    """Return the index of a counter at the start of the iteration."""
    if form.kind is Kind.COUNTER:
        assert isinstance(form.detail, tuple)
        index, number = form.detail
        if number == 0:
            return int(index)
    raise UnrecognisedError("an element that is not at a counter")


def _written(index: int, form: Form, before: Form, cells: Sequence[RecurrentCell]) -> WrittenList:
    written, position, element = form.operands
    cell = next((each for each in cells if each.output is element), None)
    if written is not before or cell is None:
        raise UnrecognisedError("a list of something other than a cell's outputs")
    if position.kind is Kind.CONSTANT:
        if any(array_of(position).reshape(-1)):
            raise UnrecognisedError("a list that is written at one position other than 0")
        return WrittenList(index, cell, None)
    return WrittenList(index, cell, _counter_of(position))


def _limits(condition: Sequence[Form]) -> tuple[tuple[int, Form], ...]:
    """Return (counter, limit) of each comparison, all of which must hold."""
    pending = list(condition)
    limits: list[tuple[int, Form]] = []
    while pending:
        form = pending.pop()
        if form.kind is Kind.ALL:
            pending += form.operands
        elif form.kind is Kind.LESS and form.operands[1].is_known:
            limits.append((_counter_of(form.operands[0]), form.operands[1]))
        else:
            raise UnrecognisedError("a condition other than counters below limits")
    if not limits:
        raise UnrecognisedError("a loop without a limit")
    return tuple(limits)

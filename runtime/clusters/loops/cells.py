"""Recurrent cells: compares the forms of a loop's states with those of LSTM, GRU and simple cells.

With f, g, h activations, x the cell's input, ⊙ the element-wise product, and each capital letter of
a gate a LINEAR form of x and the previous h:

| cell | states |
| --- | --- |
| LSTM | c = f(F) ⊙ c' + f(I) ⊙ g(C), h = f(O) ⊙ h(c) |
| GRU, reset before | z = f(Z), r = f(R), h = z ⊙ h' + (1 − z) ⊙ g(C) with C of x and r ⊙ h' |
| GRU, reset after | the same with C = x·W + b + r ⊙ (h'·U + d) |
| simple | h = f(H) |

The order of gates is that of ONNX: i, o, f, c and z, r, h.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator, Mapping

from runtime.clusters.loops.forms import Activation, Form, Kind, UnrecognisedError

IDENTITY = Activation("Affine", 1.0, 0.0)


class CellKind(enum.Enum):
    """A kind of cell, by the name of ONNX's operation."""

    LSTM = "LSTM"
    GRU = "GRU"
    SIMPLE = "RNN"


@dataclasses.dataclass(frozen=True, slots=True)
class Gate:
    """The weights of a gate, as known forms: matrices, and the biases that are added to both."""

    input_matrix: Form  # [width of the input, units]
    recurrent_matrix: Form  # [units, units]
    input_biases: tuple[Form, ...]  # [units] each
    recurrent_biases: tuple[Form, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class RecurrentCell:
    """A cell: `source` is its input, `hidden` and `cell` are the indices of its states.

    `output` is the form of the new hidden state. A GRU that `resets_after` multiplies the reset
    gate and the product of hidden state and matrix.
    """

    kind: CellKind
    source: Form
    output: Form
    hidden: int
    cell: int | None
    gates: tuple[Gate, ...]
    activations: tuple[Activation, ...]
    resets_after: bool = False


def recurrent_cells(
    states: Mapping[int, Form], previous: Callable[[int], Form]
) -> list[RecurrentCell]:
    """Return the cells that compute all `states` of a loop: index of the variable → new form.

    `previous` gives the form of a state at the start of the iteration. A cell whose source is the
    output of another follows it. Raises UnrecognisedError if a state is of no cell.
    """
    cells: list[RecurrentCell] = []
    for index, form in states.items():
        cell = _lstm(index, form, states, previous)
        cell = cell or _gru(index, form, previous(index)) or _simple(index, form, previous(index))
        if cell is not None:
            cells.append(cell)
    found = [index for cell in cells for index in (cell.hidden, cell.cell) if index is not None]
    if sorted(found) != sorted(states):
        raise UnrecognisedError("a state of the loop is that of no known cell")
    return _in_order(cells)


def _in_order(cells: list[RecurrentCell]) -> list[RecurrentCell]:
    outputs = {cell.output for cell in cells}
    ordered: list[RecurrentCell] = []
    done: set[Form] = set()
    while len(ordered) < len(cells):
        ready = [
            cell
            for cell in cells
            if cell not in ordered and (cell.source in done or cell.source not in outputs)
        ]
        if not ready:
            raise UnrecognisedError("cells that need each other's output")
        ordered += ready
        done |= {cell.output for cell in ready}
    return ordered


def _lstm(
    hidden: int, form: Form, states: Mapping[int, Form], previous: Callable[[int], Form]
) -> RecurrentCell | None:
    """Return the LSTM cell whose hidden state `hidden` becomes `form`."""
    for cell, memory in states.items():
        if cell == hidden or memory.kind is not Kind.SUM:
            continue
        for output_gate, shown in _factors(form):
            function = _activation_of(shown, memory)
            if function is None:
                continue
            for forget, write, candidate in _memory_gates(memory, previous(cell)):
                found = _same_activation(output_gate, forget, write)
                new = _activated(candidate)
                if found is None or new is None:
                    continue
                linear = [write.operands[0], output_gate.operands[0], forget.operands[0], new[1]]
                gates = _gates(linear, previous(hidden))
                if gates is not None:
                    return RecurrentCell(
                        CellKind.LSTM, gates[0], form, hidden, cell, gates[1],
                        (found, new[0], function),
                    )  # fmt: skip
    return None


def _memory_gates(memory: Form, previous: Form) -> Iterator[tuple[Form, Form, Form]]:
    """Yield (forget gate, input gate, candidate) of c = forget ⊙ c' + input ⊙ candidate."""
    if len(memory.operands) != 2:
        return
    for kept, written in (memory.operands, memory.operands[::-1]):
        for forget, before in _factors(kept):
            if before is previous:
                for write, candidate in _factors(written):
                    yield forget, write, candidate


def _gru(hidden: int, form: Form, previous: Form) -> RecurrentCell | None:
    """Return the GRU cell whose hidden state `hidden` becomes `form`."""
    if form.kind is not Kind.SUM or len(form.operands) != 2:
        return None
    for kept, written in (form.operands, form.operands[::-1]):
        for update, before in _factors(kept):
            for rest, candidate in _factors(written):
                is_rest = rest.kind is Kind.COMPLEMENT and rest.operands == (update,)
                new = _activated(candidate)
                if before is previous and is_rest and new is not None:
                    found = _gru_of(hidden, form, previous, update, new)
                    if found is not None:
                        return found
    return None


def _gru_of(
    hidden: int, form: Form, previous: Form, update: Form, new: tuple[Activation, Form]
) -> RecurrentCell | None:
    function, inner = new
    for reset, candidate, resets_after in _candidates(inner, previous):
        found = _same_activation(update, reset)
        if found is None:
            continue
        gates = _gates([update.operands[0], reset.operands[0]], previous)
        if gates is not None and candidate.source is gates[0]:
            return RecurrentCell(
                CellKind.GRU, gates[0], form, hidden, None, (*gates[1], candidate.gate),
                (found, function), resets_after,
            )  # fmt: skip
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class _Candidate:
    source: Form
    gate: Gate


def _candidates(inner: Form, previous: Form) -> Iterator[tuple[Form, _Candidate, bool]]:
    """Yield (reset gate, candidate's weights, whether the reset comes after the product)."""
    if inner.kind is Kind.LINEAR and len(inner.sources) == 2:
        first, second = zip(inner.sources, inner.matrices, strict=True)
        for (source, matrix), (product, recurrent) in ((first, second), (second, first)):
            for reset, before in _factors(product):
                if before is previous and source is not previous:
                    gate = Gate(matrix, recurrent, inner.biases)
                    yield reset, _Candidate(source, gate), False
    if inner.kind is Kind.SUM and len(inner.operands) == 2:
        for linear, product in (inner.operands, inner.operands[::-1]):
            if linear.kind is not Kind.LINEAR or len(linear.sources) != 1:
                continue
            for reset, recurrent_part in _factors(product):
                if recurrent_part.kind is Kind.LINEAR and recurrent_part.sources == (previous,):
                    gate = Gate(
                        linear.matrices[0], recurrent_part.matrices[0],
                        linear.biases, recurrent_part.biases,
                    )  # fmt: skip
                    yield reset, _Candidate(linear.sources[0], gate), True


def _simple(hidden: int, form: Form, previous: Form) -> RecurrentCell | None:
    """Return the simple cell whose state `hidden` becomes `form`."""
    found = _activated(form)
    gates = None if found is None else _gates([found[1]], previous)
    if found is None or gates is None:
        return None
    return RecurrentCell(CellKind.SIMPLE, gates[0], form, hidden, None, gates[1], (found[0],))


def _gates(linear: list[Form], previous: Form) -> tuple[Form, tuple[Gate, ...]] | None:
    """Return (source, gates) of LINEAR forms of one source and the previous hidden state."""
    source: Form | None = None
    gates: list[Gate] = []
    for form in linear:
        if form.kind is not Kind.LINEAR or len(form.sources) != 2 or previous not in form.sources:
            return None
        position = form.sources.index(previous)
        other = form.sources[1 - position]
        if source is not None and other is not source:
            return None
        source = other
        gates.append(Gate(form.matrices[1 - position], form.matrices[position], form.biases))
    return None if source is None else (source, tuple(gates))


def _factors(form: Form) -> list[tuple[Form, Form]]:
    """Return both orders of the operands of a PRODUCT."""
    if form.kind is not Kind.PRODUCT:
        return []
    left, right = form.operands
    return [(left, right), (right, left)]


def _activated(form: Form) -> tuple[Activation, Form] | None:
    """Return (activation, operand); the activation of a sum itself is IDENTITY."""
    if form.kind in (Kind.LINEAR, Kind.SUM):
        return IDENTITY, form
    if form.kind is Kind.ACTIVATED:
        assert isinstance(form.detail, Activation)
        return form.detail, form.operands[0]
    return None


def _activation_of(shown: Form, value: Form) -> Activation | None:
    """Return the activation by which `shown` follows from `value`, None if it doesn't."""
    if shown is value:
        return IDENTITY
    if shown.kind is Kind.ACTIVATED and shown.operands == (value,):
        assert isinstance(shown.detail, Activation)
        return shown.detail
    return None


def _same_activation(*gates: Form) -> Activation | None:
    """Return the activation that all gates have; None if they differ or one has none."""
    if any(gate.kind is not Kind.ACTIVATED for gate in gates):
        return None
    functions = {gate.detail for gate in gates}
    found = functions.pop()
    assert isinstance(found, Activation)
    return None if functions else found

"""Emitters of recurrent loops: each cell of a loop is one LSTM, GRU or RNN operation."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.clusters.dimensions import Dimension, static
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.loops.cells import CellKind, Gate, RecurrentCell
from runtime.clusters.loops.forms import Activation, Form, Kind, UnrecognisedError, array_of
from runtime.clusters.loops.recognise import LOOPS, RecurrentLoop, recognise, recognised
from runtime.clusters.loops.tensor_lists import (
    TensorListValue,
    as_list,
    tensor_list,
    whole_number,
)
from runtime.clusters.loops.weights import Evaluation, invariants_of
from runtime.clusters.op_emitter import OpEmitter
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType
from runtime.graph.function_library import FunctionLibrary
from runtime.graph.node import Node

# Activations between −1 and 1. Gates must have one: memory can't grow beyond measure then.
_BOUNDED = frozenset(("Sigmoid", "Tanh", "HardSigmoid", "Softsign"))
_WITH_ALPHA = frozenset(("Affine", "Elu", "HardSigmoid", "LeakyRelu"))
_WITH_BETA = frozenset(("Affine", "HardSigmoid"))
_LARGEST_SUM = 1e30  # of a gate before its activation; float32 ends at 3e38


@dataclasses.dataclass(frozen=True, slots=True)
class _Run:
    """The results of a cell: its hidden state in each iteration, and its last states."""

    sequence: Value  # [steps, batch, units]
    last: Value  # [1, batch, units]
    hidden: Value  # [batch, units]
    cell: Value | None  # [batch, units]


def loop_emitters(library: FunctionLibrary) -> tuple[OpEmitter, ...]:
    """Return the rows for loops whose functions are in `library`."""

    def emit(emission: Emission, node: Node, inputs: Sequence[Value]) -> list[Value]:
        try:
            loop = recognise(node, library)
        except UnrecognisedError as error:
            raise DeclinedError(str(error)) from None
        return _LoopEmitter(emission, loop, inputs).emit()

    def check(node: Node) -> bool:
        return recognised(node, library) is not None

    return tuple(
        OpEmitter(op, emit, is_heavy=True, check=check, uses_lists=True) for op in sorted(LOOPS)
    )


class _LoopEmitter:
    """Writes the cells of one loop."""

    def __init__(self, emission: Emission, loop: RecurrentLoop, inputs: Sequence[Value]) -> None:
        self._emission = emission
        self._loop = loop
        self._inputs = inputs
        self._runs: dict[Form, _Run] = {}  # output of a cell → its results

    def emit(self) -> list[Value]:
        """Return the values of all loop variables after the loop."""
        loop, emission = self._loop, self._emission
        steps = self._steps()
        outputs = list(self._inputs)
        for cell in loop.cells:
            run = self._runs[cell.output] = self._cell(cell, steps)
            outputs[cell.hidden] = run.hidden
            if cell.cell is not None:
                assert run.cell is not None
                outputs[cell.cell] = run.cell
        for counter in loop.counters:
            outputs[counter] = emission.size(steps, self._inputs[counter].dtype)
        for written in loop.lists:
            run = self._runs[written.cell.output]
            elements = run.last if written.counter is None else run.sequence
            given = as_list(self._inputs[written.index])
            # An element that the loop doesn't write would be zeros in the stacked list.
            if given.elements is not None or given.length != elements.shape[0]:
                raise DeclinedError("a list of which the loop writes a part")
            outputs[written.index] = tensor_list(given.length, given.element_shape, elements)
        return outputs

    def _steps(self) -> Dimension:
        """Return the number of iterations, which must be that of the elements of all lists."""
        lengths = {
            self._list(cell.source).length
            for cell in self._loop.cells
            if cell.source.kind is Kind.ITEM
        }
        if len(lengths) != 1:
            raise DeclinedError(f"lists of {len(lengths)} lengths")
        steps = lengths.pop()
        if any(whole_number(self._inputs[counter]) != 0 for counter in self._loop.counters):
            raise DeclinedError("a counter that does not start at 0")
        limits = {self._limit(form) for _, form in self._loop.limits}
        others = [limit for limit in limits if limit != steps]
        if steps not in limits or any(not _is_at_least(each, steps) for each in others):
            raise DeclinedError(f"{limits} iterations over {steps} elements")
        return steps

    def _limit(self, form: Form) -> Dimension:
        if form.kind is Kind.INVARIANT:
            assert isinstance(form.detail, int)
            return whole_number(self._inputs[form.detail])
        try:
            return int(array_of(form).item())
        except (UnrecognisedError, ValueError):
            raise DeclinedError("a limit that is computed in the loop") from None

    def _list(self, item: Form) -> TensorListValue:
        index = item.operands[0].detail
        assert isinstance(index, int)
        return as_list(self._inputs[index])

    # One cell

    def _cell(self, cell: RecurrentCell, steps: Dimension) -> _Run:
        emission = self._emission
        source = self._source(cell)
        units = static(self._inputs[cell.hidden].shape[-1])
        batch, width = source.shape[1], static(source.shape[2])
        states = [self._state(index, (batch, units)) for index in (cell.hidden, cell.cell)]
        if 0 in (steps, batch, units, width):
            raise DeclinedError("an empty tensor")
        weights = self._weights(cell, units, width)
        self._check_range(cell, weights, source, states)
        made = emission.ops(
            cell.kind.value,
            _without_end((source, *weights, None, *states)),
            [(DataType.FLOAT, (steps, 1, batch, units))]
            + [(DataType.FLOAT, (1, batch, units))] * (1 if cell.cell is None else 2),
            hidden_size=units,
            linear_before_reset=int(cell.resets_after) if cell.kind is CellKind.GRU else None,
            **_activations(cell.activations),
        )
        sequence = self._squeezed(made[0], 1)
        if not _is_bounded(cell):
            self._require_range(sequence, weights)
        last = [self._squeezed(each, 0) for each in made[1:]]
        return _Run(sequence, made[1], last[0], last[1] if cell.cell is not None else None)

    def _source(self, cell: RecurrentCell) -> Value:
        """Return the input of a cell `[steps, batch, width]`."""
        if cell.source in self._runs:
            return self._runs[cell.source].sequence
        elements = self._list(cell.source).elements
        if elements is None or elements.rank != 3 or elements.dtype is not DataType.FLOAT:
            raise DeclinedError("elements that are not matrices of float")
        return elements

    def _state(self, index: int | None, shape: tuple[Dimension, int]) -> Value | None:
        """Return an initial state as the operation wants it; None stands for zeros."""
        if index is None:
            return None
        value = self._inputs[index]
        if value.shape != shape or value.dtype is not DataType.FLOAT:
            raise DeclinedError(f"a state of {value.shape} where the input has {shape}")
        if _is_zero(self._emission, value):
            return None
        return self._reshaped("Unsqueeze", self._emission.as_is(value), (1, *shape), 0)

    def _squeezed(self, value: Value, axis: int) -> Value:
        shape = (*value.shape[:axis], *value.shape[axis + 1 :])
        return self._reshaped("Squeeze", value, shape, axis)

    def _reshaped(
        self, op_type: str, value: Value, shape: tuple[Dimension, ...], axis: int
    ) -> Value:
        axes = self._emission.constant(np.array([axis], np.int64))
        return self._emission.op(op_type, [value, axes], value.dtype, shape)

    # Weights

    def _weights(self, cell: RecurrentCell, units: int, width: int) -> tuple[Value, ...]:
        """Return the operands W, R and B: `[1, gates · units, width]`, `units` and twice the rows.

        Each is a function of the loop's invariants, which are constants or weights themselves.
        """
        forms = [form for gate in cell.gates for form in _forms_of(gate)]
        indices = invariants_of(forms)
        operands = [self._emission.as_is(self._inputs[index]) for index in indices]
        if any(value.dtype is not DataType.FLOAT for value in operands):
            raise DeclinedError("weights that are not float")

        def packed(name: str, *arrays: np.ndarray) -> np.ndarray:
            evaluation = Evaluation(dict(zip(indices, arrays, strict=True)), self._width_of)
            return _PACK[name](evaluation, cell.gates, units, width)

        return tuple(
            self._emission.derive(lambda *arrays, name=name: packed(name, *arrays), *operands)
            for name in _PACK
        )

    def _width_of(self, form: Form) -> int:
        """Return the last size of a value that a matrix multiplies."""
        if form in self._runs:
            return static(self._runs[form].hidden.shape[-1])
        if form.kind is Kind.ITEM:
            elements = self._list(form).elements
            if elements is not None:
                return static(elements.shape[-1])
        if form.kind is Kind.VARIABLE:
            assert isinstance(form.detail, int)
            return static(self._inputs[form.detail].shape[-1])
        if form.kind is Kind.PRODUCT:
            return max(self._width_of(each) for each in form.operands if each.kind in _WITH_WIDTH)
        raise DeclinedError(f"the width of a {form.kind.name}")

    # Range

    def _check_range(
        self,
        cell: RecurrentCell,
        weights: Sequence[Value],
        source: Value,
        states: Sequence[Value | None],
    ) -> None:
        """Require of the inputs that no gate is NaN or infinite.

        The engine clips gates, and thereby makes numbers of what is NaN in TensorFlow.
        """
        gate = cell.activations[0].name
        if cell.kind is not CellKind.SIMPLE and gate not in _BOUNDED:
            raise DeclinedError(f"gates with {gate}")
        self._require_range(source, weights)  # of another cell's outputs it tells of the weights
        for state in states:
            if state is not None:
                self._require_range(state, weights)

    def _require_range(self, value: Value, weights: Sequence[Value]) -> None:
        emission = self._emission
        factor = emission.derive(_overflow_factor, *weights)
        total = emission.op("ReduceL1", [value], DataType.FLOAT, (), keepdims=0)
        emission.require_finite(emission.op("Mul", [total, factor], DataType.FLOAT, ()))


_WITH_WIDTH = frozenset((Kind.ITEM, Kind.VARIABLE))


def _overflow_factor(*weights: np.ndarray) -> np.ndarray:
    """Return what overflows when multiplied by a sum of magnitudes that is too large (float, []).

    If no magnitude of a source or state is above the limit, every gate is below `_LARGEST_SUM`.
    """
    matrix, recurrent, biases = (np.abs(each[0].astype(np.float64)) for each in weights)
    rows = matrix.sum(1) + recurrent.sum(1)
    gates = rows + biases.reshape(2, -1).sum(0)
    largest = float(gates.max(initial=1.0))  # NaN if a weight is
    if not largest <= _LARGEST_SUM:
        return np.array(np.inf, np.float32)
    with np.errstate(over="ignore"):
        return np.array(np.finfo(np.float32).max / (_LARGEST_SUM / largest), np.float32)


def _is_at_least(size: Dimension, least: Dimension) -> bool:
    return isinstance(size, int) and isinstance(least, int) and size >= least


def _without_end(values: Sequence[Value | None]) -> list[Value | None]:
    """Return the operands without the optional ones at the end that are left out."""
    kept = list(values)
    while kept[-1] is None:
        kept.pop()
    return kept


def _is_zero(emission: Emission, value: Value) -> bool:
    """Return whether a value is zeros in every run."""
    if value.constant is not None:
        return not value.constant.any()
    made = [each for each in emission.operations if value in each.outputs]
    return bool(made) and made[0].op_type == "Expand" and _is_zero_constant(made[0].inputs[0])


def _is_zero_constant(value: Value | None) -> bool:
    return value is not None and value.constant is not None and not value.constant.any()


def _is_bounded(cell: RecurrentCell) -> bool:
    """Return whether the hidden states of a cell are between −1 and 1."""
    return cell.activations[-1].name in _BOUNDED


def _activations(activations: Sequence[Activation]) -> dict[str, Any]:
    alphas = [each.alpha for each in activations if each.name in _WITH_ALPHA]
    betas = [each.beta for each in activations if each.name in _WITH_BETA]
    return {
        "activations": [each.name for each in activations],
        "activation_alpha": alphas or None,
        "activation_beta": betas or None,
    }


def _forms_of(gate: Gate) -> tuple[Form, ...]:
    return (
        gate.input_matrix,
        gate.recurrent_matrix,
        *gate.input_biases,
        *gate.recurrent_biases,
    )


def _pack_input(
    evaluation: Evaluation, gates: Sequence[Gate], units: int, width: int
) -> np.ndarray:
    return _rows([evaluation.array(gate.input_matrix) for gate in gates], (width, units))


def _pack_recurrent(
    evaluation: Evaluation, gates: Sequence[Gate], units: int, width: int
) -> np.ndarray:
    return _rows([evaluation.array(gate.recurrent_matrix) for gate in gates], (units, units))


def _rows(matrices: Sequence[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
    for matrix in matrices:
        if matrix.shape != shape:
            raise DeclinedError(f"a weight of shape {matrix.shape} where {shape} fits")
    return np.concatenate([matrix.T for matrix in matrices]).astype(np.float32)[np.newaxis]


def _pack_biases(
    evaluation: Evaluation, gates: Sequence[Gate], units: int, width: int
) -> np.ndarray:
    vectors = [
        sum((evaluation.array(each) for each in biases), np.zeros(units, np.float32))
        for biases in (
            *(gate.input_biases for gate in gates),
            *(gate.recurrent_biases for gate in gates),
        )
    ]
    return np.concatenate(vectors).astype(np.float32)[np.newaxis]


# Operands of the operations after the input, in their order.
_PACK = {"W": _pack_input, "R": _pack_recurrent, "B": _pack_biases}

"""Groups: neighbouring element-wise instructions that are one expression.

numpy takes 0.15 µs to begin an operation on a small array. A group whose arrays are small runs as
one call of numexpr instead (`expression.py`), which takes 1 µs and 0.03 µs for each operation with
an array of its own.

A group is a run of instructions next to each other. The value of each but the last is read once, by
an instruction of the group, so that no operation is in the expression twice. Its operations round
exactly, so that numexpr and numpy have the same values (the sign of a NaN may differ), and all its
values have the same type.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Collection, Mapping

import numpy as np

from runtime.executors.instructions import Instruction, Program
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_value import TensorValue

# Type of a group's values → its name in expressions.
KINDS: Mapping[DataType, type] = {
    DataType.FLOAT: float,
    DataType.DOUBLE: np.double,
    DataType.INT32: np.int32,
    DataType.INT64: np.int64,
}
_FLOATS = (DataType.FLOAT, DataType.DOUBLE)
# Op → its operation on the texts of its inputs. Operations for which numexpr rounds, or treats NaN
# and −0, in other ways than numpy are left out.
_OPERATIONS: Mapping[str, str] = {
    "Add": "({0}+{1})",
    "AddV2": "({0}+{1})",
    "Sub": "({0}-{1})",
    "Mul": "({0}*{1})",
    "Div": "({0}/{1})",
    "RealDiv": "({0}/{1})",
    "Neg": "(-{0})",
    "Square": "({0}*{0})",
}
_DIVISIONS = frozenset(("Div", "RealDiv"))  # of integers they are other operations
LEAST_OPERATIONS = 7  # of a group; fewer take as long by themselves, even on one element
MOST_INPUTS = 48  # the time to compile an expression grows with their square, here to 2.5 ms
MOST_OPERATIONS = 64  # the same with these; Python's parser takes 200 nested parentheses
_KEY_BYTES = 64  # constants of up to so many bytes are compared


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """Instructions `begin` to `end`, exclusive, of a program, as one expression.

    `text` calls the inputs a0, a1, …: first the values of `slots`, then `constants`.
    """

    begin: int
    end: int
    text: str
    dtype: DataType
    slots: tuple[int, ...]
    constants: tuple[np.ndarray, ...]


def find_groups(program: Program) -> list[Group]:
    """Return the groups of a program, in order."""
    return _Finder(program).groups()


class _Finder:
    """The state of `find_groups`."""

    def __init__(self, program: Program) -> None:
        self._instructions = program.instructions
        self._constants: dict[int, TensorValue] = dict(program.constants)
        readers: dict[int, list[int]] = collections.defaultdict(list)
        for number, instruction in enumerate(program.instructions):
            times = _OPERATIONS.get(instruction.node.op, "").count("{0}")  # a Square reads it twice
            for slot, _ in instruction.inputs:
                readers[slot] += [number] * max(1, times)
        fetched = set(program.fetch_slots)
        # Slot → the instruction that reads it, if one does, and once.
        self._reader = {
            slot: numbers[0]
            for slot, numbers in readers.items()
            if len(numbers) == 1 and slot not in fetched
        }

    def groups(self) -> list[Group]:
        """Return the groups, as large as they can be from the last instruction on."""
        found: list[Group] = []
        end = len(self._instructions)
        while end > 0:
            begin = self._begin_of(end)
            if end - begin >= LEAST_OPERATIONS:
                found.append(self._group(begin, end))
                end = begin
            else:
                end -= 1
        return found[::-1]

    def _begin_of(self, end: int) -> int:
        """Return where the largest group begins that ends before instruction `end`."""
        last = self._instructions[end - 1]
        dtype = _group_type(last)
        inputs: set[object] = set()
        inside: set[int] = set()  # slots that instructions of the group make
        begin = end
        for number in range(end - 1, max(-1, end - 1 - MOST_OPERATIONS), -1):
            instruction = self._instructions[number]
            if dtype is None or _group_type(instruction) is not dtype:
                break
            made = instruction.outputs[0]
            if number != end - 1 and not begin <= self._reader.get(made, -1) < end:
                break
            with_this = {self._key(slot) for slot, _ in instruction.inputs}
            inside.add(made)
            more = (inputs | with_this) - inside
            if len(more) > MOST_INPUTS:
                break
            inputs, begin = more, number
        return begin

    def _key(self, slot: int) -> object:
        """Return what tells the input of a slot from others; equal constants are one input."""
        value = self._constants.get(slot)
        if not isinstance(value, np.ndarray) or value.nbytes > _KEY_BYTES:
            return slot
        return value.shape, value.tobytes()

    def _group(self, begin: int, end: int) -> Group:
        part = self._instructions[begin:end]
        inside = {instruction.outputs[0] for instruction in part}
        outside = [slot for each in part for slot, _ in each.inputs if slot not in inside]
        slots = tuple(dict.fromkeys(slot for slot in outside if slot not in self._constants))
        constants: dict[object, np.ndarray] = {}
        for slot in outside:
            if slot in self._constants:
                constants.setdefault(self._key(slot), np.asarray(self._constants[slot]))
        texts: dict[int, str] = {slot: f"a{place}" for place, slot in enumerate(slots)}
        places = {key: len(slots) + place for place, key in enumerate(constants)}
        for slot in outside:
            if slot in self._constants:
                texts[slot] = f"a{places[self._key(slot)]}"
        for instruction in part:
            operands = [texts[slot] for slot, _ in instruction.inputs]
            texts[instruction.outputs[0]] = _OPERATIONS[instruction.node.op].format(*operands)
        dtype = _group_type(part[-1])
        assert dtype is not None
        text = texts[part[-1].outputs[0]]
        return Group(begin, end, text, dtype, slots, tuple(constants.values()))


def _group_type(instruction: Instruction) -> DataType | None:
    """Return the type of an instruction that a group may have; None if it may have no such."""
    node = instruction.node
    if (
        node.op not in _OPERATIONS
        or not instruction.has_single_output
        or instruction.outputs[0] < 0
        or instruction.needs_context
        or any(is_read for _, is_read in instruction.inputs)
    ):
        return None
    dtype = node.output_types[0]
    if dtype not in (_FLOATS if node.op in _DIVISIONS else KINDS):
        return None
    types: Collection[DataType] = {source.output_types[index] for source, index in node.inputs}
    return dtype if types == {dtype} else None

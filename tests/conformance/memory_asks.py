"""A program that lets every kernel of a room be asked for 1 TB, in a process of little memory.

    python -m tests.conformance.memory_asks array

It takes one recorded call of each op and varies its inputs and attributes: arrays are stretched to
1 TB without memory (strides of 0), numbers are replaced by large ones. If a row says that a call
needs little, the kernel runs, and must then need no more. The answer is JSON: {op: [the largest
need of a variant, how many variants ran, what went wrong]}.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from runtime.api import OpError
from runtime.foundation.errors import ResourceExhaustedError
from runtime.framework.memory_account import MemoryAccount
from runtime.framework.op_kernel import NodeView, signature
from runtime.kernels.lazy_registry import op_index
from tests.conformance.case import Case, cases_of, families, golden_path
from tests.conformance.case_runs import run
from tests.conformance.kernel_calls import NOT_OF_INPUTS, SLACK, Call, calls_seen
from tests.conformance.shown_types import nodes_of

TERABYTE = 1 << 40
LIMIT = 1 << 26  # bytes that a step may have
ADDRESS_SPACE = 1 << 32
SECONDS = 0.2  # of the processor, for a kernel that works long on little memory
LARGE_NUMBERS = (TERABYTE, 1000)
TRIES = 4  # calls of an op that are varied until one asks for 1 TB


class _SlowError(Exception):
    pass


class _ChangedNode:
    """A node with one attribute replaced."""

    def __init__(self, node: NodeView, name: str, value: Any) -> None:
        self._node, self._name, self._value = node, name, value
        self.name, self.op = node.name, node.op

    def attr(self, name: str) -> Any:
        return self._value if name == self._name else self._node.attr(name)


def stretched(array: np.ndarray, axis: int) -> np.ndarray:
    """Return an array without memory of its own that claims 1 TB, by repeating along an axis.

    A tensor of rank 0 becomes a vector.
    """
    array = np.atleast_1d(array)
    each = max(array.nbytes // max(array.shape[axis], 1), 1)
    shape = list(array.shape)
    shape[axis] = TERABYTE // each + 1
    first = array[(slice(None),) * axis + (slice(1),)]
    return np.broadcast_to(first, shape)


def with_number(array: Any, place: int | None, number: int) -> Any:
    """Return integers with one of them, or all if `place` is None, replaced."""
    changed = np.array(array)
    most = min(number, int(np.iinfo(changed.dtype).max))
    changed.reshape(-1)[slice(None) if place is None else place] = most
    return changed if isinstance(array, np.ndarray) else changed[()]


def _stretched_inputs(call: Call) -> Iterator[Call]:
    inputs = list(call.inputs)
    arrays = [place for place, each in enumerate(inputs) if isinstance(each, np.ndarray)]
    for axis in range(3):
        these = [
            place for place in arrays if max(inputs[place].ndim, 1) > axis and inputs[place].size
        ]
        for group in (these, *([place] for place in these)):
            changed = list(inputs)
            for place in group:
                changed[place] = stretched(inputs[place], axis)
            yield call.with_inputs(changed)


def _large_numbers(call: Call) -> Iterator[Call]:
    inputs = list(call.inputs)
    for place, each in enumerate(inputs):
        if not isinstance(each, np.ndarray | np.generic) or each.dtype.kind not in "iu":
            continue
        if 0 < each.size <= 8:
            for number in LARGE_NUMBERS:
                for at in (None, *range(each.size)):
                    changed = list(inputs)
                    changed[place] = with_number(each, at, number)
                    yield call.with_inputs(changed)


def _large_attributes(call: Call) -> Iterator[Call]:
    names = set(call.kernel.attr_names)
    if callable(call.kernel.memory):
        names |= set(signature(call.kernel.memory)[1])
    for name in sorted(names):
        value = call.node.attr(name)
        for number in LARGE_NUMBERS:
            if type(value) is int:
                yield _with_attr(call, name, number)
            elif isinstance(value, tuple) and value and {*map(type, value)} == {int}:
                yield _with_attr(call, name, (value[0], *(number for _ in value[1:-1]), value[-1]))


def _with_attr(call: Call, name: str, value: Any) -> Call:
    changed = call.with_inputs(call.inputs)
    changed.node = _ChangedNode(call.node, name, value)
    return changed


class Asker:
    """Asks the ops of a room when recorded cases call them."""

    def __init__(self, ops: set[str]) -> None:
        self.wanted = ops
        self.answers: dict[str, tuple[int, int, list[str]]] = {}
        self._tries: dict[str, int] = {}

    def see(self, call: Call) -> Any:
        result = call.run()  # before, since some variants change a resource
        if call.op in self.wanted:
            self._tries[call.op] = self._tries.get(call.op, 0) + 1
            most, runs, wrong = self.answers.get(call.op, (0, 0, []))
            need, more, problems = self._ask(call)
            self.answers[call.op] = max(most, need), runs + more, wrong + problems
            if need >= TERABYTE or call.kernel.memory == 0 or self._tries[call.op] == TRIES:
                self.wanted.remove(call.op)
        return result

    def _ask(self, call: Call) -> tuple[int, int, list[str]]:
        largest, runs, wrong = 0, 0, []
        for variants in (_stretched_inputs, _large_numbers, _large_attributes):
            for variant in variants(call):
                try:
                    need = variant.bound()
                except Exception:  # the inputs are wrong, which the kernel reports
                    need = 0
                largest = max(largest, need)
                if is_refused(need) or not _is_quick(variant):
                    continue
                runs += 1
                problem = _problem(variant, need)
                if problem:
                    wrong.append(problem)
        return largest, runs, wrong


def is_refused(need: int) -> bool:
    """Return whether a step with a limit of LIMIT bytes refuses a kernel."""
    account = MemoryAccount("the step", LIMIT)
    try:
        account.reserve(need)
    except ResourceExhaustedError:
        return True
    account.release(need)
    return False


def _is_quick(call: Call) -> bool:
    """Return whether a kernel can be run: it looks at no element of a stretched array."""
    arrays = [each for each in call.inputs if isinstance(each, np.ndarray)]
    return call.kernel.memory == 0 or all(each.size < 1 << 24 for each in arrays)


def _problem(call: Call, need: int) -> str:
    """Run a kernel that needs little; return what it did otherwise, or ""."""
    # a kernel that has a context may change a resource that the case's later steps wait for
    if call.kernel.needs_context or call.kernel.asynchronous or call.op in NOT_OF_INPUTS:
        return ""
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        allocated = call.allocated()
    except MemoryError:
        allocated = TERABYTE
    except (OpError, _SlowError, ValueError, TypeError, IndexError, OverflowError):
        return ""  # refused; errors of other classes are of no interest here
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if allocated <= need + SLACK:
        return ""
    shapes = [np.shape(each) for each in call.inputs]
    return f"{call.op} of {shapes} allocated {allocated} bytes, its row says {need}"


def _end(*_: object) -> None:
    raise _SlowError


def _ask_in(cases: Iterable[Case], asker: Asker) -> None:
    for case in cases:
        if any(node.op in asker.wanted for node in nodes_of(case)):
            run(case)


def main(room: str) -> None:
    """Ask the kernels of `room` and print the answers."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    signal.signal(signal.SIGVTALRM, _end)
    np.seterr(all="ignore")
    asker = Asker({op for op, modules in op_index().items() if modules[0].startswith(f"{room}.")})
    with calls_seen(asker.see, pytest.MonkeyPatch()):
        for family in families():
            if room in golden_path(family).parts:
                _ask_in(cases_of(family), asker)
    sys.stdout.write(json.dumps(asker.answers))


if __name__ == "__main__":
    main(sys.argv[1])

"""Every kernel says how much memory a call needs, also if it is asked for 1 TB.

`tests/conformance/test_memory.py` holds the bounds against what recorded cases allocate.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from runtime.framework import op_def_registry
from runtime.framework.op_kernel import MemoryNeed
from runtime.kernels import KERNEL_ROOMS, kernel_defs
from runtime.kernels.io.memory_needs import MEMORY_NEEDS as IO_NEEDS
from runtime.kernels.lazy_registry import op_index
from tests.conformance.memory_asks import TERABYTE, is_refused, stretched

ROOT = pathlib.Path(__file__).parent.parent.parent.parent.parent


@functools.cache
def answers(room: str) -> dict[str, tuple[int, int, list[str]]]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.conformance.memory_asks", room],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, tuple[int, int, list[str]]] = json.loads(done.stdout)
    return found


def tables(room: str) -> tuple[dict[str, MemoryNeed], dict[str, int]]:
    module = importlib.import_module(f"runtime.kernels.{room}.memory_needs")
    return module.MEMORY_NEEDS, module.INPUT_MULTIPLES


@pytest.mark.parametrize("room", KERNEL_ROOMS)
def test_every_op_of_a_room_stands_in_one_of_its_tables(room: str):
    ops = {
        op for op, modules in op_index().items() if room in {m.partition(".")[0] for m in modules}
    }
    needs, multiples = tables(room)
    assert needs.keys() & multiples.keys() == set()
    assert needs.keys() | multiples.keys() == ops


def test_a_row_belongs_to_the_kernel_of_its_room():
    rows = {op for room in KERNEL_ROOMS for table in tables(room) for op in table}
    assert rows == {kernel.op for kernel in kernel_defs()}


@pytest.mark.parametrize("room", KERNEL_ROOMS)
def test_the_parameters_of_a_bound_are_those_of_its_op(room: str):
    wrong = []
    for op, need in tables(room)[0].items():
        definition, signature = op_def_registry.look_up(op), inspect.signature(need)
        inputs = definition.input_arg
        is_list = any(each.number_attr or each.type_list_attr for each in inputs)
        context = ["context"] if "context" in signature.parameters else []
        named = {p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}
        try:
            for count in (20, 21, 22) if is_list else (len(inputs),):
                signature.bind(*context, *range(count), **dict.fromkeys(named))
        except TypeError as error:
            wrong.append(f"{op}: {error}")
        if not named <= {each.name for each in definition.attr}:
            wrong.append(f"{op} has no attributes {named - {e.name for e in definition.attr}}")
    assert wrong == []


@pytest.mark.parametrize("room", KERNEL_ROOMS)
def test_what_asks_for_a_terabyte_is_refused_before_it_is_allocated(room: str):
    wrong = [problem for _, _, problems in answers(room).values() for problem in problems]
    assert wrong == []
    needs, _ = tables(room)
    asked = {op: most for op, (most, _, _) in answers(room).items() if op in needs}
    # the others have a handle or the header of a file in place of what is large
    assert sum(most >= TERABYTE for most in asked.values()) >= len(asked) / 2, asked


def test_a_stretched_array_claims_a_terabyte_and_has_none():
    array = stretched(np.zeros((2, 3), np.float32), 1)
    assert array.nbytes >= TERABYTE
    assert array.strides == (12, 0)
    assert is_refused(array.nbytes)


def test_saving_large_variables_takes_little_more_than_one_of_them() -> None:
    names, specs = np.array([b"a", b"b", b"c"], object), np.array([b""] * 3, object)
    values = [np.zeros(1 << 20, np.float32) for _ in range(3)]
    need = IO_NEEDS["SaveV2"](np.array(b"prefix", object), names, specs, *values)
    assert values[0].nbytes <= need <= 2 * values[0].nbytes + 10_000

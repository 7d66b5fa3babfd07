"""Objects of models are in the C library's heap, so that Python's arenas do not grow with them."""

from __future__ import annotations

import os
import pathlib
import platform
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[4]
# Prints how many of the allocator's blocks each half of the objects is in, and frees them all.
_MAKE_OBJECTS = """
import gc, sys
from runtime.foundation.model_objects import keep_model_objects_apart, model_objects
gc.disable()
keep_model_objects_apart()
def blocks(make):
    before = sys.getallocatedblocks()
    made = make(100_000)
    return sys.getallocatedblocks() - before, made
def make(count):
    return [(number, str(number)) for number in range(1000, 1000 + count)]
usual, first = blocks(make)
with model_objects, model_objects:
    apart, second = blocks(make)
    for row in (first, second):
        row.extend([0] * 1000)  # resizes what the other allocator made
again, third = blocks(make)
assert first[:100_000] == second[:100_000] == third
for row in (first, second, third):
    row.sort(key=str)
    del row[:]
print(usual, apart, again, model_objects.is_used)
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.python_implementation() != "CPython",
    reason="the allocators are not CPython's",
)


def blocks(*options: str, **environment: str) -> tuple[int, int, int, bool]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONMALLOC"}
    done = subprocess.run(
        [sys.executable, *options, "-c", _MAKE_OBJECTS],
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    usual, apart, again, is_used = done.stdout.split()
    return int(usual), int(apart), int(again), is_used == "True"


def test_only_what_is_made_within_is_in_no_arena() -> None:
    usual, apart, again, is_used = blocks()
    assert is_used
    assert usual > 200_000 and again > 200_000
    assert apart < 2000


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        (("-X", "dev"), {}),
        (("-X", "tracemalloc"), {}),
        ((), {"PYTHONMALLOC": "malloc"}),
        ((), {"PYTHONMALLOC": "debug"}),
    ],
)
def test_an_unusual_allocator_stays(options: tuple[str, ...], environment: dict[str, str]) -> None:
    *_, is_used = blocks(*options, **environment)
    assert not is_used

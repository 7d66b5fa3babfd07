"""docs/ops_left_out.md names the ops without a kernel: all of them, and no others."""

from __future__ import annotations

import fnmatch
import json
import pathlib
import re

import pytest

from runtime.framework import op_packages
from runtime.framework.op_def_registry import all_op_defs
from tools.write.op_table import KERNEL_DTYPES, supported

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "ops_left_out.md"
WITH_KERNEL, WITHOUT_KERNEL = (
    "With a CPU kernel in TensorFlow",
    "Without a CPU kernel in TensorFlow",
)


def patterns(section: str) -> list[str]:
    """Return the names and patterns of a section's table."""
    text = PAGE.read_text().split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def matched(pattern: str, ops: set[str]) -> set[str]:
    return set(fnmatch.filter(ops, pattern.replace("…", "*")))


def left_out() -> set[str]:
    """Return the ops that TensorFlow registers and that run neither here nor with an extra."""
    return set(all_op_defs()) - supported() - set(op_packages.package_ops())


def of_section(section: str) -> set[str]:
    """Return the ops without a kernel that belong into a section."""
    has_kernel = set(json.loads(KERNEL_DTYPES.read_text()))
    return left_out() & has_kernel if section == WITH_KERNEL else left_out() - has_kernel


@pytest.mark.parametrize("section", [WITH_KERNEL, WITHOUT_KERNEL])
def test_every_op_without_a_kernel_has_a_line(section: str) -> None:
    named = set().union(*(matched(each, of_section(section)) for each in patterns(section)))
    assert sorted(of_section(section) - named) == []


@pytest.mark.parametrize("section", [WITH_KERNEL, WITHOUT_KERNEL])
def test_every_name_on_the_page_is_of_such_an_op(section: str) -> None:
    idle = [each for each in patterns(section) if not matched(each, of_section(section))]
    assert idle == []


@pytest.mark.parametrize("section", [WITH_KERNEL, WITHOUT_KERNEL])
def test_no_name_on_the_page_is_of_an_op_with_a_kernel(section: str) -> None:
    running = set(all_op_defs()) - left_out()
    wrong = {each: found for each in patterns(section) if (found := matched(each, running))}
    assert wrong == {}

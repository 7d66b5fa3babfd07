"""What a run consists of."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest

from bench.sections import DIGITS, SECTIONS, Run, Section


def test_sections_have_names_of_their_own() -> None:
    names = [section.name for section in SECTIONS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_a_section_is_a_module_that_writes_its_figures(section: Section) -> None:
    spec = importlib.util.find_spec(section.module)
    assert spec is not None
    if spec.submodule_search_locations:  # a folder
        spec = importlib.util.find_spec(f"{section.module}.run")
        assert spec is not None
    assert spec.origin is not None
    assert '"--json"' in pathlib.Path(spec.origin).read_text(encoding="utf-8")


def test_arguments_with_models_and_peers() -> None:
    run = Run(pathlib.Path("/models"), "/peers/python", full=True)
    arguments = {section.name: section.arguments(run) for section in SECTIONS}
    assert arguments["steps"][:4] == ["--models", "/models", "--peers", "/peers/python"]
    assert arguments["overhead"] == ["--tensorflow", "/peers/python"]
    assert arguments["start"][0] == "/models/mobilenet_v2"
    assert arguments["opening"] == ["/models/mobilenet_v2/1", "--sessions", "1000"]
    assert arguments["priority"] == ["--seconds", "60", "--model", "/models/mobilenet_v2/1"]


def test_arguments_without_models_are_those_of_the_examples() -> None:
    run = Run(None, None, full=False)
    arguments = {section.name: section.arguments(run) for section in SECTIONS}
    assert arguments["overhead"] == []
    assert arguments["start"] == [str(DIGITS), "--runs", "2"]
    assert arguments["priority"] == ["--seconds", "8"]

"""Which engines the step times are measured with."""

from __future__ import annotations

import pytest

from bench import step_times
from bench.engines.worker import ENGINES
from bench.tables import ENGINES as SHOWN
from runtime.clusters.engine_choice import EngineChoice
from runtime.clusters.running.engine import EngineUse


@pytest.mark.parametrize(
    ("reasons", "rows", "said"),
    [
        ({}, ["runstep_openvino", "runstep_openvino_bf16"], ""),
        (
            {"bfloat16": "the processor has it not"},
            ["runstep_openvino"],
            "not measured with OpenVINO in bfloat16: the processor has it not",
        ),
        (
            {"float32": "it is missing", "bfloat16": "it is missing"},
            [],
            "not measured with OpenVINO in float32: it is missing; "
            "not measured with OpenVINO in bfloat16: it is missing",
        ),
    ],
)
def test_openvino_is_measured_where_it_is_there(
    reasons: dict[str, str], rows: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def use(choice: EngineChoice) -> EngineUse:
        return EngineUse("Engine 1.0", "float32", reasons.get(choice.precision, ""))

    monkeypatch.setattr(step_times, "find_engine", lambda _: None)
    monkeypatch.setattr(step_times, "known_use", use)
    assert step_times.our_engines() == (["runstep", "runstep_clusters", *rows], said)
    assert set(rows) <= ENGINES.keys() & SHOWN.keys()

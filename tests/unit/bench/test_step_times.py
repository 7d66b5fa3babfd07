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


class FakeWorker:
    """Answers with turns of runs that take `seconds` each, and notes who had a turn."""

    def __init__(self, name: str, seconds: float, turns: list[str]) -> None:
        self._name, self._seconds, self._turns = name, seconds, turns

    def ask(self, warm_up: int = 0, block: int = 0, seconds: float = 0.0) -> dict[str, object]:
        if warm_up:
            return {"where": "caller"}
        self._turns.append(self._name)
        return {"times": [self._seconds] * max(1, round(seconds / self._seconds))}


def test_engines_take_turns_until_each_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_times, "PAUSE_SECONDS", 0)
    turns: list[str] = []
    seconds = {"runstep": 0.5, "onnx_runtime": 1 / 128, "gemm": 1 / 128}
    workers = {name: FakeWorker(name, each, turns) for name, each in seconds.items()}
    figures = dict(step_times.measure_batch(workers, 8, rounds=3, seconds=0.5))  # type: ignore[arg-type]
    assert turns == ["runstep", "onnx_runtime", "gemm"] * 3 + ["onnx_runtime", "gemm"] * 2
    assert figures["runstep"] == {
        "median_ms": 500, "p99_ms": 500, "runs": 3, "where": "caller",
    }  # fmt: skip
    assert figures["onnx_runtime"]["runs"] == 5 * 13
    assert figures["gemm"] == [1 / 128] * 5 * 3

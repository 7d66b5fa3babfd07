"""Which form of batching a model gets, by the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from runtime.errors import InvalidArgumentError, NotFoundError
from server.models.model_batching import ModelBatching
from server.models.model_version import ModelVersion
from server.settings import Settings
from server.steps.batching.batch_metrics import BatchMetrics
from server.steps.batching.batch_scheduler import BatchScheduler
from tests.unit.server.models.fakes import FakeLoader


def forms(folder: Path, **settings: Any) -> dict[str, str]:
    """The form of each signature of version 1 of model `m` that is batched."""
    batching = ModelBatching(Settings(**settings), BatchScheduler(BatchMetrics()))
    version = ModelVersion("m", 1, FakeLoader()("m", 1, folder))
    return {name: each.mode for name, each in batching.batches_of(version, folder).items()}


def model(**batching: Any) -> dict[str, Any]:
    return {"name": "m", "base_path": "/models/m", "batching": batching}


def test_nothing_is_batched_unless_the_settings_ask_for_it(tmp_path: Path) -> None:
    assert forms(tmp_path) == {}
    assert forms(tmp_path, models=[model(mode="off")], batching={"enabled": True}) == {}


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({"batching": {"enabled": True}}, "parameters"),
        ({"batching": {"enabled": True, "mode": "adaptive"}}, "adaptive"),
        ({"models": [model()]}, "parameters"),
        ({"models": [model(mode="adaptive")], "batching": {"enabled": True}}, "adaptive"),
    ],
)
def test_a_models_own_setting_takes_precedence(
    tmp_path: Path, settings: dict[str, Any], mode: str
) -> None:
    found = forms(tmp_path, **settings)
    assert "serving_default" in found
    assert set(found.values()) == {mode}


def test_a_wrong_or_missing_file_of_parameters_ends_the_start(tmp_path: Path) -> None:
    file = tmp_path / "wrong.txt"
    file.write_text("max_batch_size { value: -1 }")
    with pytest.raises(InvalidArgumentError, match=r"must be positive; was -1 \(.*wrong.txt\)"):
        forms(tmp_path, batching={"enabled": True, "parameters_file": str(file)})
    with pytest.raises(NotFoundError, match="Cannot read the batching parameters"):
        forms(tmp_path, models=[model(parameters_file=str(tmp_path / "none.txt"))])


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"batching": {"parameters_file": "x"}},
            "batching.parameters_file is set without batching.enabled",
        ),
        (
            {"batching": {"enabled": True, "mode": "adaptive", "parameters_file": "x"}},
            "batching.parameters_file has no use with mode adaptive",
        ),
        ({"models": [model(mode="off", parameters_file="x")]}, "no use with mode off"),
        ({"models": [model(mode="always")]}, "'parameters', 'adaptive' or 'off'"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValidationError, match=text):
        Settings(**settings)

"""The settings of replicas: what a model has, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from server.settings import ModelSettings, Settings
from server.settings_sections.ray_serve import RayServeSettings, ReplicaRange


def test_a_model_has_what_it_says_or_what_all_have() -> None:
    settings = RayServeSettings.model_validate(
        {
            "replicas": 3,
            "cpus": 0.5,
            "models": {
                "large": {"cpus": 4},
                "busy": {"replicas": {"min": 2, "max": 8, "queued_per_replica": 16}},
            },
        }
    )
    assert settings.of("digits") == (3, 0.5)
    assert settings.of("large") == (3, 4)
    assert settings.of("busy") == (ReplicaRange(min=2, max=8, queued_per_replica=16), 0.5)
    assert RayServeSettings().of("digits") == (1, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"replicas": 0}, "replicas must be at least 1, got 0"),
        ({"models": {"digits": {"replicas": -1}}}, "replicas must be at least 1, got -1"),
        ({"replicas": {"min": 3, "max": 2}}, "min is 3 and max is 2; min must not exceed max"),
        ({"replicas": {"min": 0, "max": 2}}, "greater than or equal to 1"),
        ({"replicas": {"min": 1}}, "Field required"),
        ({"replicas": {"max": 2, "queued_per_replica": 0}}, "greater than 0"),
        ({"replicas": {"max": 2, "more_after_seconds": -1}}, "greater than or equal to 0"),
        ({"replicas": {"max": 2, "fewer_after_seconds": -1}}, "greater than or equal to 0"),
        ({"cpus": -1}, "greater than or equal to 0"),
        ({"fronts": 0}, "greater than or equal to 1"),
        ({"max_queued": 0}, "greater than or equal to 1"),
        ({"replica": 2}, "Extra inputs are not permitted"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RayServeSettings.model_validate(given)


def test_replicas_are_of_models_that_there_are() -> None:
    models = (ModelSettings(name="digits", base_path="x"),)
    ray: Any = {"serve": {"models": {"digit": {"replicas": 2}}}}
    message = r"ray\.serve\.models: must be names in models: digits, got digit"
    with pytest.raises(ValidationError, match=message):
        Settings(models=models, ray=ray)

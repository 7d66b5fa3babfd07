"""The names of deployments are those that Ray Serve allows, one for each model."""

from __future__ import annotations

import re

import pytest

from server.ray_models.deployment_names import FRONT, deployment_name


@pytest.mark.parametrize("model", ["digits", "half_plus_two", "v1.2-b"])
def test_a_plain_name_is_kept(model: str) -> None:
    assert deployment_name(model) == f"model_{model}"


def test_any_name_has_a_name_of_its_own() -> None:
    models = ["a/b", "a#b", "ü", "x" * 65, "a", "front", ""]
    names = {deployment_name(model) for model in models}
    assert len(names) == len(models)
    assert FRONT not in names
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in names)

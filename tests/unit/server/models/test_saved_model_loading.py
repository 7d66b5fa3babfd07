"""Which settings reach the sessions of served models."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from runtime.api import SessionOptions
from server.models import saved_model_loading
from server.models.saved_model_loading import SavedModelLoading
from server.settings import ModelSettings, Settings


def clusters_of(settings: Settings, name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the value that the sessions of the model `name` get."""
    seen: list[str] = []

    def load(options: SessionOptions, *_: object) -> object:
        seen.append(options.clusters)
        return types.SimpleNamespace(session=None)

    monkeypatch.setattr(saved_model_loading, "load_saved_model", load)
    SavedModelLoading(settings).load(name, 1, Path("folder"))
    return seen[0]


@pytest.mark.parametrize(
    ("of_server", "of_model", "expected"),
    [("auto", None, "auto"), ("off", None, "off"), ("off", "auto", "auto"), ("auto", "off", "off")],
)
def test_a_model_may_have_another_setting_of_clusters(
    of_server: str, of_model: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ModelSettings(name="m", base_path="/m", clusters=of_model)  # type: ignore[arg-type] # from a file
    settings = Settings(clusters=of_server, models=(model,))  # type: ignore[arg-type] # from a file
    assert clusters_of(settings, "m", monkeypatch) == expected
    assert clusters_of(settings, "other", monkeypatch) == of_server

"""docs/ray_serve.md: its settings are deployable, and every key and option is explained."""

from __future__ import annotations

import argparse
import pathlib
import re

import yaml

from server.main import _parser
from server.settings import Settings
from server.settings_sections.ray_serve import RayServeSettings, ReplicaRange

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "ray_serve.md").read_text()


def test_the_settings_of_the_page_are_settings() -> None:
    (block,) = re.findall(r"^```text\n(rest:.*?)^```$", PAGE, re.M | re.S)
    serve = Settings(**yaml.safe_load(block)).ray.serve
    assert serve.of("digits") == (ReplicaRange(min=1, max=8, queued_per_replica=4), 2)
    assert serve.of("half_plus_two") == (2, 1)
    assert serve.fronts == 2


def test_every_key_and_option_is_named() -> None:
    for key in (*RayServeSettings.model_fields, *ReplicaRange.model_fields):
        assert key in PAGE, key
    (commands,) = (
        action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    options = commands.choices["deploy"]._option_string_actions
    assert {"--config", "--address", "--name", "--timeout", "--remove"} <= set(options)
    for option in options:
        assert option in ("-h", "--help") or f"`{option}" in PAGE or f" {option}" in PAGE, option

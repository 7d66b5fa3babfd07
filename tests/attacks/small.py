"""The settings of the servers that the tests attack: small limits, so that attacks are small."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.attacks import memory
from tests.attacks.attack import Attack

SERVER: dict[str, Any] = {
    "rest": {"host": "127.0.0.1"},
    "models": [{"name": "half_plus_two", "base_path": "examples/models/half_plus_two"}],
    "clusters": "off",
}


def merged(*settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of which the later ones win, key by key within a section."""
    result: dict[str, Any] = {}
    for each in settings:
        for section, value in each.items():
            is_section = isinstance(value, Mapping)
            result[section] = {**result.get(section, {}), **value} if is_section else value
    return result


def small_settings(attack: Attack) -> dict[str, Any]:
    """Return the settings of the server that an attack's test needs."""
    return merged(SERVER, memory.LIMITS, attack.settings)

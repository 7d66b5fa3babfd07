"""The settings of the servers that the tests attack: small limits, so that attacks are small."""

from __future__ import annotations

import contextlib
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from tests.attacks import memory
from tests.attacks.attack import Attack, Target
from tests.integration.server_process import ServerProcess

SERVER: dict[str, Any] = {
    "rest": {"host": "127.0.0.1"},
    "model_poll_seconds": 0.1,
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


@contextlib.contextmanager
def attacked_server(
    settings: Mapping[str, Any], folder: pathlib.Path
) -> Iterator[tuple[ServerProcess, Target]]:
    """Run a server with these settings and two models; `folder` is for its files.

    The base path of the model `changing` is empty.
    """
    changing = folder / "changing"
    changing.mkdir()
    models = [
        {"name": "half_plus_two", "base_path": "examples/models/half_plus_two"},
        {"name": "changing", "base_path": str(changing)},
    ]
    file = folder / "server.yaml"
    file.write_text(json.dumps({**settings, "models": models}))
    server = ServerProcess(f"--config={file}")
    try:
        server.wait_for("gRPC listens on port")
        server.wait_for("Loaded version 1 of model half_plus_two")
        yield server, Target(server, changing)
    finally:
        server.end()

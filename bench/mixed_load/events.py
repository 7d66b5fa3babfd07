"""What happens to the models while requests run, one event after the other, and when."""

from __future__ import annotations

import contextlib
import json
import pathlib
import shutil
import time
import urllib.request
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bench.fronts.requests import JSON, HttpRequest, binary_outputs, infer_binary
from bench.mixed_load.clients import Versions
from bench.mixed_load.models import CHANGING, LARGE, LargeModel, write_changing
from bench.mixed_load.sender import Address, Sender
from bench.mixed_load.tally import Tally
from bench.soak.client import check_close
from bench.soak.record import Failed

LIMIT_SECONDS = 120  # for a version to be loaded or unloaded
POLL_SECONDS = 0.05
RELOAD, LOAD, USE, UNLOAD, DRAIN = (
    "a new version of a tiny model", "load of the large model", "predictions of it",
    "unload of it", "drain and restart of the second server",
)  # fmt: skip


class Event(NamedTuple):
    """A kind of event, and the instants (`time.monotonic()`) of its beginning and its end."""

    kind: str
    start: float
    end: float


class Events:
    """The events so far."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self.seen: list[Event] = []

    @contextlib.contextmanager
    def event(self, kind: str) -> Iterator[None]:
        """Note when an event begins and ends; a failure counts as that of a request."""
        begun = time.monotonic()
        with self._tally.watched(kind):
            yield
            self._tally.add(kind)
        self.seen.append(Event(kind, begun, time.monotonic()))


class ChangingModel:
    """Replaces the version of the tiny model by the next one."""

    def __init__(self, address: Address, base: pathlib.Path, versions: Versions) -> None:
        self._url = f"{address.http}/v1/models/{CHANGING}"
        self._base, self._versions, self._version = base, versions, 1

    def reload(self) -> None:
        """Add a version, wait until it answers, remove the one before, wait until it has ended."""
        old, self._version = self._version, self._version + 1
        self._versions.allowed = frozenset({float(old), float(self._version)})
        write_changing(self._base, self._version)
        self._until({str(self._version): "AVAILABLE"})
        shutil.rmtree(self._base / str(old))
        self._until({str(self._version): "AVAILABLE", str(old): "END"})
        self._versions.allowed = frozenset({float(self._version)})

    def _until(self, states: dict[str, str]) -> None:
        end = time.monotonic() + LIMIT_SECONDS
        while True:
            with urllib.request.urlopen(self._url, timeout=LIMIT_SECONDS) as answer:
                statuses = json.loads(answer.read())["model_version_status"]
            seen = {each["version"]: each["state"] for each in statuses}
            if all(seen.get(version, "END") == state for version, state in states.items()):
                return
            if time.monotonic() > end:
                raise Failed("NOT_LOADED", f"{seen} instead of {states}")
            time.sleep(POLL_SECONDS)


class LargeModelCalls:
    """Loads, uses and unloads the large model over the Open Inference Protocol."""

    def __init__(self, address: Address, model: LargeModel) -> None:
        self._sender, self._model = Sender(address), model

    def load(self) -> None:
        """Load it; return when it serves."""
        self._change("load")

    def use(self, count: int) -> None:
        """Predict, and check the answers."""
        for _ in range(count):
            request = infer_binary(LARGE, {"x": self._model.x})
            headers, content = self._sender.request("POST", request)
            length = int(headers["Inference-Header-Content-Length"])
            (y,) = binary_outputs(content, length).values()
            check_close(y, np.asarray(self._model.y), LARGE)

    def unload(self) -> None:
        """Unload it."""
        self._change("unload")

    def close(self) -> None:
        """Close the connection."""
        self._sender.close()

    def _change(self, what: str) -> None:
        path = f"/v2/repository/models/{LARGE}/{what}"
        self._sender.request("POST", HttpRequest(path, b"{}", JSON))

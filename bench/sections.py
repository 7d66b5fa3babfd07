"""The sections of a run of `python -m bench`: which module measures what, with which arguments."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable

ROOT = pathlib.Path(__file__).parent.parent
DIGITS = ROOT / "examples/models/digits"
MODEL = "mobilenet_v2"  # of start, memory, session opening and low-priority work


@dataclasses.dataclass(frozen=True)
class Run:
    """What a run has: exported models, an interpreter with the peers; `full` takes half an hour."""

    models: pathlib.Path | None
    peers: str | None
    full: bool

    @property
    def model(self) -> pathlib.Path:
        """The folder of the model that is served: MobileNetV2, or the digits example."""
        return self.models / MODEL if self.models else DIGITS

    def seconds(self, full: float, short: float) -> str:
        """Return one of two durations, as an argument."""
        return f"{full if self.full else short:g}"


@dataclasses.dataclass(frozen=True)
class Section:
    """A module of `bench` that writes the section's figures with `--json`."""

    name: str
    module: str
    arguments: Callable[[Run], list[str]]


def with_tensorflow(run: Run) -> list[str]:
    return ["--tensorflow", run.peers] if run.peers else []


def steps(run: Run) -> list[str]:
    where = ["--models", str(run.models or ROOT / "examples/models")]
    peers = ["--peers", run.peers] if run.peers else []
    return [*where, *peers, "--rounds", run.seconds(5, 2), "--seconds", run.seconds(2.5, 0.4)]


def beside_model(run: Run, seconds: float) -> list[str]:
    """Return the options of a section whose other work may be a model."""
    model = ["--model", str(run.model / "1")] if run.models else []
    return ["--seconds", run.seconds(seconds, 8), *model]


SECTIONS = (
    Section("steps", "bench.step_times", steps),
    Section("overhead", "bench.session_overhead", with_tensorflow),
    Section("http", "bench.http.rates", lambda run: ["--seconds", run.seconds(2, 1)]),
    Section("large_json", "bench.http.large_json", lambda run: ["--seconds", run.seconds(20, 8)]),
    Section("start", "bench.start", lambda run: [str(run.model), "--runs", run.seconds(5, 2)]),
    Section("size", "bench.installed_size", lambda run: []),
    Section(
        "opening",
        "bench.open_sessions",
        lambda run: [str(run.model / "1"), "--sessions", run.seconds(1000, 100)],
    ),
    Section("unloading", "bench.unloading", lambda run: [str(run.model)]),
    Section("priority", "bench.priority", lambda run: beside_model(run, 60)),
    Section(
        "fronts",
        "bench.fronts",
        lambda run: [
            *("--seconds", run.seconds(2, 1), "--rounds", run.seconds(5, 2)),
            *(("--models", str(run.models)) if run.models else ()),
        ],
    ),
    Section(
        "batching",
        "bench.batching",
        lambda run: [
            *("--seconds", run.seconds(4, 1), "--rounds", run.seconds(5, 2)),
            *(("--models", str(run.models)) if run.models else ()),
        ],
    ),
    Section("http_priority", "bench.http.priority", lambda run: beside_model(run, 20)),
)

"""A load pool and a clock that a test drives by hand, and bundles that count what is done."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import protos as pb
from runtime.foundation.errors import OpError, ResourceExhaustedError
from runtime.framework.dtypes import DataType
from runtime.sessions.runtime_session import RunRequest, ShortStep


class HandPool:
    """Keeps tasks until the test runs them."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], object]] = []
        self.is_full = False

    def schedule(self, task: Callable[[], object]) -> None:
        if self.is_full:
            raise ResourceExhaustedError("full")
        self.tasks.append(task)

    def run_all(self) -> None:
        while self.tasks:
            self.tasks.pop(0)()


class FakeSession:
    """Answers every step with `function(feeds)`."""

    def __init__(self, function: Callable[[RunRequest], list[Any]]) -> None:
        self.function = function
        self.requests: list[RunRequest] = []
        self.if_short: list[RunRequest] = []  # that might have run in the caller's thread
        self.is_closed = False
        self.is_slow = False  # if so, no step is short

    def short_step(self, feeds: Sequence[str], fetches: Sequence[str]) -> FakeShortStep:
        return FakeShortStep(self, feeds, fetches)

    def run_if_short(self, request: RunRequest) -> list[Any] | None:
        self.if_short.append(request)
        return None

    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Any]]:
        self.requests.append(request)
        future: concurrent.futures.Future[list[Any]] = concurrent.futures.Future()
        try:
            future.set_result(self.function(request))
        except OpError as error:
            future.set_exception(error)
        return future

    def clusters(self) -> dict[tuple[str, ...], list[Any]]:
        return {}

    def engine(self) -> None:
        return None

    def close(self) -> None:
        self.is_closed = True


class FakeShortStep(ShortStep):
    """A step of a session by its values; a test says whether it is short."""

    is_short = False

    def __init__(self, session: FakeSession, feeds: Sequence[str], fetches: Sequence[str]) -> None:
        self._session = session
        self._feeds = feeds
        self._fetches = fetches

    @property
    def may_run(self) -> bool:
        return self.is_short and not self._session.is_slow

    def run(self, values: Sequence[np.ndarray]) -> list[Any] | None:
        if not self.may_run:
            return None
        request = RunRequest(dict(zip(self._feeds, values, strict=True)), self._fetches)
        self._session.requests.append(request)
        return self._session.function(request)


class FakeBundle:
    def __init__(self, session: FakeSession, meta_graph_def: pb.MetaGraphDef) -> None:
        self.session: Any = session
        self.meta_graph_def = meta_graph_def


def signature_def(
    inputs: dict[str, DataType], outputs: dict[str, DataType], method: str = ""
) -> pb.SignatureDef:
    """Inputs `a` are fed as `in_a:0`, outputs `b` fetched as `out_b:0`."""
    definition = pb.SignatureDef(method_name=method)
    for prefix, types, infos in (
        ("in", inputs, definition.inputs),
        ("out", outputs, definition.outputs),
    ):
        for alias, data_type in types.items():
            infos[alias].name = f"{prefix}_{alias}:0"
            infos[alias].dtype = int(data_type)  # type: ignore[assignment]
            infos[alias].tensor_shape.dim.add(size=-1)
    return definition


FLOAT = DataType.FLOAT


def half_plus_two(request: RunRequest) -> list[Any]:
    """y = x / 2 + 2, classify and regress of the feature `x` of each example."""
    if "in_inputs:0" in request.feeds:
        examples = [pb.Example.FromString(item) for item in request.feeds["in_inputs:0"]]
        x = np.array([[e.features.feature["x"].float_list.value[0]] for e in examples], np.float32)
    else:
        x = request.feeds["in_x:0"]
    return [x / np.float32(2) + np.float32(2)] * len(request.fetches)


def half_plus_two_bundle() -> FakeBundle:
    meta_graph = pb.MetaGraphDef()
    examples = {"inputs": DataType.STRING}
    for name, definition in {
        "serving_default": signature_def({"x": FLOAT}, {"y": FLOAT}),
        "regress_x_to_y": signature_def(examples, {"outputs": FLOAT}),
        "classify_x_to_y": signature_def(examples, {"scores": FLOAT}),
    }.items():
        meta_graph.signature_def[name].CopyFrom(definition)
    return FakeBundle(FakeSession(half_plus_two), meta_graph)


class FakeLoader:
    """Makes half_plus_two bundles; `failures[version]` holds the errors to raise first."""

    def __init__(self) -> None:
        self.failures: dict[int, list[Exception]] = {}
        self.loads: list[tuple[str, int]] = []
        self.bundles: dict[int, FakeBundle] = {}

    def __call__(self, name: str, version: int, path: Path) -> Any:  # a FakeBundle
        self.loads.append((name, version))
        pending = self.failures.get(version)
        if pending:
            raise pending.pop(0)
        bundle = self.bundles[version] = half_plus_two_bundle()
        return bundle


def make_versions(base: Path, *versions: int | str) -> Path:
    for version in versions:
        (base / str(version)).mkdir(parents=True, exist_ok=True)
    return base

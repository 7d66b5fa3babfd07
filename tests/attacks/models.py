"""Model folders that are broken, or that change while they are loaded; a child that is killed."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import time
from collections.abc import Callable

import numpy as np

from tests.attacks.attack import Attack, Prepare, Target
from tests.conformance.case import Graph
from tests.integration.server_process import ROOT

GOOD = ROOT / "examples" / "models" / "counter" / "1"
LOAD_SECONDS = 20  # less than model_loading.retry_seconds, by which nothing may have to wait
_versions = itertools.count(1)
Break = Callable[[pathlib.Path], None]


def state_of(target: Target, version: int) -> str:
    """Return the state of a version: START, LOADING, AVAILABLE, END, or NONE."""
    status, content = target.request("/v1/models/changing", None, {}, "GET")
    if status != 200:
        return "NONE"
    states = {
        each["version"]: each["state"] for each in json.loads(content)["model_version_status"]
    }
    return str(states.get(str(version), "NONE"))


def until(target: Target, version: int, states: tuple[str, ...]) -> str:
    """Return the state of a version, once it is one of these."""
    end = time.monotonic() + LOAD_SECONDS
    while (state := state_of(target, version)) not in states and time.monotonic() < end:
        time.sleep(0.02)
    return state


def broken(damage: Break) -> Prepare:
    """Add a damaged version, then a good one; return the states of the two."""

    def prepare(target: Target, _: object) -> Callable[[], str]:
        bad, good = next(_versions), next(_versions)

        def attack() -> str:
            add(target, bad, damage)
            seen = until(target, bad, ("END", "AVAILABLE"))
            if state_of(target, bad) == "NONE":  # no version was ever there
                seen = "NONE"
            add(target, good, lambda folder: None)
            return f"{seen}, then {until(target, good, ('AVAILABLE',))}"

        return attack

    return prepare


def add(target: Target, version: int, change: Break) -> None:
    """Put a copy of a good model, changed, in its place at once."""
    made = target.models.parent / f"new-{version}"
    shutil.copytree(GOOD, made)
    change(made)
    made.rename(target.models / str(version))


def rubbish(folder: pathlib.Path) -> None:
    (folder / "saved_model.pb").write_bytes(b"\xff" * 1000)


def half_graph(folder: pathlib.Path) -> None:
    content = (folder / "saved_model.pb").read_bytes()
    (folder / "saved_model.pb").write_bytes(content[: len(content) // 2])


def half_variables(folder: pathlib.Path) -> None:
    for file in (folder / "variables").iterdir():
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def poisoned_warm_up(folder: pathlib.Path) -> None:
    extra = folder / "assets.extra"
    extra.mkdir()
    (extra / "tf_serving_warmup_requests").write_bytes(b"\x00\xff" * 500)


def late_files(target: Target, _: object) -> Callable[[], str]:
    """Create a version's folder first and its files a moment later."""
    version = next(_versions)

    def attack() -> str:
        folder = target.models / str(version)
        folder.mkdir()
        time.sleep(0.3)  # the server has seen it
        shutil.copytree(GOOD, folder, dirs_exist_ok=True)
        return until(target, version, ("AVAILABLE",))

    return attack


def killed_child(target: Target, _: object) -> Callable[[], str]:
    """Kill the processes of the low-priority pool while they compute; return the last answer."""
    graph = Graph()
    value = graph.placeholder("float32", "x", (256, 256))
    x = value
    for index in range(60):
        value = graph.add("MatMul", value, x, name=f"m{index}")[0]
    graph.add("Sum", value, np.int32([0, 1]), name="sum")
    session = target.open_session(graph.graph_def)
    feed = np.eye(256, dtype=np.float32).tolist()
    step = {"feeds": {"x": feed}, "fetches": ["sum"], "priority": "low"}

    def attack() -> str:
        end = time.monotonic() + LOAD_SECONDS
        while not (children := children_of(target.process_id)) and time.monotonic() < end:
            target.run(session, step)
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        said = {target.run(session, step) for _ in range(3)}
        target.post(f"{session}:close", b"{}")
        return "200" if said <= {"200", "503 UNAVAILABLE"} and "200" in said else str(said)

    return attack


def children_of(process_id: int) -> list[int]:
    """Return the ids of the processes that a process has started."""
    found: set[int] = set()
    for task in os.listdir(f"/proc/{process_id}/task"):
        with contextlib.suppress(OSError):  # the thread has ended
            path = pathlib.Path(f"/proc/{process_id}/task/{task}/children")
            found.update(map(int, path.read_text(encoding="ascii").split()))
    return sorted(found)


# Until the last attempt to load it, the version is LOADING; the server of the tests makes one.
ENDED = ("END, then AVAILABLE", "LOADING, then AVAILABLE")
ONE_ATTEMPT = {"model_loading": {"max_retries": 0}}
RETRIES = ("model_loading.max_retries", "model_loading.retry_seconds")
ATTACKS = (
    *(
        Attack(
            key, f"a version {what}", "not loaded; the next version is",
            RETRIES, ENDED, broken(damage), settings=ONE_ATTEMPT,
        )
        for key, what, damage in (
            ("rubbish_model", "whose `saved_model.pb` is rubbish", rubbish),
            ("half_graph", "whose `saved_model.pb` ends early", half_graph),
            ("half_variables", "whose checkpoint ends early", half_variables),
        )
    ),
    Attack(
        "poisoned_warm_up", "a version whose warm-up file is rubbish", "not loaded; the next is",
        ("model_loading.warmup",), ENDED, broken(poisoned_warm_up), settings=ONE_ATTEMPT,
    ),
    Attack(
        "late_files", "a version whose folder appears before its files",
        "loaded, when the files are there",
        ("model_poll_seconds",), ("AVAILABLE",), late_files,
    ),
    Attack(
        "killed_child", "SIGKILL to the process of the low-priority pool",
        "its step fails with UNAVAILABLE or runs in the server; the next steps run",
        (), ("200",), killed_child,
    ),
)  # fmt: skip

"""Imports run downward only: the map of the repository is true."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent.parent
# Each floor may import from itself and from floors below it.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("protos",),
    ("runtime.foundation",),
    ("runtime.errors",),
    ("runstep.names",),
    ("runstep.client",),
    ("runtime.framework",),
    ("runtime.kernels", "runtime.devices"),
    ("runtime.graph",),
    ("runtime.clusters",),
    ("runtime.executors",),
    ("runtime.sessions",),
    ("runtime.op_packages",),
    ("runtime.registrations",),
    ("runtime.step_process_main", "runtime.call_process_main"),
    ("runtime.saved_model",),
    ("runtime.session_host",),
    ("runtime.client",),
    ("runtime.api", "runtime.ray_api"),
    (
        "server.addresses",
        "server.starting",
        "server.log_stream",
        "server.process_end",
        "server.settings_errors",
    ),
    (
        "server.settings_sources",
        "server.settings_paths",
        "server.settings_sections",
        "server.text_message",
        "server.runtime_metrics",
        "server.tensorflow_metrics",
    ),
    ("server.log", "server.settings", "server.metrics", "server.lifecycle", "server.package"),
    ("server.file_watch",),
    ("server.access", "server.tls"),
    ("server.memory_in_flight", "server.host"),
    ("server.passed_calls",),
    ("server.connections",),
    ("server.steps",),
    ("server.codec",),
    ("server.models",),
    ("server.inference_protocol",),
    ("server.sessions",),
    ("server.processes", "server.ray_sessions"),
    ("server.ray_models",),
    ("server.errors",),
    ("server.middleware", "server.rest", "server.rpc"),
    ("server.console",),
    ("server.framework",),
    ("server.app", "server.start_log"),
    ("server.internal_calls", "server.embedded_server"),
    ("server.session_host_actor", "server.ray_serve", "server.background"),
    ("server.process",),
    ("server.supervision",),
    ("server.commands",),
    ("server.main",),
    ("runstep.launcher",),
    ("runstep.__main__",),
)
LEVEL = {name: level for level, names in enumerate(FLOORS) for name in names}
FORBIDDEN = {
    "runtime": {"fastapi", "starlette", "uvicorn", "tensorflow", "server"},
    "server": {"tensorflow"},
    "runstep": {"fastapi", "starlette", "uvicorn", "tensorflow", "google", "protos"},
}
# What server/ may import of the runtime.
DOORS = ("runtime.api", "runtime.errors", "runtime.ray_api")
ONLY_IN: dict[str, tuple[str, ...]] = {
    "onnxruntime": ("runtime.clusters.backend",),
    "openvino": ("runtime.clusters.openvino_backend",),
    "ray": (
        "runtime.sessions.ray_cluster",
        "server.ray_models",
        "server.ray_serve",
        "server.ray_sessions",
        "server.session_host_actor",
    ),
}


def modules() -> list[tuple[str, pathlib.Path]]:
    found = []
    for package in ("runstep", "runtime", "server"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found.append((".".join(parts).removesuffix(".__init__"), path))
    return found


def imports(path: pathlib.Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names += [f"{module}.{alias.name}" for alias in node.names]
    return names


def floor(name: str) -> str | None:
    parts = name.split(".")
    for length in (2, 1):
        prefix = ".".join(parts[:length])
        if prefix in LEVEL:
            return prefix
    return None


def test_every_module_stands_on_a_floor() -> None:
    homeless = [name for name, _ in modules() if "." in name and floor(name) is None]
    assert homeless == []


def test_imports_run_downward() -> None:
    upward = []
    for name, path in modules():
        mine = floor(name)
        if mine is None:
            continue
        for imported in imports(path):
            theirs = floor(imported)
            if theirs is not None and (
                LEVEL[theirs] > LEVEL[mine] or (LEVEL[theirs] == LEVEL[mine] and theirs != mine)
            ):
                upward.append(f"{name} imports {imported}")
    assert upward == []


def test_forbidden_imports() -> None:
    wrong = []
    for name, path in modules():
        package = name.split(".")[0]
        for imported in imports(path):
            root = imported.split(".")[0]
            if root in FORBIDDEN[package]:
                wrong.append(f"{name} imports {imported}")
            if root in ONLY_IN and not name.startswith(ONLY_IN[root]):
                wrong.append(f"{name} imports {imported}, which only {ONLY_IN[root]} may")
    assert wrong == []


def test_the_server_has_doors_to_the_runtime() -> None:
    others = [
        f"{name} imports {imported}"
        for name, path in modules()
        if name.split(".")[0] == "server"
        for imported in imports(path)
        if imported.split(".")[0] == "runtime" and not is_behind_a_door(imported)
    ]
    assert others == []


def is_behind_a_door(imported: str) -> bool:
    return imported.startswith(tuple(f"{door}." for door in DOORS))


def test_the_light_door_imports_nothing_heavy() -> None:
    script = "import sys, runtime.errors; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {name for name in done.stdout.split() if name.split(".")[0] in ("runtime", "protos")}
    assert loaded == {
        "runtime", "runtime.errors", "runtime.foundation", "runtime.foundation.errors",
    }  # fmt: skip
    assert not {"numpy", "google", "ml_dtypes", "asyncio"} & set(done.stdout.split())


def test_modules_of_a_floor_make_no_circle() -> None:
    graph = {
        name: {
            candidate
            for imported in imports(path)
            for candidate in (imported, imported.rpartition(".")[0])
            if candidate != name
        }
        for name, path in modules()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, f"circle: {' → '.join((*trail, name))}"
        if name in done or name not in graph:
            return
        for imported in graph[name]:
            if imported in graph and not name.startswith(f"{imported}."):
                visit(imported, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())

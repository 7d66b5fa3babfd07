"""Imports run downward only: the map of the repository is true."""

from __future__ import annotations

import ast
import pathlib

ROOT = pathlib.Path(__file__).parent.parent.parent
# Each floor may import from itself and from floors below it.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("protos",),
    ("runtime.foundation",),
    ("runtime.framework",),
    ("runtime.kernels", "runtime.devices"),
    ("runtime.graph",),
    ("runtime.clusters",),
    ("runtime.executors",),
    ("runtime.sessions",),
    ("runtime.registrations",),
    ("runtime.step_process_main",),
    ("runtime.saved_model",),
    ("runtime.client",),
    ("runtime.api",),
    ("server.log", "server.settings", "server.metrics", "server.lifecycle", "server.package"),
    ("server.http_protocol",),
    ("server.priorities",),
    ("server.codec",),
    ("server.models",),
    ("server.sessions",),
    ("server.errors",),
    ("server.middleware", "server.rest", "server.rpc"),
    ("server.app",),
    ("server.process",),
    ("server.commands",),
    ("server.main",),
)
# runtime.client.node_builder is below everything that builds NodeDefs.
LEVEL = {name: level for level, names in enumerate(FLOORS) for name in names}
FORBIDDEN = {
    "runtime": {"fastapi", "starlette", "uvicorn", "tensorflow", "server"},
    "server": {"tensorflow"},
}
ONLY_IN = {"onnxruntime": "runtime.clusters"}


def modules() -> list[tuple[str, pathlib.Path]]:
    found = []
    for package in ("runtime", "server"):
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

"""Op packages: what installed distributions bring, and what is said of those that can't be used."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import pathlib
import sys
import types
from collections.abc import Iterator

import numpy as np
import pytest

import protos as pb
from runtime.api import InvalidArgumentError, NotFoundError, SessionOptions, new_session
from runtime.framework import op_def_registry, op_packages
from runtime.framework.op_kernel import KernelDef
from runtime.framework.op_packages import OpPackage
from tests.conformance.case import Graph

DOUBLED = pb.OpDef(
    name="Doubled",
    input_arg=[pb.OpDef.ArgDef(name="x", type=pb.DT_FLOAT)],
    output_arg=[pb.OpDef.ArgDef(name="y", type=pb.DT_FLOAT)],
)


def doubled(x: np.ndarray) -> np.ndarray:
    return np.asarray(x * 2)


def made(name: str, **contents: object) -> types.ModuleType:
    module = types.ModuleType(name)
    vars(module).update(contents)
    return module


KERNELS = made("doubled_kernels", KERNELS=(KernelDef("Doubled", doubled),))
EXAMPLE = pathlib.Path(__file__).parents[4] / "examples" / "op_package"
PACKAGE = OpPackage({"Doubled": "doubled_kernels"}, lambda: (DOUBLED,), install="doubled[all]")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The entry points that are installed; a test adds its own before it looks up an op."""
    points: dict[str, str] = {}

    def entry_points(*, group: str) -> list[importlib.metadata.EntryPoint]:
        assert group == "runstep.ops"
        return [importlib.metadata.EntryPoint(name, value, group) for name, value in points.items()]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.setitem(sys.modules, "doubled_kernels", KERNELS)
    monkeypatch.setitem(sys.modules, "doubled", made("doubled", PACKAGE=PACKAGE, WRONG="text"))
    caches = (
        op_packages.installed_packages, op_packages.package_op_defs, op_packages._owners,
        op_packages.kernels_of_package, op_packages._op_defs_of,
    )  # fmt: skip
    for cache in caches:
        cache.cache_clear()
    yield points
    for cache in caches:
        cache.cache_clear()


def graph() -> pb.GraphDef:
    made_graph = Graph()
    x = made_graph.placeholder(np.float32, "x")
    made_graph.graph_def.node.add(name="y", op="Doubled", input=[x[0]])
    return made_graph.graph_def


def run() -> list[float]:
    session = new_session(SessionOptions(config=pb.ConfigProto(inter_op_parallelism_threads=-1)))
    session.create(graph())
    (value,) = session.run({"x:0": np.array([1.5], np.float32)}, ["y:0"])
    session.close()
    return list(value.tolist())


def test_an_installed_package_brings_its_op(installed: dict[str, str]) -> None:
    installed["mine"] = "doubled:PACKAGE"
    assert op_def_registry.look_up("Doubled") == DOUBLED
    assert run() == [3.0]


def test_two_packages_with_one_op_are_refused(installed: dict[str, str]) -> None:
    installed.update(one="doubled:PACKAGE", two="doubled:PACKAGE")
    with pytest.raises(InvalidArgumentError) as caught:
        run()
    assert "Op Doubled is brought by 2 packages: one () and two ()." in caught.value.message


def test_a_package_without_what_it_requires_says_what_to_install(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed["mine"] = "doubled:PACKAGE"
    monkeypatch.setitem(sys.modules, "doubled_kernels", None)
    with pytest.raises(InvalidArgumentError) as caught:
        run()
    assert "Op Doubled needs the package mine, which requires `pip install 'doubled[all]'`" in (
        caught.value.message
    )


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("nowhere_to_be_found:PACKAGE", "can't be imported: ModuleNotFoundError"),
        ("doubled:WRONG", "must be an OpPackage, got str"),
    ],
)
def test_a_package_that_is_broken_leaves_the_others_alone(
    installed: dict[str, str], value: str, fault: str
) -> None:
    installed.update(broken=value, mine="doubled:PACKAGE")
    assert run() == [3.0]
    broken, mine = op_packages.installed_packages()
    assert (broken.package, mine.fault) == (None, "")
    assert fault in broken.fault


def test_an_unknown_op_names_the_packages_that_are_broken(installed: dict[str, str]) -> None:
    installed.update(broken="nowhere_to_be_found:PACKAGE")
    with pytest.raises(NotFoundError) as caught:
        op_def_registry.look_up("Doubled")
    assert "Op packages that can't be used: broken: nowhere_to_be_found" in caught.value.message


def test_op_defs_that_fail_leave_other_packages_alone(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> tuple[pb.OpDef, ...]:
        raise ValueError("no list")

    monkeypatch.setitem(sys.modules, "bad", made("bad", PACKAGE=OpPackage({}, fail)))
    installed.update(bad="bad:PACKAGE", mine="doubled:PACKAGE")
    assert run() == [3.0]
    assert op_packages.faults() == {"bad": "its op_defs failed: ValueError: no list"}


def test_what_tensorflow_has_goes_before_what_a_package_brings(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = pb.OpDef(name="Neg", output_arg=[pb.OpDef.ArgDef(name="z", type=pb.DT_STRING)])
    kernels = made("neg_kernels", KERNELS=(KernelDef("Neg", doubled),))
    package = OpPackage({"Neg": "neg_kernels"}, lambda: (other,))
    monkeypatch.setitem(sys.modules, "neg_kernels", kernels)
    monkeypatch.setitem(sys.modules, "neg", made("neg", PACKAGE=package))
    installed["neg"] = "neg:PACKAGE"
    assert [each.name for each in op_def_registry.look_up("Neg").input_arg] == ["x"]
    session = new_session(SessionOptions(config=pb.ConfigProto(inter_op_parallelism_threads=-1)))
    negated = Graph()
    x = negated.placeholder(np.float32, "x")
    negated.add("Neg", x, name="y")
    session.create(negated.graph_def)
    assert session.run({"x:0": np.float32(2)}, ["y:0"])[0] == -2
    session.close()


def test_the_example_package(installed: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    installed["example"] = "runstep_example_ops:PACKAGE"
    spec = importlib.util.spec_from_file_location("make_model", EXAMPLE / "make_model.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    session = new_session(SessionOptions(config=pb.ConfigProto(inter_op_parallelism_threads=-1)))
    session.create(maker.model().meta_graphs[0].graph_def)
    x = np.array([-5, 0.5], np.float32)
    for total in (2, 4):
        clamped, count = session.run({"x:0": x}, ["clamped:0", "count:0"])
        assert (clamped.tolist(), count) == ([-2.0, 0.5], total)
    session.close()


def test_our_own_packages_name_their_extras() -> None:
    packages = {
        each.name: each.package
        for each in op_packages.installed_packages()
        if each.distribution == "runstep"
    }
    for name in ("forests", "jax", "text"):
        package = packages[name]
        assert package is not None
        assert package.install == f"runstep[{name}]"

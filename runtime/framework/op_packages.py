"""Op packages: installed distributions that bring ops of their own.

A distribution names an `OpPackage` in the entry-point group `runstep.ops`:

    [project.entry-points."runstep.ops"]
    my_ops = "my_ops:PACKAGE"

The group is read once, when an op is first looked up that TensorFlow does not register, or one
that has no built-in kernel. Guarantees: thread-safe; a package's kernels are imported op by op; a
package that can't be used never keeps another op from running, and the reason is kept for the
errors of its ops.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import importlib
import importlib.metadata
import importlib.resources
from collections.abc import Callable, Iterable, Mapping

import protos as pb
from runtime.framework.op_kernel import KernelDef

GROUP = "runstep.ops"


@dataclasses.dataclass(frozen=True, slots=True)
class OpPackage:
    """The ops of one package. Making one must import neither kernels nor what they require.

    `kernel_modules` has, for each op, the name of the module whose table `KERNELS` holds its
    kernels. `op_defs` returns the signatures of those ops that TensorFlow itself does not register.
    `install` is what a user installs to get everything that the kernels import, such as
    `runstep[text]`.
    """

    kernel_modules: Mapping[str, str]
    op_defs: Callable[[], Iterable[pb.OpDef]] = tuple
    install: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class InstalledPackage:
    """An entry point of the group: its package, or the reason why there is none."""

    name: str
    distribution: str
    version: str
    package: OpPackage | None
    fault: str = ""


@functools.cache
def installed_packages() -> tuple[InstalledPackage, ...]:
    """Return what is installed in the group, by name. TF: tf.load_op_library, without a path."""
    found = importlib.metadata.entry_points(group=GROUP)
    return tuple(map(_load, sorted(found, key=lambda each: each.name)))


def _load(entry: importlib.metadata.EntryPoint) -> InstalledPackage:
    dist = entry.dist
    name, version = ("", "") if dist is None else (dist.name, dist.version)
    try:
        package = entry.load()
    except Exception as error:  # whatever a foreign package raises at import
        reason = f"{entry.value} can't be imported: {type(error).__name__}: {error}"
        return InstalledPackage(entry.name, name, version, None, reason)
    if not isinstance(package, OpPackage):
        reason = f"{entry.value} must be an OpPackage, got {type(package).__name__}"
        return InstalledPackage(entry.name, name, version, None, reason)
    return InstalledPackage(entry.name, name, version, package)


@functools.cache
def _owners() -> dict[str, list[InstalledPackage]]:
    owners: dict[str, list[InstalledPackage]] = {}
    for installed in installed_packages():
        if installed.package is not None:
            for op in installed.package.kernel_modules:
                owners.setdefault(op, []).append(installed)
    return owners


@functools.cache
def _op_defs_of(name: str) -> tuple[tuple[pb.OpDef, ...], str]:
    """Return (the OpDefs of the package `name`, why they can't be had)."""
    (installed,) = (each for each in installed_packages() if each.name == name)
    if installed.package is None:
        return (), installed.fault
    try:
        return tuple(installed.package.op_defs()), ""
    except Exception as error:  # whatever a foreign package raises
        return (), f"its op_defs failed: {type(error).__name__}: {error}"


@functools.cache
def package_op_defs() -> dict[str, pb.OpDef]:
    """Return the OpDefs that packages bring, by the name of the op.

    TensorFlow's own OpDefs are elsewhere, and go before a package's of the same name.
    """
    return {
        op_def.name: op_def
        for installed in installed_packages()
        for op_def in _op_defs_of(installed.name)[0]
    }


def faults() -> dict[str, str]:
    """Return why packages can't be used at all, by the name of the package."""
    found = {each.name: each.fault or _op_defs_of(each.name)[1] for each in installed_packages()}
    return {name: fault for name, fault in found.items() if fault}


@dataclasses.dataclass(frozen=True, slots=True)
class OpPackageSummary:
    """What `runstep show` lists of an installed package."""

    name: str
    distribution: str
    version: str
    ops: tuple[str, ...]
    fault: str  # why none of its ops can be used, or ""


def op_package_summaries() -> list[OpPackageSummary]:
    """Return the installed packages, by name."""
    broken = faults()
    return [
        OpPackageSummary(
            each.name,
            each.distribution,
            each.version,
            tuple(sorted(each.package.kernel_modules)) if each.package else (),
            broken.get(each.name, ""),
        )
        for each in installed_packages()
    ]


def owner_of_op(op: str) -> str:
    """Return the name of the package whose kernel of `op` runs, or ""."""
    return _owners()[op][0].name if op in _owners() and kernels_of_package(op)[0] else ""


def package_ops() -> frozenset[str]:
    """Return the ops for which some package brings a kernel."""
    return frozenset(_owners())


@functools.cache
def kernels_of_package(op: str) -> tuple[tuple[KernelDef, ...], str]:
    """Return (the kernels that the package of `op` brings, why there are none).

    Both are empty if no package has the op. The reason is a sentence: two packages bring the op, or
    the kernels can't be imported, with what must be installed.
    """
    owners = _owners().get(op, [])
    if not owners:
        return (), ""
    if len(owners) > 1:
        names = " and ".join(f"{each.name} ({each.distribution})" for each in owners)
        return (), f"Op {op} is brought by {len(owners)} packages: {names}. Uninstall all but one."
    (owner,) = owners
    assert owner.package is not None  # _owners has only packages that were loaded
    try:
        table: Iterable[KernelDef] = importlib.import_module(
            owner.package.kernel_modules[op]
        ).KERNELS
    except ImportError as error:
        install = owner.package.install or owner.distribution
        return (), (
            f"Op {op} needs the package {owner.name}, which requires `pip install '{install}'`: "
            f"{error}"
        )
    return tuple(kernel for kernel in table if kernel.op == op), ""


def read_op_defs(package: str, name: str = "op_defs.pb.gz") -> tuple[pb.OpDef, ...]:
    """Return the OpDefs of a gzip-compressed OpList that lies beside the modules of `package`."""
    packed = importlib.resources.files(package).joinpath(name).read_bytes()
    return tuple(pb.OpList.FromString(gzip.decompress(packed)).op)

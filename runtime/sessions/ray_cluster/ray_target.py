"""RayTarget: what a `ray://` target says: a cluster, and where in it the session shall be.

    ray://auto
    ray://10.0.0.5:6379?num_cpus=2&memory=4GiB&label.zone=a
    ray://auto?isolation=actor&resources.accelerator=1

| option | the session is |
| --- | --- |
| `num_cpus`, `memory`, `resources.NAME` | on a node that has at least these in total |
| `label.KEY` | on a node that has the label with this value |
| `node` | on the node with this id or address |
| `isolation` | `host`, in the node's host actor with others; `actor`, in an actor of its own |
"""

from __future__ import annotations

import dataclasses
import math
import re
import urllib.parse
from collections.abc import Mapping

from runtime.foundation.errors import InvalidArgumentError

SCHEME = "ray://"
AUTO = "auto"
RAY_CLIENT_PORT = 10001
DEFAULT_GCS_PORT = 6379
_ISOLATIONS = ("host", "actor")
_OPTIONS = "num_cpus, memory, resources.NAME, label.KEY, node, isolation"
_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_OWN_OPTIONS = {"CPU": "num_cpus", "memory": "memory"}  # of Ray's names of resources
_AMOUNT_DIGITS = 4  # Ray's resolution
_NUMBER = re.compile(r"\d{1,15}(\.\d*)?|\.\d+")
_MEMORY = re.compile(r"(\d{1,15})(|[KMGT]iB)")


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """Where a session shall be. What is None or empty is not asked for; `memory` is in bytes."""

    num_cpus: float | None = None
    memory: int | None = None
    resources: Mapping[str, float] = dataclasses.field(default_factory=dict)
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    node: str = ""
    is_isolated: bool = False

    @property
    def amounts(self) -> dict[str, float]:
        """The resources that a node must have in total, by Ray's names."""
        amounts = dict(self.resources)
        if self.num_cpus is not None:
            amounts["CPU"] = self.num_cpus
        if self.memory is not None:
            amounts["memory"] = self.memory
        return amounts


@dataclasses.dataclass(frozen=True, slots=True)
class RayTarget:
    """The address of a cluster's GCS, `HOST:PORT` or AUTO, and the placement of the session."""

    address: str
    placement: Placement


def parse_ray_target(target: str) -> RayTarget:
    """Return what a `ray://` target says; raise InvalidArgumentError if it says it wrongly."""
    address, _, query = target.removeprefix(SCHEME).partition("?")
    _check_address(address, target)
    return RayTarget(address, _placement(query, target))


def split_address(address: str) -> tuple[str, int]:
    """Return (host, port) of `HOST:PORT`; an IPv6 address is in brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _check_address(address: str, target: str) -> None:
    if address == AUTO:
        return
    host, colon, port = address.rpartition(":")
    if not colon or not host or "/" in address or not port.isascii() or not port.isdigit():
        raise InvalidArgumentError(
            f"{target}: expected ray://auto or ray://HOST:PORT with the port of the cluster's GCS "
            f"({DEFAULT_GCS_PORT} unless `ray start --port` says otherwise), got {address!r}"
        )
    if not 0 < int(port) < 65536:
        raise InvalidArgumentError(f"{target}: expected a port from 1 to 65535, got {port}")
    if int(port) == RAY_CLIENT_PORT:
        raise InvalidArgumentError(
            f"{target}: {RAY_CLIENT_PORT} is the port of Ray Client, whose protocol is not spoken "
            f"here; give the port of the cluster's GCS (`ray start --port`, by default "
            f"{DEFAULT_GCS_PORT}) and run this program on a node of the cluster"
        )


def _placement(query: str, target: str) -> Placement:
    values: dict[str, str] = {}
    for key, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
        if key in values:
            raise InvalidArgumentError(f"{target}: {key} is given twice")
        values[key] = value
    resources, labels = {}, {}
    for key in list(values):
        kind, dot, name = key.partition(".")
        if dot and name and kind == "resources":
            _check_resource(name, target)
            resources[name] = _amount(key, values.pop(key), target)
        elif dot and name and kind == "label":
            labels[name] = values.pop(key)
    isolation = values.pop("isolation", _ISOLATIONS[0])
    if isolation not in _ISOLATIONS:
        raise InvalidArgumentError(f"{target}: expected isolation=host or actor, got {isolation!r}")
    num_cpus = values.pop("num_cpus", None)
    memory = values.pop("memory", None)
    placement = Placement(
        None if num_cpus is None else _amount("num_cpus", num_cpus, target),
        None if memory is None else _bytes(memory, target),
        resources,
        labels,
        values.pop("node", ""),
        isolation == "actor",
    )
    if values:
        raise InvalidArgumentError(
            f"{target}: unknown option {', '.join(values)}; the options are {_OPTIONS}"
        )
    return placement


def _check_resource(name: str, target: str) -> None:
    if name in _OWN_OPTIONS:
        raise InvalidArgumentError(
            f"{target}: expected {_OWN_OPTIONS[name]} in place of resources.{name}"
        )
    if name == "object_store_memory":
        raise InvalidArgumentError(f"{target}: Ray gives no actor a part of {name}")


def _amount(key: str, text: str, target: str) -> float:
    amount = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not 0 <= amount < 1e12 or round(amount, _AMOUNT_DIGITS) != amount:
        raise InvalidArgumentError(
            f"{target}: expected a number for {key}, with {_AMOUNT_DIGITS} decimal places at most, "
            f"got {text!r}"
        )
    return amount


def _bytes(text: str, target: str) -> int:
    found = _MEMORY.fullmatch(text)
    if found is None:
        raise InvalidArgumentError(
            f"{target}: expected memory in bytes, KiB, MiB, GiB or TiB (4GiB), got {text!r}"
        )
    return int(found[1]) * _UNITS[found[2]]

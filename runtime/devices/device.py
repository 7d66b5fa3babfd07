"""Devices, on which nodes are placed, and the names of devices.

TF: tensorflow/core/framework/device.h, util/device_name_utils.h
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import secrets

import protos as pb
from runtime.foundation.errors import InvalidArgumentError

DEFAULT_PREFIX = "/job:localhost/replica:0/task:0"
CPU_MEMORY_LIMIT = 256 << 20  # bytes; the limit that TensorFlow reports for a CPU device

_PART = re.compile(
    r"/(?:(?P<job>job):(?P<job_name>[^/:]+)"
    r"|(?P<replica>replica):(?P<replica_id>\d+|\*)"
    r"|(?P<task>task):(?P<task_id>\d+|\*)"
    r"|(?P<device>device):(?P<device_type>[A-Za-z_]\w*|\*)(?::(?P<device_id>\d+|\*))?"
    r"|(?P<short>cpu|gpu|CPU|GPU):(?P<short_id>\d+|\*))"
)


@dataclasses.dataclass(frozen=True, slots=True)
class DeviceSpec:
    """The parts of a full or partial device name; a part that is not set is None."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    index: int | None = None

    def matches(self, other: DeviceSpec) -> bool:
        """Return whether every part that is set in this spec has the same value in `other`."""
        return all(
            mine is None or mine == theirs
            for mine, theirs in zip(
                dataclasses.astuple(self), dataclasses.astuple(other), strict=True
            )
        )


def parse_device_spec(text: str) -> DeviceSpec | None:
    """Parse a full or partial device name such as `/job:j/replica:0/task:0/device:CPU:0`.

    Return None if `text` is malformed.
    """
    position = 0
    parts: dict[str, str] = {}
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            return None
        position = match.end()
        parts |= {key: value for key, value in match.groupdict().items() if value is not None}
    # The device type may be in lower case only in the short form, such as `/cpu:0`.
    device_type = parts.get("device_type") or parts.get("short", "").upper()
    index = parts.get("device_id") or parts.get("short_id")
    return DeviceSpec(
        parts.get("job_name"),
        _number(parts.get("replica_id")),
        _number(parts.get("task_id")),
        None if device_type in ("", "*") else device_type,
        _number(index),
    )


def _number(text: str | None) -> int | None:
    return None if text is None or text == "*" else int(text)


_incarnations = itertools.count(secrets.randbits(32) << 16 | 1)


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """One device of a session."""

    name: str
    device_type: str
    memory_limit: int
    numa_node: int = 0
    incarnation: int = dataclasses.field(default_factory=lambda: next(_incarnations))

    @property
    def spec(self) -> DeviceSpec:
        """The parts of `name`."""
        spec = parse_device_spec(self.name)
        if spec is None:
            raise InvalidArgumentError(f"Malformed device name {self.name!r}")
        return spec

    def to_proto(self) -> pb.DeviceAttributes:
        """Return the DeviceAttributes message that describes this device."""
        return pb.DeviceAttributes(
            name=self.name,
            device_type=self.device_type,
            memory_limit=self.memory_limit,
            locality=pb.DeviceLocality(numa_node=self.numa_node),
            incarnation=self.incarnation,
            xla_global_id=-1,
        )

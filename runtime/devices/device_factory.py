"""Device factories by type and priority, and the devices that they create for a session.

Guarantees: a registry is filled before the first session (`runtime.registrations`) and then only
read; the CPU factory comes first and must exist.

TF: tensorflow/core/framework/device_factory.cc (DeviceFactory)
"""

from __future__ import annotations

import abc

import protos as pb
from runtime.devices.device import DEFAULT_PREFIX, Device
from runtime.foundation.errors import AlreadyExistsError, NotFoundError

DEFAULT_PRIORITY = 50
THREAD_POOL_PRIORITY = 60


class DeviceFactory(abc.ABC):
    """Creates the devices of one type."""

    @abc.abstractmethod
    def create_devices(self, config: pb.ConfigProto, name_prefix: str) -> list[Device]:
        """The devices for a session with this configuration; may be none."""


class DeviceFactoryRegistry:
    """The factory of each device type: the one registered with the highest priority."""

    def __init__(self) -> None:
        self._factories: dict[str, tuple[int, DeviceFactory]] = {}

    def register(
        self, device_type: str, factory: DeviceFactory, priority: int = DEFAULT_PRIORITY
    ) -> None:
        """Add a factory; it is used if its priority is the highest of its type.

        Raises AlreadyExistsError for the same type with the same priority.
        """
        known = self._factories.get(device_type)
        if known is not None and known[0] == priority:
            raise AlreadyExistsError(
                f"Duplicate registration of device factory for type {device_type} "
                f"with the same priority {priority}"
            )
        if known is None or known[0] < priority:
            self._factories[device_type] = (priority, factory)

    def priority(self, device_type: str) -> int:
        """The priority of the factory of a type; −1 when there is none."""
        known = self._factories.get(device_type)
        return -1 if known is None else known[0]

    def add_devices(
        self, config: pb.ConfigProto, name_prefix: str = DEFAULT_PREFIX
    ) -> list[Device]:
        """The devices of a new session, CPUs first.

        Raises NotFoundError without a CPU factory, or without a CPU device.
        """
        if "CPU" not in self._factories:
            raise NotFoundError("CPU Factory not registered. Did you link in threadpool_device?")
        devices = self._factories["CPU"][1].create_devices(config, name_prefix)
        if not devices:
            raise NotFoundError("No CPU devices are available in this process")
        for device_type, (_, factory) in self._factories.items():
            if device_type != "CPU":
                devices += factory.create_devices(config, name_prefix)
        return devices

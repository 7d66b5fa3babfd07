"""Device factories, registered by type and priority, which create the devices of a session.

A registry must be filled before the first session (`runtime.registrations`) and must then only be
read. It must have a CPU factory; the devices of that factory come first.

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
        """Return the devices, possibly none, for a session with the configuration `config`.

        The names of the devices must begin with `name_prefix`.
        """


class DeviceFactoryRegistry:
    """The factory of each device type; the factory with the highest priority is used."""

    def __init__(self) -> None:
        self._factories: dict[str, tuple[int, DeviceFactory]] = {}

    def register(
        self, device_type: str, factory: DeviceFactory, priority: int = DEFAULT_PRIORITY
    ) -> None:
        """Add a factory, which is used if no factory of `device_type` has a higher priority.

        Raises AlreadyExistsError if the factory that is used for `device_type` has this priority.
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
        """Return the priority of the factory of a type, or −1 if there is none."""
        known = self._factories.get(device_type)
        return -1 if known is None else known[0]

    def add_devices(
        self, config: pb.ConfigProto, name_prefix: str = DEFAULT_PREFIX
    ) -> list[Device]:
        """Create and return the devices of a new session, CPUs first.

        Raises NotFoundError if there is no CPU factory or it creates no device.
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

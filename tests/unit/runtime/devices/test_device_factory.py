"""Device factories: priorities, and the order of devices."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import protos as pb
from runtime.api import AlreadyExistsError, NotFoundError
from runtime.devices.device import Device
from runtime.devices.device_factory import DeviceFactory, DeviceFactoryRegistry
from runtime.devices.thread_pool_device import ThreadPoolDeviceFactory


class Fixed(DeviceFactory):
    """Makes one device of a type."""

    def __init__(self, device_type: str) -> None:
        self.device_type = device_type

    def create_devices(self, config: pb.ConfigProto, name_prefix: str) -> list[Device]:
        return [Device(f"{name_prefix}/device:{self.device_type}:0", self.device_type, 1)]


def registry_of(*rows: tuple[str, DeviceFactory, int]) -> DeviceFactoryRegistry:
    registry = DeviceFactoryRegistry()
    for row in rows:
        registry.register(*row)
    return registry


def types_of(devices: Sequence[Device]) -> list[str]:
    return [device.device_type for device in devices]


def test_a_higher_priority_replaces_and_a_lower_is_ignored() -> None:
    first, better, worse = Fixed("CPU"), Fixed("CPU"), Fixed("CPU")
    registry = registry_of(("CPU", first, 60), ("CPU", better, 70), ("CPU", worse, 50))
    assert registry.priority("CPU") == 70
    assert registry.priority("GPU") == -1


def test_an_equal_priority_is_refused() -> None:
    registry = registry_of(("GPU", Fixed("GPU"), 210))
    with pytest.raises(AlreadyExistsError) as caught:
        registry.register("GPU", Fixed("GPU"), 210)
    assert caught.value.message == (
        "Duplicate registration of device factory for type GPU with the same priority 210"
    )


def test_cpu_comes_first_and_must_be_there() -> None:
    with_gpu = registry_of(("GPU", Fixed("GPU"), 210), ("CPU", ThreadPoolDeviceFactory(), 60))
    assert types_of(with_gpu.add_devices(pb.ConfigProto())) == ["CPU", "GPU"]
    without = registry_of(("GPU", Fixed("GPU"), 210))
    with pytest.raises(NotFoundError, match="CPU Factory not registered"):
        without.add_devices(pb.ConfigProto())

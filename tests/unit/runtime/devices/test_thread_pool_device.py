"""CPU devices: how many a session has, and their NUMA nodes."""

from __future__ import annotations

import pytest

import protos as pb
from runtime.api import NotFoundError
from runtime.devices import thread_pool_device
from runtime.devices.device import DEFAULT_PREFIX
from tests.unit.runtime.sessions.graphs import direct_session, g1


def test_device_counts() -> None:
    two = direct_session(g1(), pb.ConfigProto(device_count={"CPU": 2, "TPU": 3}))
    assert [device.name for device in two.list_devices()] == [
        f"{DEFAULT_PREFIX}/device:CPU:0",
        f"{DEFAULT_PREFIX}/device:CPU:1",
    ]
    assert {device.memory_limit for device in two.list_devices()} == {268435456}
    for count in (0, -1):
        with pytest.raises(NotFoundError, match="No CPU devices are available in this process"):
            direct_session(config=pb.ConfigProto(device_count={"CPU": count}))


def test_numa_affinity_spreads_devices_over_the_nodes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(thread_pool_device, "num_numa_nodes", lambda: 2)
    config = pb.ConfigProto(device_count={"CPU": 3})
    assert [each.locality.numa_node for each in direct_session(config=config).list_devices()] == [
        0, 0, 0,
    ]  # fmt: skip
    config.experimental.use_numa_affinity = True
    with caplog.at_level("INFO"):
        devices = direct_session(config=config).list_devices()
    assert [each.locality.numa_node for each in devices] == [0, 1, 0]
    assert caplog.messages == [
        "Only 2 NUMA nodes visible in system,  assigning device "
        f"{DEFAULT_PREFIX}/device:CPU:2 to NUMA node 0"
    ]


def test_this_machine_has_a_numa_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert thread_pool_device.num_numa_nodes() >= 1
    monkeypatch.setattr(thread_pool_device, "_NODES", "/nowhere")
    assert thread_pool_device.num_numa_nodes() == 1

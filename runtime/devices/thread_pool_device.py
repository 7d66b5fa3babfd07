"""The CPU device, whose kernels run on the threads of the pool that runs the step.

TF: tensorflow/core/common_runtime/threadpool_device_factory.cc
"""

from __future__ import annotations

import logging
import os
import re

import protos as pb
from runtime.devices.device import CPU_MEMORY_LIMIT, Device
from runtime.devices.device_factory import DeviceFactory

_log = logging.getLogger(__name__)
_NODES = "/sys/devices/system/node"
_NODE = re.compile(r"node\d+$")


class ThreadPoolDeviceFactory(DeviceFactory):
    """Creates as many CPU devices as the configuration's `device_count["CPU"]`, by default 1."""

    def create_devices(self, config: pb.ConfigProto, name_prefix: str) -> list[Device]:
        """Return the CPU devices `<name_prefix>/device:CPU:<i>`; none if the count is not > 0."""
        count = config.device_count.get("CPU", 1)
        has_affinity = config.experimental.use_numa_affinity
        devices = []
        for index in range(count):
            name = f"{name_prefix}/device:CPU:{index}"
            node = _numa_node(index, name) if has_affinity else 0
            devices.append(Device(name, "CPU", CPU_MEMORY_LIMIT, node))
        return devices


def _numa_node(index: int, name: str) -> int:
    """Return the NUMA node that the device reports; threads are not bound to that node."""
    nodes = num_numa_nodes()
    if index >= nodes:
        _log.info(
            "Only %d NUMA nodes visible in system,  assigning device %s to NUMA node %d",
            nodes,
            name,
            index % nodes,
        )
    return index % nodes


def num_numa_nodes() -> int:
    """Return the number of NUMA nodes that the system reports, or 1 if it reports none."""
    try:
        return max(1, sum(_NODE.match(name) is not None for name in os.listdir(_NODES)))
    except OSError:
        return 1

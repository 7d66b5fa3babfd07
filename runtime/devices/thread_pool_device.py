"""The CPU device: kernels run on the threads of the step's pool.

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
    """Creates `device_count["CPU"]` CPU devices, one by default."""

    def create_devices(self, config: pb.ConfigProto, name_prefix: str) -> list[Device]:
        """CPU devices `<prefix>/device:CPU:<i>`; none when the configured count is not positive."""
        count = config.device_count.get("CPU", 1)
        has_affinity = config.experimental.use_numa_affinity
        devices = []
        for index in range(count):
            name = f"{name_prefix}/device:CPU:{index}"
            node = _numa_node(index, name) if has_affinity else 0
            devices.append(Device(name, "CPU", CPU_MEMORY_LIMIT, node))
        return devices


def _numa_node(index: int, name: str) -> int:
    """The NUMA node that a device reports. Threads are not bound to it."""
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
    """The number of NUMA nodes that the system reports; 1 if it reports none."""
    try:
        return max(1, sum(_NODE.match(name) is not None for name in os.listdir(_NODES)))
    except OSError:
        return 1

"""The CPU device: kernels run on the threads of the step's pool.

TF: tensorflow/core/common_runtime/threadpool_device_factory.cc
"""

from __future__ import annotations

import protos as pb
from runtime.devices.device import CPU_MEMORY_LIMIT, Device
from runtime.devices.device_factory import DeviceFactory


class ThreadPoolDeviceFactory(DeviceFactory):
    """Makes `device_count["CPU"]` CPU devices, one by default."""

    def create_devices(self, config: pb.ConfigProto, name_prefix: str) -> list[Device]:
        """CPU devices `<prefix>/device:CPU:<i>`; none when the configured count is not positive."""
        count = config.device_count.get("CPU", 1)
        return [
            Device(f"{name_prefix}/device:CPU:{index}", "CPU", CPU_MEMORY_LIMIT)
            for index in range(count)
        ]

"""The process's CPU client of `jaxlib`: arrays of numpy to its buffers and back, and executables.

The client's Python interface needs a sharding object, whose methods jax defines; `_Here` has the
few that are called for one device.

Source: jaxlib 0.10 (xla_client.py, _jax.pyi)
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax, xla_client

from runtime.foundation.errors import Code, OpError, error_for_code

Callback = Callable[..., tuple[np.ndarray, ...]]


class _Here(_jax.SingleDeviceSharding):  # type: ignore[misc] # the library has no types for it
    """The sharding of an array that is whole on the only device."""

    is_fully_replicated = True
    memory_kind = None

    def _to_xla_hlo_sharding(self, _rank: int) -> Any:
        return xla_client.HloSharding.replicate()


class _Described:
    """The type of an array, as the client reads it."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, array: np.ndarray) -> None:
        self.shape, self.dtype, self.weak_type = array.shape, array.dtype, False


class CpuClient:
    """Compiles modules for the CPU and runs them. Any thread may call it at any time."""

    def __init__(self) -> None:
        _note_absence_of_jax()
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # else it logs its devices to stderr
        self._client = xla_client.make_cpu_client(asynchronous=False)
        (self._device,) = self._client.local_devices()
        self._devices = _jax.DeviceList((self._device,))
        self._here = _Here(self._device)

    def compile(self, module: Any, callbacks: Sequence[Callback]) -> Any:
        """Return the executable of an MLIR module with static shapes.

        `callbacks` are the functions that its calls of `PYTHON_CALLBACK` name by their index.
        """
        options = xla_client.CompileOptions()
        options.num_replicas = options.num_partitions = 1
        return self._client.compile_and_load(module, self._devices, options, list(callbacks))

    def put(self, array: np.ndarray) -> Any:
        """Return a buffer with an array's elements, which it may share: they must not change."""
        return _jax.batched_device_put(
            _Described(array), self._here, [array], [self._device], enable_x64=True
        )

    def execute(self, executable: Any, buffers: Sequence[Any]) -> list[np.ndarray]:
        """Run an executable and return its outputs, which are read-only."""
        results = executable.execute_sharded(list(buffers))
        outputs = results.disassemble_into_single_device_arrays()
        return [each[0]._single_device_array_to_np_array_did_copy()[0] for each in outputs]


def error_of_client(error: Exception, what: str = "") -> OpError:
    """Return the client's error by its canonical code, which its message begins with."""
    name, _, words = str(error).partition(": ")
    code = Code.__members__.get(name, Code.INTERNAL)
    return error_for_code(code, what + (words if name in Code.__members__ else str(error)))


def _note_absence_of_jax() -> None:
    """Let `import jax` fail at once if there is no jax.

    The client tries to import it for each output, which takes 60 µs of looking in folders.
    """
    if "jax" not in sys.modules and importlib.util.find_spec("jax") is None:
        sys.modules["jax"] = None  # type: ignore[assignment] # as the import system documents it


PYTHON_CALLBACK = "xla_ffi_python_cpu_callback"


@functools.cache
def cpu_client() -> CpuClient:
    """Return the client of this process, which starts threads of its own when it is made."""
    return CpuClient()

"""StepStatsCollector: the node executions of a traced step, for RunMetadata.step_stats.

TF: tensorflow/core/common_runtime/step_stats_collector.h
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import numpy as np

import protos as pb
from runtime.framework.dtypes import from_numpy
from runtime.framework.tensor_codec import shape_to_proto
from runtime.framework.tensor_value import TensorValue

_NANOS_PER_MICRO = 1000


class StepStatsCollector:
    """Collects the start, end, thread and output shapes of each executed node.

    Guarantees: thread-safe; `to_proto` returns the executions added so far.
    """

    def __init__(self, default_device: str) -> None:
        self._default_device = default_device
        self._lock = threading.Lock()  # guards _by_device and _threads
        # Durations must be right even if the wall clock is set during the step.
        self._epoch_nanos = time.time_ns() - time.perf_counter_ns()
        self.begun = self.now_nanos()  # when the step began
        self._by_device: dict[str, list[pb.NodeExecStats]] = {}
        self._threads: dict[str, dict[int, str]] = {}

    def now_nanos(self) -> int:
        """Return the time that traces use, in nanoseconds since the epoch."""
        return self._epoch_nanos + time.perf_counter_ns()

    def add(
        self,
        device: str,
        name: str,
        op: str,
        start_nanos: int,
        outputs: Sequence[TensorValue],
        duration: int | None = None,
    ) -> None:
        """Add one execution of a node, which began at `start_nanos` of `now_nanos`.

        `duration` is in nanoseconds; by default the execution ends now.
        """
        if duration is None:
            duration = self.now_nanos() - start_nanos
        stats = pb.NodeExecStats(
            node_name=name,
            all_start_micros=start_nanos // _NANOS_PER_MICRO,
            op_end_rel_micros=max(1, duration // _NANOS_PER_MICRO),
            all_end_rel_micros=max(1, duration // _NANOS_PER_MICRO),
            scheduled_micros=start_nanos // _NANOS_PER_MICRO,
            all_start_nanos=start_nanos,
            op_end_rel_nanos=duration,
            all_end_rel_nanos=duration,
            scheduled_nanos=start_nanos,
            timeline_label=f"{name} = {op}()",
            thread_id=threading.get_native_id() & 0xFFFFFFFF,
        )
        for slot, value in enumerate(outputs):
            if isinstance(value, np.ndarray | np.generic):
                stats.output.append(_describe(slot, np.asarray(value)))
        device = device or self._default_device
        with self._lock:
            self._by_device.setdefault(device, []).append(stats)
            names = self._threads.setdefault(device, {})
            names[stats.thread_id] = threading.current_thread().name

    def by_node(self) -> dict[str, pb.NodeExecStats]:
        """Return {node name: the newest execution of the node}."""
        with self._lock:
            return {stats.node_name: stats for nodes in self._by_device.values() for stats in nodes}

    @property
    def node_names(self) -> set[str]:
        """The names of the nodes that were added."""
        return set(self.by_node())

    def to_proto(self) -> pb.StepStats:
        """Return the StepStats message, which has one DeviceStepStats for each device."""
        with self._lock:
            return pb.StepStats(
                dev_stats=[
                    pb.DeviceStepStats(
                        device=device, node_stats=nodes, thread_names=self._threads[device]
                    )
                    for device, nodes in self._by_device.items()
                ]
            )


def _describe(slot: int, array: np.ndarray) -> pb.NodeOutput:
    return pb.NodeOutput(
        slot=slot,
        tensor_description=pb.TensorDescription(
            dtype=int(from_numpy(array.dtype)),  # type: ignore[arg-type] # the same numbers
            shape=shape_to_proto(array.shape),
            allocation_description=pb.AllocationDescription(
                requested_bytes=array.nbytes, allocated_bytes=array.nbytes, allocator_name="cpu"
            ),
        ),
    )

"""Counts and times of the inference requests of each version, as Triton's statistics have them.

They are of this protocol's requests alone; `/monitoring/prometheus/metrics` has those of all
fronts. `compute_infer` includes the wait for a thread, because a step that is short has none, so
that `queue` stays zero.

Guarantees: used from the event loop only.

Source: Triton's statistics extension
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

_DURATIONS = ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output",
              "cache_hit", "cache_miss")  # fmt: skip
_MAX_BATCH_SIZES = 256  # that are counted apart, because clients choose them


@dataclasses.dataclass(slots=True)
class InferTimes:
    """How long the parts of one request took, in nanoseconds, and the size of its batch."""

    input_ns: int = 0
    infer_ns: int = 0
    output_ns: int = 0
    batch_size: int = 1


class _Durations:
    """A number of events for each name, and the sum of their nanoseconds."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: dict[str, list[int]] = {}

    def add(self, name: str, nanoseconds: int) -> None:
        sums = self._sums.get(name)
        if sums is None:
            sums = self._sums[name] = [0, 0]
        sums[0] += 1
        sums[1] += nanoseconds

    def described(self, *names: str) -> dict[str, dict[str, int]]:
        found = {name: self._sums.get(name, (0, 0)) for name in names}
        return {name: {"count": count, "ns": total} for name, (count, total) in found.items()}


class _VersionStatistics:
    def __init__(self) -> None:
        self.last_ms = 0  # since 1970
        self.inferences = 0
        self.executions = 0
        self.durations = _Durations()
        self.batches: dict[int, _Durations] = {}

    def succeeded(self, times: InferTimes, total_ns: int) -> None:
        self.last_ms = time.time_ns() // 1_000_000
        self.inferences += times.batch_size
        self.executions += 1
        self._add(self.durations, times)
        batch = self.batches.get(times.batch_size)
        if batch is None and len(self.batches) < _MAX_BATCH_SIZES:
            batch = self.batches[times.batch_size] = _Durations()
        if batch is not None:
            self._add(batch, times)
        self.durations.add("success", total_ns)

    def _add(self, durations: _Durations, times: InferTimes) -> None:
        durations.add("compute_input", times.input_ns)
        durations.add("compute_infer", times.infer_ns)
        durations.add("compute_output", times.output_ns)


class Statistics:
    """The statistics of the versions that have been used, by model and version."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, int], _VersionStatistics] = {}

    def succeeded(self, name: str, version: int, times: InferTimes, total_ns: int) -> None:
        """Count a request that succeeded."""
        self._of(name, version).succeeded(times, total_ns)

    def failed(self, name: str, version: int, total_ns: int) -> None:
        """Count a request that failed; the version must exist."""
        self._of(name, version).durations.add("fail", total_ns)

    def _of(self, name: str, version: int) -> _VersionStatistics:
        found = self._versions.get((name, version))
        if found is None:
            found = self._versions[name, version] = _VersionStatistics()
        return found

    def described(self, name: str, version: int) -> dict[str, Any]:
        """Return the statistics of a version, in the form of the protocol's JSON."""
        found = self._versions.get((name, version)) or _VersionStatistics()
        return {
            "name": name,
            "version": str(version),
            "last_inference": found.last_ms,
            "inference_count": found.inferences,
            "execution_count": found.executions,
            "inference_stats": found.durations.described(*_DURATIONS),
            "response_stats": {},
            "batch_stats": [
                {
                    "batch_size": size,
                    **durations.described("compute_input", "compute_infer", "compute_output"),
                }
                for size, durations in sorted(found.batches.items())
            ],
            "memory_usage": [],
        }

"""The metrics of loading and warm-up, under TensorFlow's names.

`model_path` is the folder of a version, or of a SavedModel that a session was opened on.

Guarantees: thread-safe.

TF: tensorflow/cc/saved_model/loader.cc (load_attempt_count, load_latency),
tensorflow_serving/servables/tensorflow/saved_model_warmup_util.cc
"""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from server.metrics import Distribution, histogram_family
from server.models.serving_metrics import LATENCY_BOUNDS
from server.tensorflow_metrics import tensorflow_counter

_LOADER = ":tensorflow:cc:saved_model:"
_SERVING = ":tensorflow:serving:"
_WARMUP_LABELS = ("model_path", "status")


class LoadMetrics(Collector):
    """A collector for a CollectorRegistry."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards all fields below
        self._attempts: collections.Counter[tuple[str, ...]] = collections.Counter()
        self._latencies: collections.Counter[tuple[str, ...]] = collections.Counter()
        self._warmup_records: collections.Counter[tuple[str, ...]] = collections.Counter()
        self._warmup_latencies: dict[tuple[str, ...], Distribution] = {}

    @contextlib.contextmanager
    def load(self, folder: Path) -> Iterator[None]:
        """Count the load that is made in the `with` block, and its time if it succeeds."""
        started = time.perf_counter()
        try:
            yield
        except BaseException:
            with self._lock:
                self._attempts[str(folder), "fail"] += 1
            raise
        with self._lock:
            self._attempts[str(folder), "success"] += 1
            self._latencies[(str(folder),)] += int((time.perf_counter() - started) * 1e6)

    def warmed_up(self, folder: Path, status: str, seconds: float, records: int) -> None:
        """Record that a file of recorded requests was read to its end, or to a damaged record.

        `status` is "OK", or code and message as in "DATA_LOSS: corrupted record at 0".
        """
        key = (str(folder), status)
        with self._lock:
            self._warmup_records[key] += records
            latency = self._warmup_latencies.get(key)
            if latency is None:
                latency = self._warmup_latencies[key] = Distribution(LATENCY_BOUNDS)
            latency.add(seconds * 1e6)

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        with self._lock:
            yield tensorflow_counter(
                f"{_LOADER}load_attempt_count", ("model_path", "status"), self._attempts
            )
            yield tensorflow_counter(f"{_LOADER}load_latency", ("model_path",), self._latencies)
            yield tensorflow_counter(
                f"{_SERVING}model_warmup_records_read", _WARMUP_LABELS, self._warmup_records
            )
            name = f"{_SERVING}model_warmup_latency"
            yield histogram_family(name, name, _WARMUP_LABELS, self._warmup_latencies)

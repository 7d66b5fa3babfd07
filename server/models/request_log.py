"""Write a share of the requests on models to TFRecord files of PredictionLog.

Guarantees: a request waits for nothing but a random number and a queue; messages are made and
written by one thread. What does not fit into the queue is left out and counted. The messages of a
file can be replayed by `warmup`, whose limit of records is that of a file.

TF: tensorflow_serving/core/request_logger.cc; TensorFlow Serving itself has no collector that
writes files
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import os
import random
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

import protos as pb
from runtime.api import tensor_to_proto, tf_record_bytes
from runtime.errors import Code, OpError, as_op_error, system_error
from server.models.example_signatures import INPUTS, OUTPUTS, classifications, regressions
from server.models.warmup import MAX_RECORDS
from server.settings import RequestLogSettings
from server.tensorflow_metrics import tensorflow_counter

_log = logging.getLogger(__name__)

MAX_WAITING = 1000  # requests
MAX_WAITING_BYTES = 64 << 20  # of the arrays of waiting requests
MAX_FILE_BYTES = 256 << 20  # a longer file is followed by another one
_BY_ELEMENT = 64  # bytes of an element of an object array, as an estimate


@dataclasses.dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request: `api` is Predict, Classify, Regress or SessionRun; arrays by alias.

    Those of a SessionRun are by the names of tensors if `signature` is None; it alone has targets.
    """

    api: str
    model: str
    version: int
    signature: str | None
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]
    targets: Sequence[str] = ()

    @property
    def size(self) -> int:
        """The number of bytes of the arrays, as an estimate."""
        arrays = (*self.inputs.values(), *self.outputs.values())
        return sum(
            array.size * _BY_ELEMENT if array.dtype == object else array.nbytes for array in arrays
        )


class RequestLog(Collector):
    """The logged requests of one server; `close` writes what waits.

    `settings_of` returns the settings of a model, or None if its requests are not logged.
    """

    def __init__(self, settings_of: Callable[[str], RequestLogSettings | None]) -> None:
        self._settings_of = settings_of
        # Guards the attributes below, and is notified when a request waits or the log is closed.
        self._changed = threading.Condition()
        self._waiting: collections.deque[tuple[RequestLogSettings, LoggedRequest]] = (
            collections.deque()
        )
        self._waiting_bytes = 0
        self._counts: collections.Counter[tuple[str, ...]] = collections.Counter()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._files: dict[tuple[str, str], _File] = {}  # only the thread uses them

    def samples(self, model: str) -> bool:
        """Return whether a request on a model, which has succeeded, is to be added."""
        settings = self._settings_of(model)
        return settings is not None and random.random() < settings.sampling_rate

    def add(self, request: LoggedRequest) -> None:
        """Log a request; its arrays must not change any more."""
        settings = self._settings_of(request.model)
        if settings is None:
            return
        size = request.size
        with self._changed:
            is_full = (
                len(self._waiting) >= MAX_WAITING or self._waiting_bytes + size > MAX_WAITING_BYTES
            )
            if is_full or self._is_closed:
                self._counts[request.model, Code.RESOURCE_EXHAUSTED.name] += 1
                return
            self._waiting.append((settings, request))
            self._waiting_bytes += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="request_log", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Write what waits, and end the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def collect(self) -> Iterator[Metric]:
        """Yield the number of logged requests by status."""
        with self._changed:
            counts: dict[tuple[str, ...], int] = dict(self._counts)
        yield tensorflow_counter(
            ":tensorflow:serving:request_log_count", ("model_name", "status_code"), counts
        )

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    break
                settings, request = self._waiting.popleft()
                self._waiting_bytes -= request.size
            code = self._write(settings, request)
            with self._changed:
                self._counts[request.model, code.name] += 1
        for file in self._files.values():
            file.close()

    def _write(self, settings: RequestLogSettings, request: LoggedRequest) -> Code:
        key = (settings.filename_prefix, request.model)
        try:
            record = prediction_log(request, settings).SerializeToString()
            file = self._files.setdefault(key, _File(*key))
            file.write(tf_record_bytes([record]))
        except OSError as error:
            return self._failed(request, system_error(error, str(error.filename or key[0])))
        except Exception as error:  # the thread must go on
            return self._failed(request, as_op_error(error))
        return Code.OK

    def _failed(self, request: LoggedRequest, error: OpError) -> Code:
        with self._changed:
            is_first = not self._counts[request.model, error.code.name]
        if is_first:  # the others are counted
            _log.error("A request on model %s is not logged: %s", request.model, error.message)
        return error.code


class _File:
    """The files of one model, one after the other."""

    def __init__(self, prefix: str, model: str) -> None:
        self._prefix = prefix
        self._model = urllib.parse.quote(model, safe="")
        self._file: IO[bytes] | None = None
        self._records = 0
        self._bytes = 0
        self._number = 0

    def write(self, record: bytes) -> None:
        """Append a record, which is in the file when the method returns."""
        if self._records >= MAX_RECORDS or self._bytes >= MAX_FILE_BYTES:
            self.close()
        if self._file is None:
            instant = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            name = f"{self._prefix}-{self._model}-{instant}-{os.getpid()}-{self._number}"
            self._number += 1
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            self._file = open(name, "ab", buffering=0)  # noqa: SIM115 - close() closes it
            self._records = self._bytes = 0
            _log.info("Logging requests on model %s to %s", self._model, name)
        self._file.write(record)
        self._records += 1
        self._bytes += len(record)

    def close(self) -> None:
        """Close the file; the next record begins another one."""
        if self._file is not None:
            self._file.close()
            self._file = None


def prediction_log(
    request: LoggedRequest, settings: RequestLogSettings
) -> pb.serving.PredictionLog:
    """Return the message of a request."""
    log = pb.serving.PredictionLog()
    metadata = log.log_metadata
    metadata.sampling_config.sampling_rate = settings.sampling_rate
    spec = metadata.model_spec
    spec.name, spec.version.value = request.model, request.version
    if request.signature is not None:
        spec.signature_name = request.signature
    _FILL[request.api](log, request)
    return log


def _fill_predict(log: pb.serving.PredictionLog, request: LoggedRequest) -> None:
    sent, answered = log.predict_log.request, log.predict_log.response
    for message in (sent, answered):
        message.model_spec.CopyFrom(log.log_metadata.model_spec)
    for alias, array in request.inputs.items():
        sent.inputs[alias].CopyFrom(tensor_to_proto(array))
    sent.output_filter.extend(request.outputs)
    for alias, array in request.outputs.items():
        answered.outputs[alias].CopyFrom(tensor_to_proto(array))


def _fill_classify(log: pb.serving.PredictionLog, request: LoggedRequest) -> None:
    sent, answered = log.classify_log.request, log.classify_log.response
    examples = _fill_examples(sent, request)
    results = classifications(dict(request.outputs), examples)
    for labels, scores in zip(results.labels, results.scores, strict=True):
        classes = answered.result.classifications.add()
        for label, score in zip(labels, scores, strict=True):
            classes.classes.add(label=label.decode(errors="replace"), score=float(score))


def _fill_regress(log: pb.serving.PredictionLog, request: LoggedRequest) -> None:
    sent, answered = log.regress_log.request, log.regress_log.response
    examples = _fill_examples(sent, request)
    for value in regressions(request.outputs[OUTPUTS], examples):
        answered.result.regressions.add(value=float(value))


def _fill_session_run(log: pb.serving.PredictionLog, request: LoggedRequest) -> None:
    sent, answered = log.session_run_log.request, log.session_run_log.response
    for message in (sent, answered):
        message.model_spec.CopyFrom(log.log_metadata.model_spec)
    for name, array in request.inputs.items():
        tensor_to_proto(array, into=sent.feed.add(name=name).tensor)
    sent.fetch.extend(request.outputs)
    sent.target.extend(request.targets)
    sent.tensor_name_is_alias = request.signature is not None
    for name, array in request.outputs.items():
        tensor_to_proto(array, into=answered.tensor.add(name=name).tensor)


def _fill_examples(
    sent: pb.serving.ClassificationRequest | pb.serving.RegressionRequest, request: LoggedRequest
) -> int:
    """Copy the examples into a request, and return their number."""
    sent.model_spec.name = request.model
    sent.model_spec.version.value = request.version
    sent.model_spec.signature_name = request.signature or ""
    examples = request.inputs[INPUTS]
    for example in examples:
        sent.input.example_list.examples.add().ParseFromString(example)
    return len(examples)


_FILL: Mapping[str, Callable[[pb.serving.PredictionLog, LoggedRequest], None]] = {
    "Predict": _fill_predict,
    "Classify": _fill_classify,
    "Regress": _fill_regress,
    "SessionRun": _fill_session_run,
}

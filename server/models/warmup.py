"""Replay a model's recorded requests before it serves, so that no client waits for compiling.

The requests are in `assets.extra/tf_serving_warmup_requests`, a TFRecord file of PredictionLog
messages.

TF: tensorflow_serving/servables/tensorflow/saved_model_warmup{,_util}.cc
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.api import RunRequest, tensor_from_proto, tf_records
from runtime.errors import Code, DataLossError, InvalidArgumentError, UnimplementedError
from server.codec.serving.proto_messages import input_examples
from server.codec.serving.requests import DEFAULT_SIGNATURE
from server.models.example_signatures import (
    INPUTS,
    classify_outputs,
    find_example_signature,
    regress_outputs,
)
from server.models.load_metrics import LoadMetrics
from server.models.model_version import ModelVersion
from server.models.signature import CLASSIFY_METHOD, REGRESS_METHOD, Signature

_log = logging.getLogger(__name__)

REQUESTS_FILE = Path("assets.extra", "tf_serving_warmup_requests")
MAX_RECORDS = 1000
_IN_CALLING_THREAD = pb.RunOptions(inter_op_thread_pool=-1)


def warm_up(
    version: ModelVersion,
    folder: Path,
    seconds: float = math.inf,
    iterations: int = 1,
    metrics: LoadMetrics | None = None,
) -> int:
    """Run every recorded request `iterations` times, in the calling thread; return their number.

    The first of each signature and shape also runs with every number of rows that batches of the
    signature are padded to, so that no client is the first with that size.

    The number is 0 if there is no file. `metrics` records nothing if a step fails.

    Raises DataLossError if the file is damaged, InvalidArgumentError if a record is no
    PredictionLog or there are too many records, UnimplementedError if a record has an unsupported
    type, DeadlineExceededError if the requests take more than `seconds` altogether, and the errors
    of steps. An error here makes the load fail.
    """
    path = folder / REQUESTS_FILE
    if not path.is_file():
        return 0
    started = time.monotonic()
    deadline = started + seconds
    warmup = _Warmup(version, deadline, iterations)
    records = (record for _, record in tf_records(str(path), ""))
    count = 0

    def ended(status: str) -> None:
        if metrics is not None:
            metrics.warmed_up(folder, status, time.monotonic() - started, count)

    while True:
        try:
            record = next(records, None)
        except DataLossError as error:
            ended(f"{error.code.name}: {error.message}")
            raise
        if record is None:
            break
        count += 1
        if count > MAX_RECORDS:
            raise InvalidArgumentError(
                f"Number of warmup records exceeds the maximum ({MAX_RECORDS}) at {path}"
            )
        try:
            log = pb.serving.PredictionLog.FromString(record)
        except DecodeError as error:
            raise InvalidArgumentError(
                f"Failed to parse warmup record {count} from {path}: {error}"
            ) from error
        for _ in range(iterations):
            _replay(warmup, log)
    ended(Code.OK.name)
    times = "" if iterations == 1 else f" {iterations} times"
    _log.info("Replayed %d requests%s from %s", count, times, path)
    return count


@dataclasses.dataclass(frozen=True, slots=True)
class _Warmup:
    """The version whose requests are replayed, and the instant by which all must have ended.

    `padded` are the signatures, fetches and shapes that ran with every size of a padded batch.
    """

    version: ModelVersion
    deadline: float
    iterations: int
    padded: set[Hashable] = dataclasses.field(default_factory=set)


def _replay(warmup: _Warmup, log: pb.serving.PredictionLog) -> None:
    kind = log.WhichOneof("log_type")
    replay = _REPLAYS.get(kind or "")
    if replay is None:
        raise UnimplementedError(f"Unsupported log_type for warmup: {kind}")
    replay(warmup, getattr(log, kind or "").request)


def _replay_predict(warmup: _Warmup, request: pb.serving.PredictRequest) -> None:
    signature = warmup.version.signature(request.model_spec.signature_name or DEFAULT_SIGNATURE)
    tensors = {alias: tensor_from_proto(proto) for alias, proto in request.inputs.items()}
    signature.check_inputs(tensors.keys())
    aliases = tuple(request.output_filter) or signature.output_aliases
    signature.check_outputs(aliases)
    _run(warmup, signature, tensors, aliases)


def _replay_classify(warmup: _Warmup, request: pb.serving.ClassificationRequest) -> None:
    name = request.model_spec.signature_name or DEFAULT_SIGNATURE
    signature = find_example_signature(warmup.version, name)
    outputs = classify_outputs(signature)
    _run(warmup, signature, {INPUTS: input_examples(request.input)}, outputs)


def _replay_regress(warmup: _Warmup, request: pb.serving.RegressionRequest) -> None:
    name = request.model_spec.signature_name or DEFAULT_SIGNATURE
    signature = find_example_signature(warmup.version, name)
    outputs = regress_outputs(signature)
    _run(warmup, signature, {INPUTS: input_examples(request.input)}, outputs)


def _replay_multi_inference(warmup: _Warmup, request: pb.serving.MultiInferenceRequest) -> None:
    """Run the tasks as classifications and regressions.

    TF: tensorflow_serving/servables/tensorflow/multi_inference.cc
    """
    examples = {INPUTS: input_examples(request.input)}
    replayed: set[str] = set()
    for task in request.tasks:
        name = task.model_spec.signature_name or DEFAULT_SIGNATURE
        if name in replayed:
            raise InvalidArgumentError(f"Duplicate evaluation of signature: {name}")
        replayed.add(name)
        outputs = _MULTI_INFERENCE.get(task.method_name)
        if outputs is None:
            raise UnimplementedError(f"Unsupported signature method_name: {task.method_name}")
        signature = find_example_signature(warmup.version, name)
        _run(warmup, signature, examples, outputs(signature))


_MULTI_INFERENCE: dict[str, Callable[[Signature], Sequence[str]]] = {
    CLASSIFY_METHOD: classify_outputs,
    REGRESS_METHOD: regress_outputs,
}


def _replay_session_run(warmup: _Warmup, request: pb.serving.SessionRunRequest) -> None:
    feeds = {feed.name: tensor_from_proto(feed.tensor) for feed in request.feed}
    fetches = list(request.fetch)
    if request.tensor_name_is_alias:
        name = request.model_spec.signature_name or DEFAULT_SIGNATURE
        signature = warmup.version.signature(name)
        signature.check_inputs(feeds.keys())
        signature.check_outputs(fetches)
        feeds = {signature.feed_names[alias]: array for alias, array in feeds.items()}
        fetches = [signature.fetch_names[alias] for alias in fetches]
    _run_step(warmup, feeds, fetches, request.target)


_REPLAYS: dict[str, Callable[[_Warmup, Any], None]] = {
    "predict_log": _replay_predict,
    "classify_log": _replay_classify,
    "regress_log": _replay_regress,
    "multi_inference_log": _replay_multi_inference,
    "session_run_log": _replay_session_run,
}


def _run(
    warmup: _Warmup,
    signature: Signature,
    tensors: dict[str, np.ndarray],
    aliases: Sequence[str],
) -> None:
    feeds = {signature.feed_names[alias]: array for alias, array in tensors.items()}
    fetches = [signature.fetch_names[alias] for alias in aliases]
    _run_step(warmup, feeds, fetches, ())
    batches = warmup.version.batches.get(signature.name)
    if batches is None or not all(array.ndim and array.size for array in feeds.values()):
        return
    key = (signature.name, *fetches, *((name, each.shape[1:]) for name, each in feeds.items()))
    if key in warmup.padded:
        return
    warmup.padded.add(key)
    # The first batch of a size, not of one request, pays for what is compiled for that size.
    for size in batches.padded_sizes * warmup.iterations:
        rows = {name: each[np.arange(size) % len(each)] for name, each in feeds.items()}
        _run_step(warmup, rows, fetches, ())


def _run_step(
    warmup: _Warmup, feeds: dict[str, Any], fetches: Sequence[str], targets: Sequence[str]
) -> None:
    request = RunRequest(
        feeds, list(fetches), list(targets), _IN_CALLING_THREAD, deadline=warmup.deadline
    )
    warmup.version.session.run_async(request).result()

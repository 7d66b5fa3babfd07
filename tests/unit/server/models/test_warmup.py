from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import numpy as np
import pytest

import protos as pb
from runtime.api import SessionOptions, new_session
from runtime.foundation.errors import (
    DataLossError,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from runtime.framework.dtypes import DataType
from runtime.framework.io.masked_crc32c import crc32c, mask
from runtime.framework.tensor_codec import tensor_to_proto
from server.models.load_metrics import LoadMetrics
from server.models.model_version import ModelVersion
from server.models.warmup import MAX_RECORDS, REQUESTS_FILE, warm_up
from server.steps.batching.batch_metrics import BatchMetrics
from server.steps.batching.batch_scheduler import BatchScheduler
from server.steps.batching.parameters import BatchParameters
from server.steps.batching.signature_batches import BatchedSignature, SignatureBatches
from tests.integration.rest_server import endless_graph
from tests.unit.server.models.fakes import FakeBundle, half_plus_two_bundle, signature_def


def record(content: bytes) -> bytes:
    """One record of a TFRecord file."""

    def crc(part: bytes) -> bytes:
        return struct.pack("<I", mask(crc32c(part)))

    length = struct.pack("<Q", len(content))
    return length + crc(length) + content + crc(content)


def write(folder: Path, *contents: bytes) -> Path:
    path = folder / REQUESTS_FILE
    path.parent.mkdir()
    path.write_bytes(b"".join(map(record, contents)))
    return path


def predict_log(signature: str = "", *outputs: str) -> bytes:
    log = pb.serving.PredictionLog()
    request = log.predict_log.request
    request.model_spec.signature_name = signature
    request.inputs["x"].CopyFrom(tensor_to_proto(np.ones(2, np.float32)))
    request.output_filter.extend(outputs)
    return log.SerializeToString()


def example_log(kind: str, signature: str) -> bytes:
    log = pb.serving.PredictionLog()
    request = getattr(log, kind).request
    request.model_spec.signature_name = signature
    example = request.input.example_list.examples.add()
    example.features.feature["x"].float_list.value.append(1.0)
    return log.SerializeToString()


def session_run_log() -> bytes:
    log = pb.serving.PredictionLog()
    request = log.session_run_log.request
    feed = request.feed.add(name="in_x:0")
    feed.tensor.CopyFrom(tensor_to_proto(np.ones(1, np.float32)))
    request.fetch.append("out_y:0")
    return log.SerializeToString()


def test_every_kind_of_request_is_replayed(tmp_path: Path) -> None:
    bundle = half_plus_two_bundle()
    write(
        tmp_path,
        predict_log(),
        example_log("classify_log", "classify_x_to_y"),
        example_log("regress_log", "regress_x_to_y"),
        session_run_log(),
    )
    assert warm_up(ModelVersion("m", 1, bundle), tmp_path) == 4
    assert [request.fetches for request in bundle.session.requests] == [
        ["out_y:0"],
        ["out_scores:0"],
        ["out_outputs:0"],
        ["out_y:0"],
    ]


def test_the_names_of_a_session_run_may_be_aliases(tmp_path: Path) -> None:
    log = pb.serving.PredictionLog.FromString(session_run_log())
    request = log.session_run_log.request
    request.feed[0].name, request.fetch[0], request.tensor_name_is_alias = "x", "y", True
    bundle = half_plus_two_bundle()
    write(tmp_path, log.SerializeToString())
    assert warm_up(ModelVersion("m", 1, bundle), tmp_path) == 1
    (ran,) = bundle.session.requests
    assert (list(ran.feeds), ran.fetches) == (["in_x:0"], ["out_y:0"])


def test_requests_run_with_each_size_of_a_padded_batch(tmp_path: Path) -> None:
    bundle = half_plus_two_bundle()
    version = ModelVersion("m", 1, bundle)
    parameters = BatchParameters(max_batch_size=4, allowed_batch_sizes=(2, 4))
    signature = BatchedSignature("m", 1, "serving_default", {"in_x:0": (-1,)})
    scheduler = BatchScheduler(BatchMetrics())
    version.set_batches(
        {"serving_default": SignatureBatches(scheduler, signature, parameters, None)}
    )
    write(tmp_path, predict_log(), predict_log())
    assert warm_up(version, tmp_path) == 2
    sizes = [len(request.feeds["in_x:0"]) for request in bundle.session.requests]
    assert sizes == [2, 2, 4, 2]
    assert {tuple(request.fetches) for request in bundle.session.requests} == {("out_y:0",)}


def test_a_model_without_requests_needs_none(tmp_path: Path) -> None:
    assert warm_up(ModelVersion("m", 1, half_plus_two_bundle()), tmp_path) == 0


@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        (b"\xff", InvalidArgumentError, "Failed to parse warmup record 1"),
        (
            pb.serving.PredictionLog().SerializeToString(),
            UnimplementedError,
            "Unsupported log_type",
        ),
        (predict_log("none"), InvalidArgumentError, 'name: "none" not found'),
        (predict_log("", "z"), InvalidArgumentError, r"signature: z Outputs .* the set \{y\}"),
    ],
)
def test_bad_requests_fail_the_load(
    tmp_path: Path, content: bytes, error: type[OpError], text: str
) -> None:
    write(tmp_path, content)
    with pytest.raises(error, match=text):
        warm_up(ModelVersion("m", 1, half_plus_two_bundle()), tmp_path)


def test_requests_that_never_end_fail_the_load(tmp_path: Path) -> None:
    session = new_session(SessionOptions())
    session.create(endless_graph())
    meta_graph = pb.MetaGraphDef()
    signature = signature_def({"x": DataType.FLOAT}, {"y": DataType.FLOAT})
    signature.inputs["x"].name, signature.outputs["y"].name = "start:0", "loop:0"
    meta_graph.signature_def["serving_default"].CopyFrom(signature)
    write(tmp_path, predict_log(), predict_log())
    with pytest.raises(DeadlineExceededError):
        warm_up(ModelVersion("m", 1, FakeBundle(session, meta_graph)), tmp_path, 0.01)
    session.close()


@pytest.mark.parametrize("damage", ["length", "checksum", "shape"])
def test_poisoned_records_fail_the_load(tmp_path: Path, damage: str) -> None:
    path = write(tmp_path, predict_log())
    contents = bytearray(path.read_bytes())
    if damage == "length":  # a record of 2^62 bytes, with a checksum that is right
        length = struct.pack("<Q", 1 << 62)
        contents[:12] = length + struct.pack("<I", mask(crc32c(length)))
    elif damage == "checksum":
        contents[-1] ^= 1
    else:  # one value that claims to fill 2^40 elements
        log = pb.serving.PredictionLog.FromString(predict_log())
        log.predict_log.request.inputs["x"].tensor_shape.dim[0].size = 1 << 40
        contents = bytearray(record(log.SerializeToString()))
    path.write_bytes(contents)
    with pytest.raises(OpError) as caught:
        warm_up(ModelVersion("m", 1, half_plus_two_bundle()), tmp_path)
    assert type(caught.value) in (DataLossError, ResourceExhaustedError, InvalidArgumentError)


def test_too_many_requests(tmp_path: Path) -> None:
    write(tmp_path, *[predict_log()] * (MAX_RECORDS + 1))
    with pytest.raises(InvalidArgumentError, match="exceeds the maximum"):
        warm_up(ModelVersion("m", 1, half_plus_two_bundle()), tmp_path)


def test_a_damaged_file_fails_the_load(tmp_path: Path) -> None:
    path = write(tmp_path, predict_log(), predict_log())
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataLossError, match="truncated record at"):
        warm_up(ModelVersion("m", 1, half_plus_two_bundle()), tmp_path)


def recorded(folder: Path) -> dict[str, float]:
    """What the metrics say after a warm-up: the number of records by status."""
    metrics = LoadMetrics()
    with contextlib.suppress(OpError):
        warm_up(ModelVersion("m", 1, half_plus_two_bundle()), folder, metrics=metrics)
    (family,) = (each for each in metrics.collect() if each.name.endswith("records_read"))
    return {sample.labels["status"]: sample.value for sample in family.samples}


def test_a_warm_up_is_measured_unless_a_step_fails(tmp_path: Path) -> None:
    assert recorded(tmp_path) == {}
    path = write(tmp_path, predict_log(), predict_log())
    assert recorded(tmp_path) == {"OK": 2}
    path.write_bytes(path.read_bytes()[:-1])
    ((status, records),) = recorded(tmp_path).items()
    assert status.startswith("DATA_LOSS: truncated record at")
    assert records == 1
    path.write_bytes(record(predict_log()) + record(predict_log("none")))
    assert recorded(tmp_path) == {}


def multi_inference_log(*tasks: tuple[str, str]) -> bytes:
    log = pb.serving.PredictionLog()
    request = log.multi_inference_log.request
    for name, method in tasks:
        request.tasks.add(method_name=method).model_spec.signature_name = name
    example = request.input.example_list.examples.add()
    example.features.feature["x"].float_list.value.append(1.0)
    return log.SerializeToString()


CLASSIFY = ("classify_x_to_y", "tensorflow/serving/classify")
REGRESS = ("regress_x_to_y", "tensorflow/serving/regress")


def test_the_tasks_of_a_multi_inference_run_each_as_often_as_asked(tmp_path: Path) -> None:
    bundle = half_plus_two_bundle()
    write(tmp_path, multi_inference_log(CLASSIFY, REGRESS))
    assert warm_up(ModelVersion("m", 1, bundle), tmp_path, iterations=2) == 1
    fetched = [request.fetches for request in bundle.session.requests]
    assert fetched == [["out_scores:0"], ["out_outputs:0"]] * 2


@pytest.mark.parametrize(
    ("tasks", "error", "text"),
    [
        ((REGRESS, REGRESS), InvalidArgumentError, "Duplicate evaluation of signature: regress_x"),
        ((("r", REGRESS[1]),), InvalidArgumentError, "No signature was found with the name: r"),
        (((REGRESS[0], "p"),), UnimplementedError, "Unsupported signature method_name: p"),
    ],
)
def test_wrong_tasks_of_a_multi_inference(
    tmp_path: Path, tasks: tuple[tuple[str, str], ...], error: type[OpError], text: str
) -> None:
    write(tmp_path, multi_inference_log(*tasks))
    with pytest.raises(error, match=text):
        warm_up(ModelVersion("m", 1, half_plus_two_bundle()), tmp_path)

"""Requests on models in files."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import numpy as np
import pytest

import protos as pb
from runtime.framework.io.record_files import tf_records
from runtime.framework.tensor_codec import tensor_from_proto
from server.models import request_log
from server.models.request_log import LoggedRequest, RequestLog
from server.settings import RequestLogSettings

X = np.ones(2, np.float32)
EXAMPLE = pb.Example()
EXAMPLE.features.feature["x"].float_list.value.append(3.0)
EXAMPLES = np.array([EXAMPLE.SerializeToString()], object)


def predict(model: str = "m", x: np.ndarray = X) -> LoggedRequest:
    return LoggedRequest("Predict", model, 7, "serving_default", {"x": x}, {"y": X})


def log_to(folder: Path, rate: float = 1) -> RequestLog:
    settings = RequestLogSettings(filename_prefix=str(folder / "r"), sampling_rate=rate)
    return RequestLog({"m": settings, "a/b": settings}.get)


def logs_in(folder: Path) -> list[pb.serving.PredictionLog]:
    return [
        pb.serving.PredictionLog.FromString(record)
        for file in sorted(folder.glob("r-*"))
        for _, record in tf_records(str(file), "")
    ]


def counts(log: RequestLog) -> dict[tuple[str, str], float]:
    (family,) = log.collect()
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}  # type: ignore[misc] # two labels


def test_requests_are_written_whole_and_counted(tmp_path: Path) -> None:
    log = log_to(tmp_path)
    log.add(predict())
    log.add(
        LoggedRequest(
            "Classify", "m", 7, "c", {"inputs": EXAMPLES},
            {"classes": np.array([[b"cat"]], object), "scores": np.ones((1, 1), np.float32)},
        )
    )  # fmt: skip
    log.add(LoggedRequest("Regress", "m", 7, "r", {"inputs": EXAMPLES}, {"outputs": X[:1]}))
    log.close()
    first, second, third = logs_in(tmp_path)
    spec = first.log_metadata.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == ("m", 7, "serving_default")
    assert tensor_from_proto(first.predict_log.request.inputs["x"]).tolist() == [1, 1]
    assert list(first.predict_log.request.output_filter) == ["y"]
    (classes,) = second.classify_log.response.result.classifications
    assert (classes.classes[0].label, classes.classes[0].score) == ("cat", 1)
    assert second.classify_log.request.input.example_list.examples[0] == EXAMPLE
    assert third.regress_log.response.result.regressions[0].value == 1
    assert counts(log) == {("m", "OK"): 3}


@pytest.mark.parametrize("signature", [None, "serving_default"])
def test_a_session_run_is_written_with_its_names(tmp_path: Path, signature: str | None) -> None:
    log = log_to(tmp_path)
    log.add(LoggedRequest("SessionRun", "m", 7, signature, {"x": X}, {"y": 2 * X}, ("t",)))
    log.close()
    (written,) = logs_in(tmp_path)
    request, response = written.session_run_log.request, written.session_run_log.response
    assert (request.model_spec.name, request.model_spec.version.value) == ("m", 7)
    assert request.model_spec.signature_name == (signature or "")
    assert request.tensor_name_is_alias == (signature is not None)
    assert [(each.name, tensor_from_proto(each.tensor).tolist()) for each in request.feed] == [
        ("x", [1, 1])
    ]
    assert (list(request.fetch), list(request.target)) == (["y"], ["t"])
    assert [(each.name, tensor_from_proto(each.tensor).tolist()) for each in response.tensor] == [
        ("y", [2, 2])
    ]


def test_the_share_of_the_requests() -> None:
    log = log_to(Path("/nowhere"), rate=0.25)
    share = sum(log.samples("m") for _ in range(4000)) / 4000
    assert 0.15 < share < 0.35
    assert not log.samples("other")


def test_a_name_of_a_model_is_no_path(tmp_path: Path) -> None:
    log = log_to(tmp_path)
    log.add(predict("a/b"))
    log.close()
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("r-a%2Fb-")


def test_a_full_file_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "MAX_RECORDS", 2)
    log = log_to(tmp_path)
    for _ in range(5):
        log.add(predict())
    log.close()
    assert len(list(tmp_path.iterdir())) == 3
    assert len(logs_in(tmp_path)) == 5


@pytest.mark.parametrize(("name", "value"), [("MAX_WAITING", 2), ("MAX_WAITING_BYTES", 40)])
def test_what_does_not_fit_into_the_queue_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    monkeypatch.setattr(request_log, name, value)
    may_write, writes = threading.Event(), threading.Event()
    write = RequestLog._write

    def slowly(self: RequestLog, *arguments: object) -> object:
        writes.set()
        assert may_write.wait(30)
        return write(self, *arguments)  # type: ignore[arg-type] # as they came

    monkeypatch.setattr(RequestLog, "_write", slowly)
    log = log_to(tmp_path)
    log.add(predict())
    assert writes.wait(30)  # the thread has taken the first from the queue
    for _ in range(4):
        log.add(predict())
    may_write.set()
    log.close()
    assert counts(log) == {("m", "OK"): 3, ("m", "RESOURCE_EXHAUSTED"): 2}


def test_a_folder_that_cannot_be_written_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    caplog.set_level(logging.ERROR)
    log = log_to(tmp_path / "file")
    for _ in range(3):
        log.add(predict())
    log.close()
    (status,) = counts(log)
    assert counts(log)[status] == 3
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("A request on model m is not logged: ")


def test_nothing_is_written_after_the_end(tmp_path: Path) -> None:
    log = log_to(tmp_path)
    log.close()
    log.add(predict())
    assert counts(log) == {("m", "RESOURCE_EXHAUSTED"): 1}

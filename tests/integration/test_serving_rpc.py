"""TensorFlow Serving's gRPC services of a whole server: answers, codes and messages."""

from __future__ import annotations

import asyncio
import pathlib
import threading
from typing import Any

import grpc
import numpy as np
import pytest

import protos as pb
from runtime.api import DataType, tensor_from_proto, tensor_to_proto
from runtime.errors import Code
from runtime.framework.io.record_files import tf_records
from server.rest.session_docs import half_plus_two_graph
from server.rpc import prediction_service
from server.rpc.grpc_server import GrpcServer
from tests.integration.access import bearer, write_keys
from tests.integration.rest_server import endless_graph
from tests.integration.rpc_server import (
    COUNTER_MODEL,
    HALF_PLUS_TWO_MODEL,
    PREDICTION,
    RpcServer,
    example_input,
    predict_request,
    with_rpc,
)

MODEL = "half_plus_two"
X = np.array([1, 2, 5], np.float32)
MODEL_SERVICE = "/tensorflow.serving.ModelService/"
INFER = "/inference.GRPCInferenceService/ModelInfer"
SESSION_RUN = "/tensorflow.serving.SessionService/SessionRun"
INVALID = grpc.StatusCode.INVALID_ARGUMENT


def test_predict_returns_typed_fields_and_the_effective_spec() -> None:
    async def scenario(server: RpcServer) -> None:
        request = predict_request(MODEL, x=X)
        answer = await server.call(PREDICTION + "Predict", request, pb.serving.PredictResponse)
        assert list(answer.outputs["y"].float_val) == [2.5, 3.0, 4.5]
        assert answer.outputs["y"].tensor_content == b""
        assert [dim.size for dim in answer.outputs["y"].tensor_shape.dim] == [3]
        assert answer.model_spec.name == MODEL
        assert answer.model_spec.version.value == 1
        assert answer.model_spec.signature_name == "serving_default"

    with_rpc(scenario)


def test_predict_returns_tensor_content_if_it_is_configured() -> None:
    async def scenario(server: RpcServer) -> None:
        request = predict_request(MODEL, x=X)
        answer = await server.call(PREDICTION + "Predict", request, pb.serving.PredictResponse)
        tensor = answer.outputs["y"]
        assert np.frombuffer(tensor.tensor_content, np.float32).tolist() == [2.5, 3.0, 4.5]
        assert not tensor.float_val

    with_rpc(scenario, grpc={"tensor_content": True})


def test_predict_reads_every_form_of_a_tensor() -> None:
    async def scenario(server: RpcServer) -> None:
        repeated = pb.serving.PredictRequest()
        repeated.model_spec.name = MODEL
        tensor = repeated.inputs["x"]
        tensor.dtype = DataType.FLOAT
        tensor.tensor_shape.dim.add(size=3)
        tensor.float_val.append(8)
        answer = await server.call(PREDICTION + "Predict", repeated, pb.serving.PredictResponse)
        assert list(answer.outputs["y"].float_val) == [6, 6, 6]

    with_rpc(scenario)


def test_predict_by_version_label_and_output_filter() -> None:
    model = HALF_PLUS_TWO_MODEL | {"version_labels": {"stable": 1}}

    async def scenario(server: RpcServer) -> None:
        path = PREDICTION + "Predict"
        request = predict_request(MODEL, x=X)
        request.output_filter.append("y")
        request.model_spec.version.value = 1
        by_version = await server.call(path, request, pb.serving.PredictResponse)
        request.model_spec.version_label = "stable"
        by_label = await server.call(path, request, pb.serving.PredictResponse)
        assert by_version == by_label and list(by_label.outputs) == ["y"]
        request.output_filter.append("y")
        await server.refused(path, request, INVALID, "duplicate output tensor alias: y")
        request.output_filter[1] = "z"
        await server.refused(
            path, request, INVALID,
            "output tensor alias not found in signature: z Outputs expected to be in the set {y}.",
        )  # fmt: skip

    with_rpc(scenario, models=[model])


def _spec(**fields: Any) -> pb.serving.PredictRequest:
    request = predict_request(MODEL, x=X)
    version = fields.pop("version", None)
    if version is not None:
        request.model_spec.version.value = version
    for name, value in fields.items():
        setattr(request.model_spec, name, value)
    return request


def test_predict_refuses_with_the_codes_and_texts_of_tensorflow_serving() -> None:
    async def scenario(server: RpcServer) -> None:
        not_found = grpc.StatusCode.NOT_FOUND
        wrong: list[tuple[pb.serving.PredictRequest, grpc.StatusCode, str]] = [
            (pb.serving.PredictRequest(), INVALID, "Missing ModelSpec"),
            (_spec(name=""), INVALID, "ModelSpec has no name specified."),
            (_spec(name="foo"), not_found, "Servable not found for request: Latest(foo)"),
            (_spec(version=9), not_found, f"Servable not found for request: Specific({MODEL}, 9)"),
            (_spec(version_label="x"), INVALID, "Unrecognized servable version label: x"),
            (
                _spec(signature_name="nope"),
                grpc.StatusCode.FAILED_PRECONDITION,
                'Serving signature key "nope" not found.',
            ),
            (
                predict_request(MODEL, z=X, a=X),
                INVALID,
                "input size does not match signature: 2!=1 len({a,z}) != len({x}). "
                "Sent extra: {a,z}. Missing but required: {x}.",
            ),
            (
                predict_request(MODEL, x=X.astype(np.int32)),
                INVALID,
                "Expects arg[0] to be float but int32 is provided",
            ),
        ]
        broken = predict_request(MODEL, x=X)
        broken.inputs["x"].tensor_content = b"123"
        wrong.append((broken, INVALID, "tensor parsing error: x"))
        for request, code, text in wrong:
            await server.refused(PREDICTION + "Predict", request, code, text)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await server.channel.unary_unary(PREDICTION + "Predict")(b"\xff", timeout=60)
        assert error.value.code() is INVALID
        assert "The request cannot be parsed" in (error.value.details() or "")

    with_rpc(scenario)


def test_a_tensor_that_claims_too_much_is_refused_before_it_is_made() -> None:
    async def scenario(server: RpcServer) -> None:
        request = predict_request(MODEL, x=X)
        request.inputs["x"].ClearField("tensor_content")
        request.inputs["x"].float_val.append(1)
        request.inputs["x"].tensor_shape.dim[0].size = 1 << 40
        code = grpc.StatusCode.RESOURCE_EXHAUSTED
        await server.refused(PREDICTION + "Predict", request, code, "bytes")

    with_rpc(scenario)


def _classification(signature: str = "classify_x_to_y", **kwargs: Any) -> Any:
    request = pb.serving.ClassificationRequest(input=example_input(20.0, 10.0), **kwargs)
    request.model_spec.name = MODEL
    request.model_spec.signature_name = signature
    return request


def test_classify_and_regress() -> None:
    async def scenario(server: RpcServer) -> None:
        classified = await server.call(
            PREDICTION + "Classify", _classification(), pb.serving.ClassificationResponse
        )
        scores = [[each.score for each in row.classes] for row in classified.result.classifications]
        assert scores == [[12.0], [7.0]]
        assert classified.model_spec.signature_name == "classify_x_to_y"
        assert classified.model_spec.version.value == 1
        request = pb.serving.RegressionRequest(input=example_input(80.0, 2.0))
        request.model_spec.name = MODEL
        request.model_spec.signature_name = "regress_x_to_y"
        regressed = await server.call(
            PREDICTION + "Regress", request, pb.serving.RegressionResponse
        )
        assert [each.value for each in regressed.result.regressions] == [42.0, 3.0]
        assert regressed.model_spec.version.value == 1

    with_rpc(scenario)


def test_the_context_of_examples_counts_for_each() -> None:
    async def scenario(server: RpcServer) -> None:
        request = pb.serving.RegressionRequest()
        request.model_spec.name = MODEL
        request.model_spec.signature_name = "regress_x_to_y"
        examples = request.input.example_list_with_context
        examples.context.features.feature["x"].float_list.value.append(6.0)
        examples.examples.add()
        examples.examples.add().features.feature["x"].float_list.value.append(2.0)
        answer = await server.call(PREDICTION + "Regress", request, pb.serving.RegressionResponse)
        assert [each.value for each in answer.result.regressions] == [5.0, 3.0]

    with_rpc(scenario)


def test_classify_and_regress_refuse_what_they_cannot_answer() -> None:
    async def scenario(server: RpcServer) -> None:
        path = PREDICTION + "Classify"
        missing = pb.serving.ClassificationRequest()
        await server.refused(path, missing, INVALID, "Missing ModelSpec")
        await server.refused(
            path, _classification("x"), INVALID, "No signature was found with the name: x"
        )
        empty = _classification()
        empty.ClearField("input")
        await server.refused(path, empty, INVALID, "Input is empty.")
        await server.refused(
            path, _classification("serving_default"), INVALID,
            "No classification inputs found in SignatureDef: serving_default",
        )  # fmt: skip
        regress = pb.serving.RegressionRequest(input=example_input(1.0))
        await server.refused(PREDICTION + "Regress", regress, INVALID, "Missing ModelSpec")

    with_rpc(scenario)


def _tasks(*tasks: tuple[str, str, str]) -> pb.serving.MultiInferenceRequest:
    request = pb.serving.MultiInferenceRequest(input=example_input(20.0, 10.0))
    for name, signature, method in tasks:
        task = request.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name, task.model_spec.signature_name = name, signature
    return request


CLASSIFY_TASK = (MODEL, "classify_x_to_y", "classify")
REGRESS_TASK = (MODEL, "regress_x_to_y", "regress")


def test_multi_inference_answers_all_tasks_by_one_step() -> None:
    async def scenario(server: RpcServer) -> None:
        steps = server.rest.services.inference.step_metrics
        before = steps.count("normal", Code.OK)
        answer = await server.call(
            PREDICTION + "MultiInference",
            _tasks(REGRESS_TASK, CLASSIFY_TASK),
            pb.serving.MultiInferenceResponse,
        )
        assert steps.count("normal", Code.OK) == before + 1
        regressed, classified = answer.results
        assert [each.value for each in regressed.regression_result.regressions] == [12.0, 7.0]
        rows = classified.classification_result.classifications
        assert [row.classes[0].score for row in rows] == [12.0, 7.0]
        assert [each.model_spec.signature_name for each in answer.results] == [
            "regress_x_to_y",
            "classify_x_to_y",
        ]
        assert {each.model_spec.version.value for each in answer.results} == {1}

    with_rpc(scenario)


_WRONG_TASKS: tuple[tuple[tuple[tuple[str, str, str], ...], grpc.StatusCode, str], ...] = (
    ((), INVALID, "ModelSpec has no name specified."),
    ((REGRESS_TASK, ("", "a", "classify")), INVALID, "Found ModelSpec with an empty model name."),
    (
        (REGRESS_TASK, ("b", "a", "classify")),
        INVALID,
        "All ModelSpecs in a MultiInferenceRequest must access the same model name.",
    ),
    ((REGRESS_TASK, REGRESS_TASK), INVALID, "Duplicate evaluation of signature: regress_x_to_y"),
    (((MODEL, "nope", "regress"),), INVALID, "Requested signature not found in model graph: nope"),
    (
        ((MODEL, "regress_x_to_y", "predict"),),
        grpc.StatusCode.UNIMPLEMENTED,
        "Unsupported signature method_name: tensorflow/serving/predict",
    ),
    (
        (("foo", "a", "regress"),),
        grpc.StatusCode.NOT_FOUND,
        "Servable not found for request: Latest(foo)",
    ),
)


def test_multi_inference_refuses() -> None:
    async def scenario(server: RpcServer) -> None:
        for tasks, code, text in _WRONG_TASKS:
            await server.refused(PREDICTION + "MultiInference", _tasks(*tasks), code, text)

    with_rpc(scenario)


def _metadata_request(*fields: str) -> pb.serving.GetModelMetadataRequest:
    request = pb.serving.GetModelMetadataRequest(metadata_field=fields)
    request.model_spec.name = MODEL
    return request


def test_get_model_metadata_has_tensorflows_names() -> None:
    async def scenario(server: RpcServer) -> None:
        path = PREDICTION + "GetModelMetadata"
        answer = await server.call(
            path, _metadata_request("signature_def"), pb.serving.GetModelMetadataResponse
        )
        packed = answer.metadata["signature_def"]
        assert packed.type_url == "type.googleapis.com/tensorflow.serving.SignatureDefMap"
        signatures = pb.serving.SignatureDefMap.FromString(packed.value).signature_def
        assert signatures["serving_default"].inputs["x"].name == "serving_default_x:0"
        assert answer.model_spec.name == MODEL and answer.model_spec.version.value == 1
        missing = pb.serving.GetModelMetadataRequest(metadata_field=["signature_def"])
        await server.refused(path, missing, INVALID, "Missing ModelSpec")
        await server.refused(
            path, _metadata_request(), INVALID,
            "GetModelMetadataRequest must specify at least one metadata_field",
        )  # fmt: skip
        await server.refused(
            path, _metadata_request("foo"), INVALID, "Metadata field foo is not supported"
        )

    with_rpc(scenario)


def test_get_model_status() -> None:
    async def scenario(server: RpcServer) -> None:
        path = MODEL_SERVICE + "GetModelStatus"
        request = pb.serving.GetModelStatusRequest()
        await server.refused(path, request, INVALID, "Missing ModelSpec")
        request.model_spec.name = MODEL
        answer = await server.call(path, request, pb.serving.GetModelStatusResponse)
        (status,) = answer.model_version_status
        assert (status.version, status.state, status.status.error_code) == (1, 30, 0)
        request.model_spec.version.value = 9
        code = grpc.StatusCode.NOT_FOUND
        await server.refused(path, request, code, f"Could not find version 9 of model {MODEL}")
        request = pb.serving.GetModelStatusRequest(model_spec=pb.serving.ModelSpec(name="foo"))
        await server.refused(path, request, code, "Could not find any versions of model foo")

    with_rpc(scenario)


def test_the_status_of_a_version_that_failed_has_the_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "1").mkdir()

    async def scenario(server: RpcServer) -> None:
        request = pb.serving.GetModelStatusRequest(model_spec=pb.serving.ModelSpec(name="empty"))
        answer = await server.call(
            MODEL_SERVICE + "GetModelStatus", request, pb.serving.GetModelStatusResponse
        )
        (status,) = answer.model_version_status
        assert status.state == pb.serving.ModelVersionStatus.END
        assert status.status.error_code == pb.NOT_FOUND and status.status.error_message

    with_rpc(
        scenario,
        models=[{"name": "empty", "base_path": str(tmp_path)}],
        model_loading={"max_retries": 0},
    )


def _session_run(model: str, *fetches: str, targets: tuple[str, ...] = (), **feeds: Any) -> Any:
    request = pb.serving.SessionRunRequest(fetch=fetches, target=targets)
    request.model_spec.name = model
    for name, array in feeds.items():
        request.feed.add(name=name, tensor=tensor_to_proto(array))
    return request


def test_session_run_by_tensor_names_and_by_aliases() -> None:
    async def scenario(server: RpcServer) -> None:
        request = _session_run(MODEL, "StatefulPartitionedCall_2:0", **{"serving_default_x:0": X})
        answer = await server.call(SESSION_RUN, request, pb.serving.SessionRunResponse)
        (tensor,) = answer.tensor
        assert tensor.name == "StatefulPartitionedCall_2:0"
        assert tensor_from_proto(tensor.tensor).tolist() == [2.5, 3.0, 4.5]
        assert answer.model_spec.version.value == 1
        request = _session_run(MODEL, "y", x=X)
        request.tensor_name_is_alias = True
        answer = await server.call(SESSION_RUN, request, pb.serving.SessionRunResponse)
        assert answer.tensor[0].name == "y"
        assert list(answer.tensor[0].tensor.float_val) == [2.5, 3.0, 4.5]

    with_rpc(scenario)


def test_session_runs_and_inferences_are_logged_with_the_predictions(
    tmp_path: pathlib.Path,
) -> None:
    log = {"filename_prefix": str(tmp_path / "log"), "sampling_rate": 1}

    async def scenario(server: RpcServer) -> None:
        request = _session_run(MODEL, "y", x=X)
        request.tensor_name_is_alias = True
        await server.call(SESSION_RUN, request, pb.serving.SessionRunResponse)
        await server.predict(MODEL, x=X)
        infer = pb.inference.ModelInferRequest(model_name=MODEL)
        tensor = infer.inputs.add(name="x", datatype="FP32", shape=[3])
        tensor.contents.fp32_contents.extend(X)
        await server.call(INFER, infer, pb.inference.ModelInferResponse)
        await server.refused(SESSION_RUN, _session_run(MODEL, "none:0"), INVALID, "none")

    with_rpc(scenario, models=[HALF_PLUS_TWO_MODEL | {"request_log": log}])
    (file,) = tmp_path.iterdir()
    found = [pb.serving.PredictionLog.FromString(record) for _, record in tf_records(str(file), "")]
    kinds = [each.WhichOneof("log_type") for each in found]
    assert kinds == ["session_run_log", "predict_log", "predict_log"]
    logged = found[0].session_run_log
    assert logged.request.tensor_name_is_alias
    assert tensor_from_proto(logged.response.tensor[0].tensor).tolist() == [2.5, 3.0, 4.5]


def test_session_run_refuses() -> None:
    async def scenario(server: RpcServer) -> None:
        code = grpc.StatusCode
        missing = pb.serving.SessionRunRequest()
        await server.refused(SESSION_RUN, missing, INVALID, "Missing ModelSpec")
        foo = _session_run("foo", "y:0")
        await server.refused(SESSION_RUN, foo, code.NOT_FOUND, "Latest(foo)")
        nothing = _session_run(MODEL)
        await server.refused(SESSION_RUN, nothing, INVALID, "Must specify at least one target")
        unknown = _session_run(MODEL, "nope:0")
        await server.refused(SESSION_RUN, unknown, INVALID, "nope")
        aliases = _session_run(MODEL, "z", x=X)
        aliases.tensor_name_is_alias = True
        await server.refused(
            SESSION_RUN, aliases, INVALID, "Signature serving_default has no output z; it has {y}"
        )
        twice = _session_run(MODEL, "y", x=X)
        twice.feed.add(name="x", tensor=tensor_to_proto(X))
        await server.refused(SESSION_RUN, twice, INVALID, "more than once")

    with_rpc(scenario)


def test_session_run_changes_what_serves_only_as_an_administrator() -> None:
    async def refused(server: RpcServer) -> None:
        await server.refused(
            SESSION_RUN,
            _session_run("counter", "incr_counter:0"),
            grpc.StatusCode.PERMISSION_DENIED,
            "The step may change the state in which model counter serves everybody. "
            "This server does not let its clients administer it: admin.enabled is false",
        )
        read = _session_run("counter", "get_counter:0")
        answer = await server.call(SESSION_RUN, read, pb.serving.SessionRunResponse)
        assert tensor_from_proto(answer.tensor[0].tensor) == 0

    async def allowed(server: RpcServer) -> None:
        request = _session_run("counter", "incr_counter:0")
        await server.call(SESSION_RUN, request, pb.serving.SessionRunResponse)
        request = predict_request("counter", "get_counter")
        answer = await server.call(PREDICTION + "Predict", request, pb.serving.PredictResponse)
        assert list(answer.outputs["output"].float_val) == [1.0]

    with_rpc(refused, models=[COUNTER_MODEL])
    with_rpc(allowed, models=[COUNTER_MODEL], admin={"enabled": True})


def test_large_tensors_both_ways() -> None:
    async def scenario(server: RpcServer) -> None:
        x = np.arange(1 << 20, dtype=np.float32)
        answer = await server.call(
            PREDICTION + "Predict", predict_request(MODEL, x=x), pb.serving.PredictResponse
        )
        y = tensor_from_proto(answer.outputs["y"])
        assert np.array_equal(y, x / 2 + 2)

    with_rpc(scenario)


def test_large_tensors_are_decoded_and_encoded_on_other_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: dict[str, list[bool]] = {}

    def watched(name: str) -> None:
        function = getattr(prediction_service, name)

        def watch(*arguments: Any) -> Any:
            here = threading.current_thread() is threading.main_thread()
            threads.setdefault(name, []).append(here)
            return function(*arguments)

        monkeypatch.setattr(prediction_service, name, watch)

    async def scenario(server: RpcServer) -> None:
        for size in (3, 1 << 18):
            x = np.zeros(size, np.float32)
            await server.bytes(PREDICTION + "Predict", predict_request(MODEL, x=x))
        assert threads == {"read_tensors": [True, False], "write_predict": [True, False]}

    watched("read_tensors")
    watched("write_predict")
    with_rpc(scenario)


def test_the_priority_reaches_the_step() -> None:
    async def scenario(server: RpcServer) -> None:
        request = predict_request(MODEL, x=X)
        path = PREDICTION + "Predict"
        await server.bytes(path, request, metadata=(("x-priority", "low"),))
        assert server.rest.services.inference.step_metrics.count("low", Code.OK) == 1
        await server.refused(path, request, INVALID, "urgent", metadata=(("x-priority", "urgent"),))

    with_rpc(scenario)


def _model(
    folder: pathlib.Path, graph: pb.GraphDef, x: str, y: str, default: float | None = None
) -> dict[str, str]:
    """A served model of a graph without variables; its signature has the input x and output y."""
    model = pb.SavedModel(saved_model_schema_version=1)
    meta_graph = model.meta_graphs.add(graph_def=graph)
    meta_graph.meta_info_def.tags.append("serve")
    signature = meta_graph.signature_def["serving_default"]
    signature.inputs["x"].name, signature.inputs["x"].dtype = x, pb.DT_FLOAT
    signature.outputs["y"].name, signature.outputs["y"].dtype = y, pb.DT_FLOAT
    if default is not None:
        tensor_to_proto(np.float32(default), None, signature.defaults["x"])
    (folder / "1").mkdir()
    (folder / "1" / "saved_model.pb").write_bytes(model.SerializeToString())
    return {"name": "made", "base_path": str(folder)}


def _endless_model(folder: pathlib.Path) -> dict[str, str]:
    return _model(folder, endless_graph(), "start:0", "loop:0")


def test_an_input_with_a_default_may_be_left_out(tmp_path: pathlib.Path) -> None:
    async def scenario(server: RpcServer) -> None:
        for _ in range(3):  # short steps too
            assert await server.predict("made") == {"y": 5.0}
            assert await server.predict("made", x=np.float32(2)) == {"y": 3.0}
        wrong = predict_request("made", z=X)
        await server.refused(PREDICTION + "Predict", wrong, INVALID, "Sent extra: {z}")

    with_rpc(scenario, models=[_model(tmp_path, half_plus_two_graph(), "x:0", "y:0", 6.0)])


async def _until_idle(server: RpcServer) -> None:
    """Wait until no kernel runs any more."""
    while any(pool["running"] for pool in (await server.rest.pools()).values()):
        await asyncio.sleep(0)


def test_a_deadline_ends_the_step(tmp_path: pathlib.Path) -> None:
    async def scenario(server: RpcServer) -> None:
        request = predict_request("made", x=np.float32(1))
        code = grpc.StatusCode.DEADLINE_EXCEEDED
        await server.refused(PREDICTION + "Predict", request, code, "", timeout=0.3)
        await asyncio.wait_for(_until_idle(server), 30)
        ended = server.rest.services.inference.step_metrics
        codes = (Code.DEADLINE_EXCEEDED, Code.CANCELLED)
        assert sum(ended.count("normal", code) for code in codes) == 1

    with_rpc(scenario, models=[_endless_model(tmp_path)])


def test_a_client_that_cancels_ends_the_step(tmp_path: pathlib.Path) -> None:
    async def scenario(server: RpcServer) -> None:
        request = predict_request("made", x=np.float32(1))
        call = asyncio.create_task(server.bytes(PREDICTION + "Predict", request))
        while not any(pool["running"] for pool in (await server.rest.pools()).values()):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait_for(_until_idle(server), 30)
        assert server.rest.services.inference.step_metrics.count("normal", Code.CANCELLED) == 1
        assert server.rest.services.lifecycle.in_flight == 0

    with_rpc(scenario, models=[_endless_model(tmp_path)])


def test_what_each_role_may_call(tmp_path: pathlib.Path) -> None:
    async def scenario(server: RpcServer) -> None:
        predict = predict_request(MODEL, x=X)
        status = pb.serving.GetModelStatusRequest(model_spec=predict.model_spec)
        run = _session_run(MODEL, "StatefulPartitionedCall_2:0", **{"serving_default_x:0": X})
        calls = {
            "predict": (PREDICTION + "Predict", predict),
            "multi_inference": (PREDICTION + "MultiInference", _tasks(REGRESS_TASK)),
            "metadata": (PREDICTION + "GetModelMetadata", _metadata_request("signature_def")),
            "status": (MODEL_SERVICE + "GetModelStatus", status),
            "run": (SESSION_RUN, run),
        }
        allowed: dict[str, set[str]] = {}
        for owner in ("alice", "bob", "reader", "root"):
            allowed[owner] = set()
            for name, (path, request) in calls.items():
                try:
                    await server.bytes(path, request, metadata=tuple(bearer(owner).items()))
                    allowed[owner].add(name)
                except grpc.aio.AioRpcError as error:
                    assert error.code() is grpc.StatusCode.PERMISSION_DENIED
        assert allowed == {
            "alice": set(calls),
            "bob": {"metadata", "status", "run"},
            "reader": {"metadata", "status"},
            "root": set(calls),
        }
        for path, request in calls.values():
            await server.refused(path, request, grpc.StatusCode.UNAUTHENTICATED, "requires an API")

    with_rpc(scenario, access={"keys_file": write_keys(tmp_path / "keys.yaml")})


def test_the_port_for_tensorflows_clients_has_only_the_master(tmp_path: pathlib.Path) -> None:
    async def scenario(server: RpcServer) -> None:
        services = server.rest.services
        second = GrpcServer(services)
        await second.start()
        assert second.tensorflow_port
        other = RpcServer(server.rest, second.tensorflow_port)
        request = predict_request(MODEL, x=X)
        await other.refused(PREDICTION + "Predict", request, grpc.StatusCode.UNIMPLEMENTED, "")
        master = await other.call(
            "/tensorflow.MasterService/ListDevices", pb.ListDevicesRequest(), pb.ListDevicesResponse
        )
        assert master.local_device
        await other.channel.close()
        await second.stop(0)

    with_rpc(
        scenario,
        grpc={"tensorflow_port": 0},
        access={"keys_file": write_keys(tmp_path / "keys.yaml")},
    )


def test_requests_are_counted_under_tensorflow_servings_names() -> None:
    async def scenario(server: RpcServer) -> None:
        await server.predict(MODEL, x=X)
        wrong = predict_request(MODEL, z=X)
        await server.refused(PREDICTION + "Predict", wrong, INVALID, "z")
        unknown = predict_request("made_up", x=X)
        code = grpc.StatusCode.NOT_FOUND
        await server.refused(PREDICTION + "Predict", unknown, code, "made_up")
        page = (await server.rest.client.get("/monitoring/prometheus/metrics")).text
        count = ":tensorflow:serving:request_count"
        assert f'{count}{{model_name="{MODEL}",status="OK"}} 1\n' in page
        assert f'{count}{{model_name="{MODEL}",status="INVALID_ARGUMENT"}} 1\n' in page
        assert f'{count}{{model_name="made_up",status="NOT_FOUND"}} 1\n' in page
        labels = f'model_name="{MODEL}",API="Predict",entrypoint="GRPC"'
        assert f":tensorflow:serving:request_latency_count{{{labels}}} 1\n" in page

    with_rpc(scenario)


def test_an_unknown_method_is_unimplemented() -> None:
    async def scenario(server: RpcServer) -> None:
        for path in (PREDICTION + "PredictStreamed", "/tensorflow.serving.Nope/Predict"):
            code = grpc.StatusCode.UNIMPLEMENTED
            await server.refused(path, pb.serving.PredictRequest(), code, "")

    with_rpc(scenario)


def test_a_server_that_drains_refuses_predictions() -> None:
    async def scenario(server: RpcServer) -> None:
        await server.predict(MODEL, x=X)
        await server.rest.services.lifecycle.drain(0)
        request = predict_request(MODEL, x=X)
        code = grpc.StatusCode.UNAVAILABLE
        await server.refused(PREDICTION + "Predict", request, code, "draining")

    with_rpc(scenario)


def test_callers_at_once_get_their_own_answers() -> None:
    async def scenario(server: RpcServer) -> None:
        values = [np.full(3, n, np.float32) for n in range(50)]
        answers = await asyncio.gather(*(server.predict(MODEL, x=value) for value in values))
        assert answers == [{"y": (value / 2 + 2).tolist()} for value in values]

    with_rpc(scenario)

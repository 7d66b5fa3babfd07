"""Call a server with the stubs of tensorflow-serving-api; record the requests that they send.

Every call has the answer that TensorFlow Serving's contract gives. It runs where TensorFlow and
tensorflow-serving-api (installed with --no-deps) are, against a server that serves
`examples/models` as the configuration says:

    runstep serve --config tests/integration/data/serving_calls.yaml
    python tools/check/serving_clients.py --target localhost:8500
    python tools/check/serving_clients.py --target localhost:8500 --record FILE

With `--record`, the requests and answers are written, for tests/integration/test_serving_calls.py,
which sends the same bytes without TensorFlow.
"""

from __future__ import annotations

import argparse
import base64
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
    session_service_pb2,
)

MODEL = "half_plus_two"
FOLDER = "examples/models"


class Call(NamedTuple):
    """One call: `answer` is what the response has as JSON, or the name of a code and a text."""

    name: str
    service: str
    method: str
    request: Any
    answer: dict[str, Any] | tuple[str, str]


def with_spec(request: Any, signature: str = "", model: str = MODEL, **fields: Any) -> Any:
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    if "version" in fields:
        request.model_spec.version.value = fields["version"]
    if "label" in fields:
        request.model_spec.version_label = fields["label"]
    return request


def predict(inputs: dict[str, Any], filter: tuple[str, ...] = (), **spec: Any) -> Any:
    request = with_spec(predict_pb2.PredictRequest(output_filter=filter), **spec)
    for alias, value in inputs.items():
        request.inputs[alias].CopyFrom(tf.make_tensor_proto(value))
    return request


def add_examples(request: Any, *values: float) -> Any:
    for value in values:
        example = request.input.example_list.examples.add()
        example.features.feature["x"].float_list.value.append(value)
    return request


def multi_inference(*tasks: tuple[str, str]) -> Any:
    request = add_examples(inference_pb2.MultiInferenceRequest(), 20.0, 10.0)
    for signature, method in tasks:
        task = request.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name, task.model_spec.signature_name = MODEL, signature
    return request


def session_run(fetch: str, feeds: dict[str, Any], **fields: Any) -> Any:
    request = with_spec(session_service_pb2.SessionRunRequest(fetch=[fetch], **fields))
    for name, value in feeds.items():
        request.feed.add(name=name).tensor.CopyFrom(tf.make_tensor_proto(value))
    return request


def reload(*models: str, root: str = FOLDER) -> Any:
    request = model_management_pb2.ReloadConfigRequest()
    request.config.model_config_list.SetInParent()
    for model in models:
        request.config.model_config_list.config.add(
            name=model, base_path=f"{root}/{model}", model_platform="tensorflow"
        )
    return request


def spec(signature: str = "serving_default", model: str = MODEL) -> dict[str, Any]:
    return {"name": model, "version": "1", "signature_name": signature}


def floats(*values: float) -> dict[str, Any]:
    shape = {"dim": [{"size": str(len(values))}]}
    return {"dtype": "DT_FLOAT", "tensor_shape": shape, "float_val": list(values)}


X = np.array([1.0, 2.0, 5.0], np.float32)
Y = floats(2.5, 3.0, 4.5)
PREDICTION, MODELS, SESSION = "PredictionService", "ModelService", "SessionService"
INVALID, NOT_FOUND = "INVALID_ARGUMENT", "NOT_FOUND"
REGRESSED = {"regressions": [{"value": 12.0}, {"value": 7.0}]}
CLASSIFIED = {
    "classifications": [{"classes": [{"label": "y", "score": value}]} for value in (12.0, 7.0)]
}
STATUS = {"version": "1", "state": "AVAILABLE", "status": {}}


def calls() -> list[Call]:
    return [*predictions(), *examples(), *models()]


def predictions() -> list[Call]:
    def call(name: str, request: Any, answer: Any) -> Call:
        return Call(name, PREDICTION, "Predict", request, answer)

    good = {"outputs": {"y": Y}, "model_spec": spec()}
    return [
        call("latest", predict({"x": X}), good),
        call("version", predict({"x": X}, version=1), good),
        call("label", predict({"x": X}, label="stable"), good),
        call("signature", predict({"x": X}, signature="serving_default"), good),
        call("output_filter", predict({"x": X}, ("y",)), good),
        call("list of Python floats", predict({"x": [1.0, 2.0, 5.0]}), good),
        call(
            "scalar",
            predict({"x": np.float32(2)}),
            {
                "outputs": {"y": {"dtype": "DT_FLOAT", "tensor_shape": {}, "float_val": [3.0]}},
                "model_spec": spec(),
            },
        ),
        call("no spec", predict_pb2.PredictRequest(), (INVALID, "Missing ModelSpec")),
        call("no name", predict({"x": X}, model=""), (INVALID, "ModelSpec has no name specified.")),
        call(
            "unknown model",
            predict({"x": X}, model="foo"),
            (NOT_FOUND, "Servable not found for request: Latest(foo)"),
        ),
        call(
            "unknown version",
            predict({"x": X}, version=9),
            (NOT_FOUND, f"Servable not found for request: Specific({MODEL}, 9)"),
        ),
        call(
            "unknown label",
            predict({"x": X}, label="nope"),
            (INVALID, "Unrecognized servable version label: nope"),
        ),
        call(
            "unknown signature",
            predict({"x": X}, signature="nope"),
            ("FAILED_PRECONDITION", 'Serving signature key "nope" not found.'),
        ),
        call(
            "wrong inputs",
            predict({"a": X, "b": X}),
            (
                INVALID,
                "input size does not match signature: 2!=1 len({a,b}) != len({x}). "
                "Sent extra: {a,b}. Missing but required: {x}.",
            ),
        ),
        call(
            "wrong type",
            predict({"x": X.astype(np.int32)}),
            (INVALID, "Expects arg[0] to be float but int32 is provided"),
        ),
        call(
            "unknown output",
            predict({"x": X}, ("z",)),
            (
                INVALID,
                "output tensor alias not found in signature: z "
                "Outputs expected to be in the set {y}.",
            ),
        ),
        call(
            "output twice",
            predict({"x": X}, ("y", "y")),
            (INVALID, "duplicate output tensor alias: y"),
        ),
    ]


def examples() -> list[Call]:
    classify = add_examples(
        with_spec(classification_pb2.ClassificationRequest(), "classify_x_to_y"), 20.0, 10.0
    )
    regress = add_examples(
        with_spec(regression_pb2.RegressionRequest(), "regress_x_to_y"), 20.0, 10.0
    )
    nothing = with_spec(classification_pb2.ClassificationRequest(), "classify_x_to_y")
    context = with_spec(regression_pb2.RegressionRequest(), "regress_x_to_y")
    listed = context.input.example_list_with_context
    listed.context.features.feature["x"].float_list.value.append(20.0)
    listed.examples.add()
    listed.examples.add().features.feature["x"].float_list.value.append(10.0)
    regressed = {"result": REGRESSED, "model_spec": spec("regress_x_to_y")}
    classified = {"result": CLASSIFIED, "model_spec": spec("classify_x_to_y")}
    both = multi_inference(("regress_x_to_y", "regress"), ("classify_x_to_y", "classify"))
    twice = multi_inference(("regress_x_to_y", "regress"), ("regress_x_to_y", "regress"))
    other = multi_inference(("regress_x_to_y", "predict"))
    return [
        Call("classify", PREDICTION, "Classify", classify, classified),
        Call("no examples", PREDICTION, "Classify", nothing, (INVALID, "Input is empty.")),
        Call("regress", PREDICTION, "Regress", regress, regressed),
        Call("regress with context", PREDICTION, "Regress", context, regressed),
        Call(
            "two tasks", PREDICTION, "MultiInference", both,
            {
                "results": [
                    {"model_spec": spec("regress_x_to_y"), "regression_result": REGRESSED},
                    {"model_spec": spec("classify_x_to_y"), "classification_result": CLASSIFIED},
                ]
            },
        ),
        Call(
            "a task twice", PREDICTION, "MultiInference", twice,
            (INVALID, "Duplicate evaluation of signature: regress_x_to_y"),
        ),
        Call(
            "another method", PREDICTION, "MultiInference", other,
            ("UNIMPLEMENTED", "Unsupported signature method_name: tensorflow/serving/predict"),
        ),
    ]  # fmt: skip


def models() -> list[Call]:
    metadata = with_spec(get_model_metadata_pb2.GetModelMetadataRequest())
    unknown = with_spec(get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["foo"]))
    status = get_model_status_pb2.GetModelStatusRequest
    of_version = with_spec(status(), version=9)
    run = session_run("StatefulPartitionedCall_2:0", {"serving_default_x:0": X})
    aliases = session_run("y", {"x": X}, tensor_name_is_alias=True)
    y = {"tensor": Y, "name": "StatefulPartitionedCall_2:0"}
    change = "HandleReloadConfigRequest"
    return [
        Call(
            "no field", PREDICTION, "GetModelMetadata", metadata,
            (INVALID, "GetModelMetadataRequest must specify at least one metadata_field"),
        ),
        Call(
            "unknown field", PREDICTION, "GetModelMetadata", unknown,
            (INVALID, "Metadata field foo is not supported"),
        ),
        Call("run by names", SESSION, "SessionRun", run, {"tensor": [y], "model_spec": spec()}),
        Call(
            "run by aliases", SESSION, "SessionRun", aliases,
            {"tensor": [y | {"name": "y"}], "model_spec": spec()},
        ),
        Call(
            "status", MODELS, "GetModelStatus", with_spec(status()),
            {"model_version_status": [STATUS]},
        ),
        Call(
            "status of no version", MODELS, "GetModelStatus", of_version,
            (NOT_FOUND, f"Could not find version 9 of model {MODEL}"),
        ),
        Call("reload with one more", MODELS, change, reload(MODEL, "counter"), {"status": {}}),
        Call("the new model", PREDICTION, "Predict",
             predict({}, model="counter", signature="get_counter"),
             {"outputs": {"output": {"dtype": "DT_FLOAT", "tensor_shape": {}, "float_val": [0.0]}},
              "model_spec": spec("get_counter", "counter")}),
        Call("reload without it", MODELS, change, reload(MODEL), {"status": {}}),
        Call(
            "the dropped model", PREDICTION, "Predict", predict({}, model="counter"),
            (NOT_FOUND, "Servable not found for request: Latest(counter)"),
        ),
        Call(
            "reload twice the same", MODELS, change, reload(MODEL, MODEL),
            (INVALID, f"Illegal to list model {MODEL} multiple times in config list"),
        ),
        Call(
            "reload from elsewhere", MODELS, change, reload("etc", root="/"),
            ("PERMISSION_DENIED",
             "The base path of model etc is not under a folder of admin.model_folders"),
        ),
        Call("what served before", PREDICTION, "Predict", predict({"x": X}),
             {"outputs": {"y": Y}, "model_spec": spec()}),
    ]  # fmt: skip


def methods_of(channel: grpc.Channel) -> dict[str, Any]:
    """The stubs by service; tensorflow-serving-api has none for SessionService."""

    class SessionServiceStub:
        def __init__(self) -> None:
            self.SessionRun = channel.unary_unary(
                "/tensorflow.serving.SessionService/SessionRun",
                request_serializer=session_service_pb2.SessionRunRequest.SerializeToString,
                response_deserializer=session_service_pb2.SessionRunResponse.FromString,
            )

    return {
        PREDICTION: prediction_service_pb2_grpc.PredictionServiceStub(channel),
        MODELS: model_service_pb2_grpc.ModelServiceStub(channel),
        SESSION: SessionServiceStub(),
    }


def outcome(method: Callable[..., Any], request: Any) -> dict[str, Any] | tuple[str, str]:
    try:
        response = method(request, timeout=60)
    except grpc.RpcError as error:
        return error.code().name, error.details()
    shown: dict[str, Any] = json_format.MessageToDict(response, preserving_proto_field_name=True)
    return shown


def metadata_is_tensorflows(stubs: dict[str, Any]) -> bool:
    """Whether TensorFlow's own messages read the signatures of a response."""
    request = with_spec(
        get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    )
    response = stubs[PREDICTION].GetModelMetadata(request, timeout=60)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    is_read = response.metadata["signature_def"].Unpack(signatures)
    inputs = signatures.signature_def["serving_default"].inputs
    return bool(is_read and inputs["x"].dtype == tf.float32.as_datatype_enum)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", required=True, help="host:port of the gRPC port")
    parser.add_argument("--record", type=pathlib.Path, help="file for requests and answers")
    arguments = parser.parse_args()
    recorded, wrong = [], 0
    with grpc.insecure_channel(arguments.target) as channel:
        stubs = methods_of(channel)
        for call in calls():
            got = outcome(getattr(stubs[call.service], call.method), call.request)
            is_right = got == call.answer
            wrong += not is_right
            print(f"{'ok' if is_right else 'WRONG':6}{call.service}.{call.method}: {call.name}")
            if not is_right:
                print(f"      expected {call.answer}\n      got      {got}")
            recorded.append(
                {
                    "name": call.name,
                    "method": f"/tensorflow.serving.{call.service}/{call.method}",
                    "request": base64.b64encode(
                        call.request.SerializeToString(deterministic=True)
                    ).decode(),
                    "answer": call.answer,
                }
            )
        is_right = metadata_is_tensorflows(stubs)
        wrong += not is_right
        print(f"{'ok' if is_right else 'WRONG':6}{PREDICTION}.GetModelMetadata: signatures")
    print(f"{len(recorded) + 1 - wrong} of {len(recorded) + 1} calls as expected")
    if arguments.record and not wrong:
        lines = ",\n".join(json.dumps(each) for each in recorded)
        arguments.record.write_text(f"[\n{lines}\n]\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

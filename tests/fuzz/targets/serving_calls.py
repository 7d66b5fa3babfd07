"""Messages of TensorFlow Serving's gRPC services and of the Open Inference Protocol's.

The code must be one that a client may cause, so never INTERNAL or UNKNOWN.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
from google.protobuf.message import DecodeError, Message

import protos as pb
from runtime.framework.tensor_codec import tensor_to_proto
from tests.fuzz.children import enter
from tests.fuzz.mutate_bytes import join_frames, mutated_bytes, smaller_bytes, split_frames
from tests.fuzz.mutate_messages import mutate_message, smaller_messages
from tests.fuzz.served import Served
from tests.fuzz.target import Target

_MODELS = ("half_plus_two", "string_lookup", "mlp_small", "counter")
_AS_BYTES = 0.3  # of the messages are changed as bytes
_WRONG = ("INTERNAL", "UNKNOWN")
_SERVING = "/tensorflow.serving."
_PROTOCOL = "/inference.GRPCInferenceService/"


class ServingCalls(Target):
    """Mutated messages, one call an input."""

    name = "serving_calls"
    inputs_a_child = 2000

    def __init__(self) -> None:
        self._seeds = _seeds()

    def start(self) -> None:
        self._served = Served(_MODELS)

    def make(self, random_state: random.Random) -> bytes:
        path = random_state.choice(sorted(self._seeds))
        seeds = self._seeds[path]
        seed = random_state.choice(seeds)
        message = type(seed)()
        message.CopyFrom(seed)
        for _ in range(random_state.choice((0, 1, 1, 2, 3))):
            mutate_message(message, random_state, seeds)
        data = message.SerializePartialToString()
        if random_state.random() < _AS_BYTES:
            data = mutated_bytes(data, random_state)
        return join_frames([path.encode(), data])

    def run(self, data: bytes) -> str:
        path, content = split_frames(data)
        answer = self._served.grpc(path.decode(), content)
        if answer.code in _WRONG:
            return f"CODE {path.decode()} {answer.code}: {answer.content.decode()[:300]}"
        if answer.code == "DEADLINE_EXCEEDED":
            enter("after the deadline")
            self._served.until_idle()
        return answer.code.lower()

    def smaller(self, data: bytes) -> Iterator[bytes]:
        path, content = split_frames(data)
        try:
            message = type(self._seeds[path.decode()][0]).FromString(content)
        except DecodeError:
            smaller: Iterator[bytes] = smaller_bytes(content)
        else:
            smaller = (each.SerializePartialToString() for each in smaller_messages(message))
        for each in smaller:
            yield join_frames([path, each])


def _spec(name: str, **more: object) -> pb.serving.ModelSpec:
    return pb.serving.ModelSpec(name=name, **more)  # type: ignore[arg-type] # of the message


def _example() -> pb.Example:
    example = pb.Example()
    example.features.feature["x"].float_list.value.append(2.0)
    return example


def _seeds() -> dict[str, Sequence[Message]]:
    serving = pb.serving
    half = _spec("half_plus_two")
    half.version.value = 1
    x = tensor_to_proto(np.array([1, 2, 5], np.float32))
    words = tensor_to_proto(np.array([[b"a"], [b""]], object))
    predict = serving.PredictRequest(model_spec=half, output_filter=["y"])
    predict.inputs["x"].CopyFrom(x)
    lookup = serving.PredictRequest(model_spec=_spec("string_lookup"))
    lookup.inputs["keras_tensor"].CopyFrom(words)
    count = serving.PredictRequest(model_spec=_spec("counter", signature_name="incr_counter"))
    classify = serving.ClassificationRequest(
        model_spec=_spec("half_plus_two", signature_name="classify_x_to_y")
    )
    classify.input.example_list.examples.append(_example())
    regress = serving.RegressionRequest(
        model_spec=_spec("half_plus_two", signature_name="regress_x_to_y")
    )
    regress.input.example_list_with_context.context.CopyFrom(_example())
    regress.input.example_list_with_context.examples.append(pb.Example())
    several = serving.MultiInferenceRequest(input=classify.input)
    for method, name in (("classify", "classify_x_to_y"), ("regress", "regress_x_to_y")):
        several.tasks.add(
            model_spec=_spec("half_plus_two", signature_name=name),
            method_name=f"tensorflow/serving/{method}",
        )
    metadata = serving.GetModelMetadataRequest(model_spec=half, metadata_field=["signature_def"])
    run = serving.SessionRunRequest(model_spec=half, fetch=["y:0"], target=["y"])
    run.feed.add(name="x:0").tensor.CopyFrom(x)
    reload = serving.ReloadConfigRequest()
    reload.config.model_config_list.config.add(name="half_plus_two", base_path="/tmp/none")
    return {
        f"{_SERVING}PredictionService/Predict": [predict, lookup, count],
        f"{_SERVING}PredictionService/Classify": [classify],
        f"{_SERVING}PredictionService/Regress": [regress],
        f"{_SERVING}PredictionService/MultiInference": [several],
        f"{_SERVING}PredictionService/GetModelMetadata": [metadata],
        f"{_SERVING}ModelService/GetModelStatus": [serving.GetModelStatusRequest(model_spec=half)],
        f"{_SERVING}ModelService/HandleReloadConfigRequest": [reload],
        f"{_SERVING}SessionService/SessionRun": [run],
        **_protocol_seeds(),
    }


def _protocol_seeds() -> dict[str, Sequence[Message]]:
    api = pb.inference
    typed = api.ModelInferRequest(model_name="half_plus_two", model_version="1", id="a")
    x = typed.inputs.add(name="x", datatype="FP32", shape=[2])
    x.contents.fp32_contents.extend([1.0, 2.0])
    typed.parameters["priority"].int64_param = 1
    typed.outputs.add(name="y").parameters["classification"].int64_param = 1
    raw = api.ModelInferRequest(
        model_name="half_plus_two", raw_input_contents=[np.float32([1, 2]).tobytes()]
    )
    raw.inputs.add(name="x", datatype="FP32", shape=[2])
    words = api.ModelInferRequest(model_name="string_lookup")
    words.inputs.add(
        name="keras_tensor", datatype="BYTES", shape=[2, 1]
    ).contents.bytes_contents.extend([b"a", b""])
    log = api.LogSettingsRequest()
    log.settings["log_info"].bool_param = True
    trace = api.TraceSettingRequest(model_name="half_plus_two")
    trace.settings["trace_level"].value.append("OFF")
    return {
        f"{_PROTOCOL}ModelInfer": [typed, raw, words],
        f"{_PROTOCOL}ModelReady": [api.ModelReadyRequest(name="half_plus_two", version="1")],
        f"{_PROTOCOL}ModelMetadata": [api.ModelMetadataRequest(name="mlp_small")],
        f"{_PROTOCOL}ModelConfig": [api.ModelConfigRequest(name="half_plus_two")],
        f"{_PROTOCOL}ModelStatistics": [api.ModelStatisticsRequest(name="half_plus_two")],
        f"{_PROTOCOL}RepositoryIndex": [api.RepositoryIndexRequest(ready=True)],
        f"{_PROTOCOL}RepositoryModelLoad": [
            api.RepositoryModelLoadRequest(model_name="half_plus_two")
        ],
        f"{_PROTOCOL}LogSettings": [log],
        f"{_PROTOCOL}TraceSetting": [trace],
    }

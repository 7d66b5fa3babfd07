from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import DataType, tensor_from_proto, tensor_to_proto
from runtime.errors import InvalidArgumentError, ResourceExhaustedError
from server.codec.serving.proto_messages import (
    classification_result,
    input_examples,
    read_tensors,
    regression_result,
    write_predict,
    write_session_run,
)

SPEC = pb.serving.ModelSpec(name="m")


def test_tensors_are_read_by_alias() -> None:
    protos = {"a": tensor_to_proto(np.float32(1)), "b": tensor_to_proto(np.array([b"x"], object))}
    arrays = read_tensors(protos, 1 << 20)
    assert arrays["a"] == 1 and arrays["b"].tolist() == [b"x"]


def test_a_tensor_that_cannot_be_decoded_is_named() -> None:
    wrong = pb.TensorProto(dtype=DataType.FLOAT, tensor_content=b"123")
    with pytest.raises(InvalidArgumentError, match=r"^tensor parsing error: image: "):
        read_tensors({"image": wrong}, 1 << 20)


def test_tensors_that_repeat_their_values_are_limited_together() -> None:
    proto = pb.TensorProto(dtype=DataType.FLOAT, float_val=[1])
    proto.tensor_shape.dim.add(size=200)
    assert len(read_tensors({"a": proto}, 1000)) == 1
    with pytest.raises(ResourceExhaustedError, match="2 feeds that repeat their values"):
        read_tensors({"a": proto, "b": proto}, 1000)


def test_examples_with_and_without_a_context() -> None:
    message = pb.serving.Input()
    with pytest.raises(InvalidArgumentError, match=r"Input is empty\."):
        input_examples(message)
    example = message.example_list.examples.add()
    example.features.feature["x"].float_list.value.append(1)
    assert input_examples(message).tolist() == [example.SerializeToString()]
    with_context = pb.serving.Input()
    listed = with_context.example_list_with_context
    listed.context.features.feature["y"].int64_list.value.append(2)
    listed.examples.add().CopyFrom(example)
    listed.examples.add()
    merged, alone = map(pb.Example.FromString, input_examples(with_context))
    assert sorted(merged.features.feature) == ["x", "y"]
    assert sorted(alone.features.feature) == ["y"]


@pytest.mark.parametrize("as_content", [False, True])
def test_a_predict_response_is_read_back(as_content: bool) -> None:
    outputs = {"y": np.arange(6, dtype=np.int32).reshape(2, 3), "ß": np.array([b"t"], object)}
    types = {"y": DataType.INT32, "ß": DataType.STRING}
    response = pb.serving.PredictResponse.FromString(
        write_predict(SPEC, outputs, types, as_content)
    )
    assert response.model_spec == SPEC
    read = {alias: tensor_from_proto(proto).tolist() for alias, proto in response.outputs.items()}
    assert read == {"y": [[0, 1, 2], [3, 4, 5]], "ß": [b"t"]}


def test_a_session_run_response_keeps_the_order() -> None:
    data = write_session_run(SPEC, ["b:0", "a"], [np.float32(2), np.float32(1)], False)
    response = pb.serving.SessionRunResponse.FromString(data)
    assert [(each.name, each.tensor.float_val[0]) for each in response.tensor] == [
        ("b:0", 2.0),
        ("a", 1.0),
    ]


def test_results_of_examples() -> None:
    labels = np.array([[b"cat", b"dog"], [b"", "ü".encode()]], object)
    scores = np.array([[0.5, 0.25], [0, 1]], np.float32)
    result = classification_result(labels, scores)
    rows = [[(c.label, c.score) for c in row.classes] for row in result.classifications]
    assert rows == [[("cat", 0.5), ("dog", 0.25)], [("", 0.0), ("ü", 1.0)]]
    with pytest.raises(InvalidArgumentError, match=r"The label b'\\xff' is not UTF-8"):
        classification_result(np.array([[b"\xff"]], object), np.zeros((1, 1), np.float32))
    values = regression_result(np.array([1.5, -2], np.float32))
    assert [each.value for each in values.regressions] == [1.5, -2.0]

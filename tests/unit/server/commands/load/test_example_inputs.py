import numpy as np
import pytest

import protos as pb
from runtime.api import DataType
from runtime.errors import InvalidArgumentError, NotFoundError, ResourceExhaustedError
from server.commands.load.example_inputs import (
    InputSpec,
    make_inputs,
    signature_named,
    specs_of,
)

SPECS = {"x": InputSpec(DataType.FLOAT, (-1, 2)), "s": InputSpec(DataType.STRING, ())}


@pytest.mark.parametrize(
    "data_type",
    [each for each in DataType if 0 < each < 100 and each.name not in ("RESOURCE", "VARIANT")],
)
def test_every_type_has_an_example(data_type):
    array = InputSpec(data_type, (-1, 3, -1)).array(4)
    assert array.shape == (4, 3, 1)
    assert array.dtype == (object if data_type is DataType.STRING else data_type.numpy)


@pytest.mark.parametrize(
    ("shape", "expected"), [((), ()), (None, (7,)), ((5, -1), (5, 1)), ((-1, 0), (7, 0))]
)
def test_the_batch_is_the_first_size_if_that_is_open(shape, expected):
    assert InputSpec(DataType.FLOAT, shape).array(7).shape == expected


def test_examples_are_the_same_every_time():
    first, second = make_inputs(SPECS, 3, None), make_inputs(SPECS, 3, None)
    np.testing.assert_array_equal(first["x"], second["x"])
    assert first["x"].min() >= 0 and first["x"].max() < 1 and first["s"][()] == b""


def test_a_huge_example_is_refused():
    with pytest.raises(ResourceExhaustedError, match="has more than 268435456 elements"):
        InputSpec(DataType.FLOAT, (-1, 1 << 20)).array(1 << 20)


def test_specs_are_those_of_a_signature():
    signature = pb.SignatureDef()
    info = signature.inputs["x"]
    info.name, info.dtype = "x:0", pb.DT_INT64
    info.tensor_shape.dim.add(size=-1)
    signature.inputs["any"].dtype = pb.DT_FLOAT
    signature.inputs["any"].tensor_shape.unknown_rank = True
    assert specs_of(signature) == {
        "x": InputSpec(DataType.INT64, (-1,)),
        "any": InputSpec(DataType.FLOAT, None),
    }
    signature.inputs["x"].coo_sparse.values_tensor_name = "v:0"
    with pytest.raises(InvalidArgumentError, match="The input x is no tensor but a coo_sparse"):
        specs_of(signature)


def test_inputs_of_a_file(tmp_path):
    path = tmp_path / "inputs.json"
    path.write_text('{"inputs": {"x": [[1, 2]], "s": "a"}}')
    arrays = make_inputs(SPECS, 1, str(path))
    np.testing.assert_array_equal(arrays["x"], np.array([[1, 2]], np.float32))
    assert arrays["s"][()] == b"a"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not valid JSON"),
        ("[]", 'must hold {"inputs": {name: value}} and nothing else, for the inputs s, x'),
        ('{"instances": []}', 'must hold {"inputs": {name: value}}'),
        ('{"inputs": {"x": [[1, 2]], "t": 0}}', "wrong or missing: s, t"),
        ('{"inputs": {"x": [["a"]], "s": ""}}', "Tensor x: Expected a number"),
    ],
)
def test_a_file_that_says_something_else(tmp_path, text, message):
    path = tmp_path / "inputs.json"
    path.write_text(text)
    with pytest.raises(InvalidArgumentError) as caught:
        make_inputs(SPECS, 1, str(path))
    assert message in caught.value.message


def test_what_is_missing_is_named():
    with pytest.raises(NotFoundError, match=r"Cannot read nowhere\.json: No such file"):
        make_inputs(SPECS, 1, "nowhere.json")
    signatures = {"a": pb.SignatureDef(), "__saved_model_init_op": pb.SignatureDef()}
    assert signature_named(signatures, "a", "m") == pb.SignatureDef()
    with pytest.raises(NotFoundError, match="m has no signature 'b'; it has a"):
        signature_named(signatures, "b", "m")

"""FunctionLibrary: the functions that a function reaches."""

from __future__ import annotations

import sys

import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, NotFoundError, OpError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.graph.function_library import FunctionBody, FunctionLibrary


def test_a_function_given_to_a_function_is_reachable() -> None:
    caller, called, given = (pb.FunctionDef() for _ in range(3))
    for function, name in ((caller, "caller"), (called, "called"), (given, "given")):
        function.signature.name = name
    branch = caller.node_def.add(name="if", op="If").attr["then_branch"].func
    branch.name = "called"
    branch.attr["f"].func.name = "given"
    library = FunctionLibrary([caller, called, given, pb.FunctionDef()])
    found = [function.signature.name for function in library.reachable(["caller"]).function]
    assert found == ["called", "caller", "given"]


def test_a_derived_function_reaches_what_its_origin_reaches() -> None:
    caller, called = pb.FunctionDef(), pb.FunctionDef()
    caller.signature.name, called.signature.name = "caller", "called"
    caller.node_def.add(name="if", op="If").attr["then_branch"].func.name = "called"
    library = FunctionLibrary([caller, called])
    body = FunctionBody("derived", (), (), (), (), False)
    library.derived_body(NameAttrList("derived"), lambda: body, origin="caller")
    assert library.body(NameAttrList("derived")) is body
    assert "derived" not in library
    other = pb.FunctionDef()
    other.signature.name = "other"
    for each in (library, library.merged(pb.FunctionDefLibrary(function=[other]))):
        found = [function.signature.name for function in each.reachable(["derived"]).function]
        assert found == ["called", "caller"]


def _function(**attr: pb.AttrValue) -> pb.FunctionDef:
    """A function of one Neg, whose attribute T is given."""
    function = pb.FunctionDef()
    function.signature.name = "negative"
    function.signature.attr.add(name="T", type="type")
    function.signature.input_arg.add(name="x", type=pb.DT_FLOAT)
    function.signature.output_arg.add(name="y", type=pb.DT_FLOAT)
    node = function.node_def.add(name="neg", op="Neg", input=["x"])
    for name, value in attr.items():
        node.attr[name].CopyFrom(value)
    function.ret["y"] = "neg:y:0"
    return function


@pytest.mark.parametrize(
    ("attr", "given", "error", "message"),
    [
        ({}, {}, NotFoundError, "No attr named 'T' in NodeDef"),
        ({"T": pb.AttrValue(i=1)}, {}, InvalidArgumentError, "type 'int' when 'type' expected"),
        ({"T": pb.AttrValue(placeholder="T")}, {"T": 1}, InvalidArgumentError, "value 1 when"),
        ({"T": pb.AttrValue(type=pb.DT_BOOL)}, {}, InvalidArgumentError, "DT_BOOL|bool is not in"),
        (
            {"T": pb.AttrValue(type=pb.DT_INT32)},
            {},
            InvalidArgumentError,
            "was passed float from x:0 incompatible with expected int32",
        ),
    ],
)
def test_the_nodes_of_a_function_are_checked_as_those_of_a_graph(
    attr: dict[str, pb.AttrValue],
    given: dict[str, object],
    error: type[OpError],
    message: str,
) -> None:
    library = FunctionLibrary([_function(**attr)])
    with pytest.raises(error, match=message):
        library.body(NameAttrList("negative", given))


def test_a_substituted_attribute_is_of_its_kind() -> None:
    library = FunctionLibrary([_function(T=pb.AttrValue(placeholder="T"))])
    body = library.body(NameAttrList("negative", {"T": DataType.FLOAT}))
    assert [node.op for node in body.nodes] == ["_Arg", "Neg"]


@pytest.mark.parametrize("index", ["{", "-1", "1", "9" * 5000, "²"])
def test_an_output_of_a_function_s_node_that_is_not_there(index: str) -> None:
    function = _function(T=pb.AttrValue(type=pb.DT_FLOAT))
    function.ret["y"] = f"neg:y:{index}"
    with pytest.raises(InvalidArgumentError, match="Node neg of function negative has no output"):
        FunctionLibrary([function]).body(NameAttrList("negative"))


def test_edge_lists_of_a_function_have_no_room_for_more() -> None:
    library = FunctionLibrary([_function(T=pb.AttrValue(type=pb.DT_FLOAT))])
    body = library.body(NameAttrList("negative"))
    node = next(node for node in body.nodes if node.name == "neg")
    assert [source.name for source, _ in node.inputs] == ["x"]
    assert sys.getsizeof(node.inputs) == sys.getsizeof([None])

"""FunctionLibrary: the functions that a function reaches."""

from __future__ import annotations

import protos as pb
from runtime.framework.attr_value import NameAttrList
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

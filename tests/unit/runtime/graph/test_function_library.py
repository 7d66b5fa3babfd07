"""FunctionLibrary: the functions that a function reaches."""

from __future__ import annotations

import protos as pb
from runtime.graph.function_library import FunctionLibrary


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

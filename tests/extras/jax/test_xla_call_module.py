"""XlaCallModule on small programs: functions that they call, tokens, platforms, cancellation."""

from __future__ import annotations

import threading
import types

import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import stablehlo

import protos as pb
from runtime.api import (
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    SessionOptions,
    new_session,
)
from runtime.client import Graph, Session, constant, ops
from runtime.client.framework.function_graph import FunctionGraph
from runtime.client.framework.tensor_shape import TensorShape
from runtime.framework.dtypes import DataType
from runtime.op_packages.jax import xla_call_module
from tests.conformance.case import Graph as CaseGraph

CALL = """
module {
  func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.negate %a : tensor<3xf32>
    %1 = stablehlo.custom_call @tf.call_tf_function(%0) {
      api_version = 2 : i32, has_side_effect = true,
      tf.backend_config = {called_index = 0 : i64, has_token_input_output = false}
    } : (tensor<3xf32>) -> tensor<3xf32>
    %2 = stablehlo.add %1, %1 : tensor<3xf32>
    return %2 : tensor<3xf32>
  }
}"""
TOKENS = """
module {
  func.func public @main(%p: tensor<i32>, %t: !stablehlo.token, %a: tensor<2xi32>)
      -> (!stablehlo.token, tensor<2xi32>) {
    %0 = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %1 = stablehlo.add %a, %0 : tensor<2xi32>
    return %t, %1 : !stablehlo.token, tensor<2xi32>
  }
}"""


def artifact(text: str) -> bytes:
    context = ir.Context()
    dialects = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(dialects)
    context.append_dialect_registry(dialects)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    with context:
        module = ir.Module.parse(text)
        return bytes(
            stablehlo.serialize_portable_artifact(
                module, stablehlo.get_minimum_version(), allow_other_dialects=True
            )
        )


def run(
    text: str, value: object, function: str = "", platforms: tuple[str, ...] = ("CPU",)
) -> np.ndarray:
    """Return the output of a program for one input; `function` is called "twice" or not at all."""
    with Graph().as_default() as graph:
        names = []
        if function:
            body = FunctionGraph("body", graph)
            argument = body.add_argument(DataType.FLOAT, TensorShape([None]))
            body.outputs = [body.build(lambda: ops.__getattr__(function)(argument))]
            graph.add_functions(pb.FunctionDefLibrary(function=[body.to_function_def()]))
            names = [body.name]
        given = constant(value)
        result = ops.XlaCallModule(
            [given], version=10, module=artifact(text), Sout=[None], Tout=[given.dtype],
            platforms=list(platforms), function_list=names,
        )[0]  # fmt: skip
        with Session() as session:
            return np.asarray(session.run(result))


def test_a_program_calls_a_function_of_the_graph() -> None:
    x = np.float32([1, 4, 9])
    np.testing.assert_allclose(run(CALL, x, "Exp"), 2 * np.exp(-x), 1e-6)


def test_the_error_of_a_called_function_is_the_steps() -> None:
    with pytest.raises(OpError, match="must have rank >= 2") as caught:
        run(CALL, np.float32([1, 2, 3]), "MatrixInverse")
    assert caught.value.code == InvalidArgumentError.code


def test_calls_of_functions_need_fixed_sizes_as_in_tensorflow() -> None:
    with pytest.raises(InvalidArgumentError, match="Module has dynamic shapes"):
        run(CALL.replace("tensor<3xf32>", "tensor<?xf32>"), np.float32([1, 2, 3]), "Exp")


def test_calls_of_functions_in_an_order_are_refused() -> None:
    text = CALL.replace("has_token_input_output = false", "has_token_input_output = true")
    with pytest.raises(InvalidArgumentError, match="in an order are not supported"):
        run(text, np.float32([1, 2, 3]), "Exp")


def test_a_function_that_is_not_listed_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="calls function 0, but function_list has 0"):
        run(CALL, np.float32([1, 2, 3]))


@pytest.mark.parametrize(("platforms", "index"), [(("CUDA", "CPU"), 1), (("CPU", "TPU"), 0)])
def test_the_platform_and_tokens_are_no_inputs(platforms: tuple[str, ...], index: int) -> None:
    got = run(TOKENS, np.int32([5, 6]), platforms=platforms)
    assert got.tolist() == [5 + index, 6 + index]


def test_a_program_without_a_platform_index_is_not_for_several_platforms() -> None:
    one = "module { func.func @main(%a: tensor<2xf32>, %b: tensor<2xi32>) -> tensor<2xi32> {" \
          " return %b : tensor<2xi32> } }"  # fmt: skip
    with pytest.raises(InvalidArgumentError, match="must be the platform index, of type tensor<i3"):
        run(one, np.int32([5, 6]), platforms=("CPU", "TPU"))


def test_arguments_are_counted() -> None:
    with pytest.raises(InvalidArgumentError, match=r"must be called with 0 because .* takes 2"):
        run(TOKENS.replace("%a: tensor<2xi32>)", ")").replace(", )", ")").replace("%a,", "%0,"),
            np.int32([5, 6]), platforms=("CPU", "TPU"))  # fmt: skip


def test_a_step_that_waits_for_a_compilation_can_be_cancelled() -> None:
    attributes = xla_call_module.ModuleAttributes(
        artifact(CALL), 10, ("CPU",), frozenset(), 1, False
    )
    program = xla_call_module.Program(attributes)
    ended = threading.Event()

    class Cancellation:
        def check(self) -> None:
            ended.set()
            raise InvalidArgumentError("cancelled")

    context = types.SimpleNamespace(cancellation=Cancellation())
    with program._compiling, pytest.raises(InvalidArgumentError, match="cancelled"):
        program.run(context, [np.float32([1, 2, 3])], [])  # type: ignore[arg-type]
    assert ended.is_set()


LARGE = """
module {
  func.func public @main(%a: tensor<f32>) -> tensor<4000000000000xf32> {
    %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<4000000000000xf32>
    return %0 : tensor<4000000000000xf32>
  }
}"""


def test_memory_that_the_machine_lacks_is_an_error() -> None:
    with pytest.raises(ResourceExhaustedError, match="Out of memory allocating 16000000000000"):
        run(LARGE, np.float32(1))


def test_a_program_beyond_the_memory_of_its_session_does_not_run() -> None:
    graph = CaseGraph()
    given = graph.placeholder(DataType.FLOAT, "x")
    graph.add(
        "XlaCallModule", [given], version=10, module=artifact(LARGE.replace("0" * 9, "0" * 3)),
        Sout=[None], Tout=[DataType.FLOAT], platforms=["CPU"], name="large",
    )  # fmt: skip
    session = new_session(SessionOptions(max_session_bytes=1 << 20))
    session.create(graph.graph_def)
    with pytest.raises(ResourceExhaustedError, match="the limit is 1048576"):
        session.run({"x:0": np.float32(1)}, ["large:0"])
    session.close()

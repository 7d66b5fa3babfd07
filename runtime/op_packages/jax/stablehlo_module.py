"""A StableHLO artifact of an XlaCallModule: checked, parsed, and refined to the shapes of a call.

A portable artifact is MLIR bytecode in a versioned dialect. Its function `main` may begin with the
index of the platform and with tokens, which are not inputs of the op: they become constants.

TF: tensorflow/compiler/tf2xla/kernels/xla_call_module_loader.cc
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib import _jax
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext, _stablehlo
from jaxlib.mlir.dialects import stablehlo

from runtime.foundation.errors import InvalidArgumentError, NotFoundError, OpError
from runtime.foundation.trial_process import run_trial
from runtime.op_packages.jax.cpu_client import PYTHON_CALLBACK

OLDEST_VERSION, NEWEST_VERSION = 4, 10
FIRST_WITH_PLATFORMS = 3
_PLATFORM = "CPU"
_TOKEN = "!stablehlo.token"
_INDEX_TYPES = ("tensor<i32>", "tensor<i64>")
_CALL_FUNCTION = "tf.call_tf_function"
# A damaged artifact may end the library's process, or keep it busy for ever: when it is read, or
# when its shapes are refined. Arguments: attributes as JSON, then where modules are found.
_TRIAL = """
import json, sys
sys.path[:] = sys.argv[2:]
from runtime.op_packages.jax import stablehlo_module
try:
    stablehlo_module.try_artifact(sys.stdin.buffer.read(), *json.loads(sys.argv[1]))
except Exception as error:
    sys.exit(" ".join(str(error).split())[:2000])
"""
_TRIED_SIZE = "8"  # a polymorphic size in a trial
_TRIAL_SECONDS = 30.0
# Digests of artifacts that could be read; a set's methods are atomic.
_readable: set[bytes] = set()
_MOST_READABLE = 1024
_LONGEST_MESSAGE = 600
# What the library writes before the words of an error: its stages, and places in a source file.
_PREFIX = re.compile(
    r"^(Failure while executing pass pipeline: |INVALID_ARGUMENT: "
    r"|Cannot deserialize computation: |Module shape refinement failed: |UNKNOWN: "
    r"|\S+:\d+:\d+: error: |<unknown>:0: error: "
    r"|error: (unknown: )?)*"
)

_SOURCE_LINE = re.compile(r"\n[^\n]*\n *\^")

_ELEMENT_TYPES: dict[np.dtype, str] = {
    np.dtype(given): name
    for given, name in (
        (np.bool_, "i1"), (np.int8, "i8"), (np.int16, "i16"), (np.int32, "i32"), (np.int64, "i64"),
        (np.uint8, "ui8"), (np.uint16, "ui16"), (np.uint32, "ui32"), (np.uint64, "ui64"),
        (np.float16, "f16"), (np.float32, "f32"), (np.float64, "f64"),
        (np.complex64, "complex<f32>"), (np.complex128, "complex<f64>"),
        (ml_dtypes.bfloat16, "bf16"), (ml_dtypes.int4, "i4"), (ml_dtypes.uint4, "ui4"),
        (ml_dtypes.int2, "i2"), (ml_dtypes.uint2, "ui2"),
        (ml_dtypes.float8_e4m3fn, "f8E4M3FN"), (ml_dtypes.float8_e5m2, "f8E5M2"),
        (ml_dtypes.float8_e4m3fnuz, "f8E4M3FNUZ"), (ml_dtypes.float8_e5m2fnuz, "f8E5M2FNUZ"),
        (ml_dtypes.float8_e4m3b11fnuz, "f8E4M3B11FNUZ"),
    )
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ModuleAttributes:
    """The attributes of an XlaCallModule that determine what its artifact means."""

    artifact: bytes
    version: int
    platforms: tuple[str, ...]
    disabled_checks: frozenset[str]
    num_functions: int
    use_shardy: bool

    def platform_index(self) -> int:
        """Return the place of this platform among those of the artifact.

        Raises InvalidArgumentError for a version that can't be read, NotFoundError if the artifact
        is not for the CPU.
        """
        if self.version < OLDEST_VERSION:
            raise InvalidArgumentError(
                f"XlaCallModuleOp with version {self.version} is not supported anymore. "
                f"Must be >= {OLDEST_VERSION}"
            )
        if self.version > NEWEST_VERSION:
            raise InvalidArgumentError(
                f"XlaCallModuleOp with version {self.version} is not supported by this build. "
                f"Must be <= {NEWEST_VERSION}"
            )
        if not self.platforms:
            raise InvalidArgumentError(
                f"XlaCallModuleOp with version {self.version} must have non-empty platforms."
            )
        if _PLATFORM in self.platforms:
            return self.platforms.index(_PLATFORM)
        if len(self.platforms) == 1 and "platform" in self.disabled_checks:
            return 0
        raise NotFoundError(
            f"The current platform {_PLATFORM} is not among the platforms required by the module: "
            f"[{', '.join(self.platforms)}]"
        )


def parsed(attributes: ModuleAttributes) -> ir.Module:
    """Return the module of an artifact, in an MLIR context of its own."""
    context = ir.Context()
    context.enable_multithreading(False)
    context.append_dialect_registry(_dialects())
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    try:
        return stablehlo.deserialize_portable_artifact(context, attributes.artifact)
    except Exception as error:  # the binding's own class
        raise _not_read(str(error)) from None


def check_artifact(attributes: ModuleAttributes) -> None:
    """Raise unless the artifact can be read; tries it in another process first.

    Raises InvalidArgumentError, or NotFoundError if it is for other platforms.
    """
    attributes.platform_index()
    others = json.dumps(
        [
            attributes.version,
            attributes.platforms,
            sorted(attributes.disabled_checks),
            attributes.num_functions,
            attributes.use_shardy,
        ]
    )
    digest = hashlib.sha256(attributes.artifact + others.encode()).digest()
    if digest in _readable:
        return
    result = run_trial(_TRIAL, [others, *sys.path], attributes.artifact, _TRIAL_SECONDS)
    if result.reason:
        raise _not_read(f"it is damaged ({result.reason})" if result.is_killed else result.reason)
    if len(_readable) >= _MOST_READABLE:
        _readable.clear()
    _readable.add(digest)


def try_artifact(
    artifact: bytes,
    version: int,
    platforms: Sequence[str],
    disabled_checks: Sequence[str],
    num_functions: int,
    use_shardy: bool,
) -> None:
    """Read an artifact, and refine it to some sizes; these need not be sizes that it takes.

    Raises if it can't be read. Runs in a trial's process, which the library may end.
    """
    attributes = ModuleAttributes(
        artifact, version, tuple(platforms), frozenset(disabled_checks), num_functions, use_shardy
    )
    module = parsed(attributes)
    if not module.operation.verify():
        raise InvalidArgumentError("the module is not valid")
    types = [str(each.type) for each in _main_of(module).regions[0].blocks[0].arguments]
    given = [each for each in types[len(platforms) > 1 :] if each != _TOKEN]
    with contextlib.suppress(OpError):
        refined(attributes, [each.replace("?", _TRIED_SIZE) for each in given])


def refined(attributes: ModuleAttributes, types: Sequence[str]) -> ir.Module:
    """Return the module for inputs of these types (see `type_text`); all its shapes are known.

    Raises InvalidArgumentError, with TensorFlow's words, if the inputs do not fit it: their number,
    types or static sizes, or what its shape assertions require.
    """
    module = parsed(attributes)
    with module.context, ir.Location.unknown():
        _set_what_is_no_input(module, attributes, len(types))
        if types:
            try:
                # The pass and its option are those of StableHLO (RefineArguments).
                passes = f"builtin.module(stablehlo-refine-arguments{{types={','.join(types)}}})"
                passmanager.PassManager.parse(passes).run(module.operation)
            except ir.MLIRError as error:
                raise InvalidArgumentError(
                    f"Error refining argument shapes: {_first_words(str(error))}"
                ) from None
        try:
            code = _jax.mlir.refine_polymorphic_shapes(
                _bytecode(module),
                enable_shape_assertions="shape_assertions" not in attributes.disabled_checks,
                validate_static_shapes=True,
                enable_shardy=attributes.use_shardy,
            )
        except Exception as error:  # the binding's own class
            raise InvalidArgumentError(
                f"Module shape refinement failed: {_first_words(str(error))}"
            ) from None
        result = ir.Module.parse(code)
        _set_calls(result, attributes.num_functions)
    return result


@functools.cache
def _dialects() -> ir.DialectRegistry:
    _stablehlo.register_stablehlo_passes()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    return registry


def _main_of(module: ir.Module) -> Any:
    for operation in module.body.operations:
        attributes = operation.operation.attributes
        if "sym_name" in attributes and ir.StringAttr(attributes["sym_name"]).value == "main":
            return operation
    raise InvalidArgumentError("Cannot find 'main' in module")


def _set_what_is_no_input(module: ir.Module, attributes: ModuleAttributes, count: int) -> None:
    """Replace the index of the platform, and tokens, by constants in `main`.

    Raises InvalidArgumentError if the other arguments are not as many as the inputs, `count`.
    """
    main = _main_of(module)
    block = main.regions[0].blocks[0]
    index, several = attributes.platform_index(), len(attributes.platforms) > 1
    is_token = [str(argument.type) == _TOKEN for argument in block.arguments]
    expected = len(is_token) - several - sum(is_token)
    if count != expected:
        raise InvalidArgumentError(
            f"Incorrect number of arguments passed to XlaCallModule = {count}. It must be called "
            f"with {expected} because the module main function takes {len(is_token)} arguments of "
            f"which {int(several)} platform index arguments, and {sum(is_token)} token arguments."
        )
    if several and str(block.arguments[0].type) not in _INDEX_TYPES:
        raise InvalidArgumentError(
            "The first argument of the module main function must be the platform index, of type "
            f"{' or '.join(_INDEX_TYPES)}, got {block.arguments[0].type}"
        )
    with ir.InsertionPoint.at_block_begin(block):
        for place in reversed(range(len(is_token))):
            argument = block.arguments[place]
            if is_token[place]:
                argument.replace_all_uses_with(stablehlo.create_token())
            elif several and place == 0:
                number = ir.DenseElementsAttr.get_splat(
                    argument.type,
                    ir.IntegerAttr.get(ir.RankedTensorType(argument.type).element_type, index),
                )
                argument.replace_all_uses_with(stablehlo.constant(number))
            else:
                continue
            block.erase_argument(place)
    returned = block.operations[len(block.operations) - 1]
    kept = [value for value in returned.operands if str(value.type) != _TOKEN]
    if len(kept) != len(returned.operands):
        with ir.InsertionPoint(returned):
            ir.Operation.create("func.return", operands=kept)
        returned.operation.erase()
    function = ir.FunctionType.get(
        [argument.type for argument in block.arguments], [value.type for value in kept]
    )
    main.operation.attributes["function_type"] = ir.TypeAttr.get(function)
    for name in ("arg_attrs", "res_attrs"):
        if name in main.operation.attributes:  # their lengths are those of the old type
            del main.operation.attributes[name]


def _set_calls(module: ir.Module, num_functions: int) -> None:
    """Turn calls of TensorFlow functions into calls of the client's Python callbacks.

    Raises InvalidArgumentError if a call names a function beyond `num_functions`.
    """
    calls: list[ir.Operation] = []

    def look(operation: ir.Operation) -> ir.WalkResult:
        is_call = operation.name == "stablehlo.custom_call"
        if is_call and _target(operation) == _CALL_FUNCTION:
            calls.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    for call in calls:
        config = ir.DictAttr(call.attributes["tf.backend_config"])
        index = ir.IntegerAttr(config["called_index"]).value
        if not 0 <= index < num_functions:
            raise InvalidArgumentError(
                f"The module calls function {index}, but function_list has {num_functions}"
            )
        ordered = "has_token_input_output" in config
        if ordered and ir.BoolAttr(config["has_token_input_output"]).value:
            raise InvalidArgumentError(
                "Calls of TensorFlow functions in an order are not supported"
            )
        number = ir.IntegerAttr.get(ir.IntegerType.get_unsigned(64), index)
        with ir.InsertionPoint(call):
            made = ir.Operation.create(
                "stablehlo.custom_call",
                results=[value.type for value in call.results],
                operands=list(call.operands),
                attributes={
                    "call_target_name": ir.StringAttr.get(PYTHON_CALLBACK),
                    "has_side_effect": ir.BoolAttr.get(True),
                    "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
                    "backend_config": ir.DictAttr.get({"index": number}),
                },
            )
        for old, new in zip(call.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        call.erase()


def _target(operation: ir.Operation) -> str:
    return str(ir.StringAttr(operation.attributes["call_target_name"]).value)


def _bytecode(module: ir.Module) -> bytes:
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def type_text(array: np.ndarray) -> str:
    """Return the type and shape of an input as the compiler writes them."""
    name = _ELEMENT_TYPES.get(array.dtype)
    if name is None:
        raise InvalidArgumentError(f"XlaCallModule has no inputs of type {array.dtype.name}")
    return f"tensor<{''.join(f'{size}x' for size in array.shape)}{name}>"


def _first_words(message: str) -> str:
    """Return a message of the library up to where it prints the program or a line of its source."""
    message = _SOURCE_LINE.split(message, maxsplit=1)[0]
    words = " ".join(message.split()).split(" note: ")[0].split(" <unknown>:0: note:")[0]
    words = _PREFIX.sub("", words)
    return words[:_LONGEST_MESSAGE].strip()


def _not_read(reason: str) -> OpError:
    return InvalidArgumentError(f"Cannot deserialize computation: {_first_words(reason)}")

"""XlaCallModule: a whole JAX program as one op, compiled and run by `jaxlib`.

A program is compiled for each combination of shapes, one at a time, and the last
`MOST_EXECUTABLES` are kept. Sessions with the same artifact share them.

TF: tensorflow/compiler/tf2xla/kernels/xla_call_module_op.cc
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, OpError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.op_packages.jax.cpu_client import Callback, cpu_client, error_of_client
from runtime.op_packages.jax.stablehlo_module import (
    ModuleAttributes,
    check_artifact,
    refined,
    type_text,
)

MOST_EXECUTABLES = 32  # of a program
_WAIT_SECONDS = 0.05  # between two looks at whether the step has been cancelled
_Signature = tuple[tuple[tuple[int, ...], np.dtype], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class _Compiled:
    """An executable, and the bytes of its outputs and of what it needs meanwhile."""

    executable: Any
    size: int


class Program:
    """An artifact and its executables. Any thread may call it at any time."""

    def __init__(self, attributes: ModuleAttributes) -> None:
        """Raise InvalidArgumentError or NotFoundError if the artifact can't be used."""
        check_artifact(attributes)
        self._attributes = attributes
        self._compiling = threading.Lock()  # held while an executable is made
        self._lock = threading.Lock()  # guards _executables
        self._executables: collections.OrderedDict[_Signature, _Compiled] = (
            collections.OrderedDict()
        )
        # Calls of functions need the step that runs; with them, one step at a time runs.
        self._running = threading.RLock() if attributes.num_functions else None
        self._call: Callable[[int, Sequence[np.ndarray]], list[np.ndarray]] | None = None
        self._error: OpError | None = None

    def run(
        self,
        context: OpKernelContext,
        inputs: Sequence[np.ndarray],
        functions: Sequence[NameAttrList],
    ) -> list[np.ndarray]:
        """Return the outputs. A step that is cancelled ends before or after, not inside, of it."""
        executable = self._executable(context, inputs).executable
        client = cpu_client()
        buffers = [client.put(each) for each in inputs]
        if self._running is None:
            return self._outcome(executable, buffers)
        with _held(self._running, context):
            self._call = lambda index, values: [
                np.asarray(each) for each in context.call_function(functions[index], *values)
            ]
            try:
                return self._outcome(executable, buffers)
            finally:
                self._call = self._error = None

    def need(self, context: OpKernelContext, inputs: Sequence[np.ndarray]) -> int:
        """Return the bytes that a run with these inputs allocates; compiles the program for it."""
        copies = sum(each.nbytes for each in inputs)  # of those that are not aligned
        return self._executable(context, inputs).size + copies

    def _outcome(self, executable: Any, buffers: Sequence[Any]) -> list[np.ndarray]:
        try:
            return cpu_client().execute(executable, buffers)
        except Exception as error:  # the client's own class
            if self._error is not None:
                raise self._error from None
            raise error_of_client(error) from None

    def _executable(self, context: OpKernelContext, inputs: Sequence[np.ndarray]) -> _Compiled:
        signature = tuple((each.shape, each.dtype) for each in inputs)
        found = self._known(signature)
        if found is not None:
            return found
        with _held(self._compiling, context):
            found = self._known(signature)
            if found is None:
                context.cancellation.check()
                found = self._compiled(inputs)
                with self._lock:
                    self._executables[signature] = found
                    while len(self._executables) > MOST_EXECUTABLES:
                        self._executables.popitem(last=False)
            return found

    def _known(self, signature: _Signature) -> _Compiled | None:
        with self._lock:
            found = self._executables.get(signature)
            if found is not None:
                self._executables.move_to_end(signature)
            return found

    def _compiled(self, inputs: Sequence[np.ndarray]) -> _Compiled:
        module = refined(self._attributes, [type_text(each) for each in inputs])
        # The client keeps a callback as long as the executable: it must not keep the program.
        program = weakref.ref(self)
        callbacks = [_callback(program, index) for index in range(self._attributes.num_functions)]
        try:
            with module.context:
                executable = cpu_client().compile(module, callbacks)
        except Exception as error:  # the client's own class
            raise error_of_client(error, "The module can't be compiled: ") from None
        sizes = executable.get_compiled_memory_stats()
        # Each output is copied once more if numpy can't have the client's memory.
        size = 2 * sizes.output_size_in_bytes + sizes.temp_size_in_bytes
        return _Compiled(executable, size)

    def call(self, index: int, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run function `index` in the step that runs now."""
        assert self._call is not None
        try:
            return self._call(index, values)
        except OpError as error:
            self._error = error
            raise


@contextlib.contextmanager
def _held(lock: threading.Lock | threading.RLock, context: OpKernelContext) -> Iterator[None]:
    """Hold a lock. Raises the step's error if the step is cancelled while it waits."""
    while not lock.acquire(timeout=_WAIT_SECONDS):
        context.cancellation.check()
    try:
        yield
    finally:
        lock.release()


def _callback(program: weakref.ref[Program], index: int) -> Callback:
    def call(*values: np.ndarray) -> tuple[np.ndarray, ...]:
        owner = program()
        assert owner is not None
        return tuple(owner.call(index, values))  # the client takes nothing but a tuple

    return call


_lock = threading.Lock()  # guards _programs
# Sessions hold the programs of their nodes.
_programs: weakref.WeakValueDictionary[ModuleAttributes, Program] = weakref.WeakValueDictionary()


def program_of(attributes: ModuleAttributes) -> Program:
    """Return the program of an artifact, the same one while any session has it."""
    with _lock:
        found = _programs.get(attributes)
    if found is None:
        made = Program(attributes)
        with _lock:
            found = _programs.setdefault(attributes, made)
    return found


def xla_call_module(
    context: OpKernelContext,
    *args: np.ndarray,
    function_list: Sequence[NameAttrList],
    Tout: Sequence[DataType],  # noqa: N803 # the attribute's name
) -> list[np.ndarray]:
    """XlaCallModule: run the program of a StableHLO artifact on the inputs.

    The shapes of the outputs are those that the program computes. Raises InvalidArgumentError if
    the artifact is damaged or of another version, or if the inputs do not fit it; NotFoundError if
    it is for other platforms.
    """
    inputs = [np.asarray(each) for each in args]
    outputs = _program_of_node(context).run(context, inputs, function_list)
    types = [each.dtype for each in outputs]
    if types != [each.numpy for each in Tout]:
        raise InvalidArgumentError(
            f"The module returns {[each.name for each in types]}, but Tout is "
            f"{[each.tf_name for each in Tout]}"
        )
    return outputs


def _memory(context: OpKernelContext, *args: np.ndarray) -> int:
    return _program_of_node(context).need(context, [np.asarray(each) for each in args])


def _program_of_node(context: OpKernelContext) -> Program:
    program: Program = context.kernel_state(lambda: program_of(_attributes(context.attr)))
    return program


def _attributes(given: Callable[[str], Any]) -> ModuleAttributes:
    return ModuleAttributes(
        given("module").encode("utf-8", "surrogateescape"),  # its bytes arrive as text
        given("version"),
        tuple(given("platforms")),
        frozenset(given("disabled_checks")),
        len(given("function_list")),
        given("use_shardy_partitioner"),
    )


def check_node(node: pb.NodeDef) -> None:
    """Raise what `xla_call_module` raises for the attributes of a node."""
    given = node.attr
    program_of(
        ModuleAttributes(
            given["module"].s,
            given["version"].i,
            tuple(each.decode() for each in given["platforms"].list.s),
            frozenset(each.decode() for each in given["disabled_checks"].list.s),
            len(given["function_list"].list.func),
            given["use_shardy_partitioner"].b,
        )
    )


KERNELS = (
    KernelDef("XlaCallModule", xla_call_module, expensive=True, memory=_memory, check=check_node),
)

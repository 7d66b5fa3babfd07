"""The kernel contract: functions from arrays to arrays, and the context that some of them require.

A kernel is a plain function:

    def concat_v2(*inputs):                                # inputs positional, lists flattened
    def conv2d(x, filter, *, strides, padding, data_format, dilations, explicit_paddings):
    def assign_variable(context, handle, value):           # first parameter `context`: stateful

* Positional parameters are the op's inputs in the order of its OpDef; an input that is a list
  (`number_attr`, `type_list_attr`) contributes its elements one by one.
* Keyword-only parameters are attributes by their names, converted by `attr_value`, with the
  OpDef's defaults filled in. A function's signature is inspected once.
* The kernel of an op with exactly one output that is not a list returns the array; all others
  return a tuple or list with one element for each output (list outputs flattened), or None if
  the op has no outputs.
* A kernel never writes into its inputs. It may return an input (or a view of it) as its output.
* Values are numpy arrays or numpy scalars (rank 0); strings are object arrays of bytes; resources
  and variants are Python objects (`ResourceHandle`, `TensorList`, …). A reference input of a
  stateful op (`is_ref` in its OpDef) arrives as the `Variable`.
* Errors are `runtime.foundation.errors`; the executor adds the node's name.

TF: tensorflow/core/framework/op_kernel.h (OpKernel, OpKernelContext)
"""

from __future__ import annotations

import dataclasses
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

import protos as pb
from runtime.foundation.errors import OpError
from runtime.framework.attr_value import AttributeValue, NameAttrList
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import ResourceManager
from runtime.framework.tensor_value import TensorValue

# What a kernel returns: an output, a tuple or list of several, or a Deferred of these. The op's
# signature determines which, so a type checker can't know it.
KernelResult: TypeAlias = Any

# Takes the inputs, then attributes by keyword; the op's signature determines their types.
Kernel: TypeAlias = Callable[..., KernelResult]

# What the kernel of a node keeps in the session between steps, of a type of the kernel's own.
KernelState: TypeAlias = Any


class _Dead:
    def __repr__(self) -> str:
        return "<dead>"


# The value of an output on the untaken branch of a Switch: nodes that read it are not executed.
DEAD = _Dead()


@dataclasses.dataclass(frozen=True, slots=True)
class KernelDef:
    """One row of a kernel table.

    `constraints` lists the element types (or strings) that an attribute may have for this kernel;
    an attribute that is not listed may have any value that the OpDef allows. An `asynchronous`
    kernel may return a `Deferred`. An `expensive` kernel takes long enough to be worth a thread of
    its own.

    `fresh` guarantees, for all inputs, that the first output is newly allocated memory to which no
    other object refers. `in_place` computes the same result in the memory of the first input and
    returns that input, or a new array where it can't. It is a function with the parameters of
    `function`, or the name of an augmented assignment such as `+=`; it may raise ValueError, but
    must then have changed nothing. Only plans use it, with a fresh first input of the output's
    type that no other node reads.
    """

    op: str
    function: Kernel
    constraints: Mapping[str, tuple[DataType | str, ...]] = dataclasses.field(default_factory=dict)
    device_type: str = "CPU"
    asynchronous: bool = False
    expensive: bool = False
    fresh: bool = False
    in_place: Kernel | str | None = None

    @property
    def needs_context(self) -> bool:
        """Whether the first positional parameter is the OpKernelContext."""
        return _signature(self.function)[0]

    @property
    def attr_names(self) -> tuple[str, ...]:
        """The names of the attributes that the function takes."""
        return _signature(self.function)[1]


_signatures: dict[Kernel, tuple[bool, tuple[str, ...]]] = {}


def _signature(function: Kernel) -> tuple[bool, tuple[str, ...]]:
    """(takes the context, names of keyword-only parameters), computed once for each function."""
    known = _signatures.get(function)
    if known is None:
        # A numpy ufunc takes inputs only: its keyword arguments (`where`, …) are not attributes.
        is_ufunc = isinstance(function, np.ufunc)
        parameters = [] if is_ufunc else list(inspect.signature(function).parameters.values())
        needs_context = bool(parameters) and parameters[0].name == "context"
        names = tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
        known = _signatures[function] = (needs_context, names)
    return known


class NodeView(Protocol):
    """The part of a node that its kernel may read."""

    @property
    def name(self) -> str:
        """The node's name."""

    @property
    def op(self) -> str:
        """The op's name."""

    def attr(self, name: str) -> AttributeValue:
        """The Python value of an attribute or its default; NotFoundError when there is none."""


class FileGate(Protocol):
    """The check of which files a step may access."""

    def check_read(self, path: str) -> None:
        """Raise PermissionDeniedError unless `path` may be read."""

    def check_write(self, path: str) -> None:
        """Raise PermissionDeniedError unless `path` may be written."""


class SessionState(Protocol):
    """The part of a session that kernels use: its resources and the state kept for its nodes."""

    resources: ResourceManager
    kernel_state: dict[str, KernelState]
    kernel_state_lock: threading.RLock
    session_handle: str

    def check_device(self, name: str) -> None:
        """Raise unless the session has a device of that name; "" is accepted."""


class StepState(Protocol):
    """The part of a step that kernels use."""

    step_id: int
    session: SessionState
    cancellation: CancellationManager
    files: FileGate

    @property
    def resources(self) -> ResourceManager:
        """The resources that live as long as the step: TensorArrays, stacks."""

    def send(self, key: str, value: TensorValue) -> None:
        """Send a value to the step's rendezvous under `key`."""

    def receive(self, key: str) -> Deferred:
        """A Deferred of the value that is or will be sent to the step's rendezvous at `key`."""

    def call_function(
        self, function: NameAttrList, arguments: Sequence[TensorValue]
    ) -> list[TensorValue]:
        """Run a function of the graph's library in this step, in the calling thread."""

    def may_wait(self, function: NameAttrList) -> bool:
        """Whether a function contains operations that may wait for other steps (queues, …)."""

    def start_function(self, function: NameAttrList, arguments: Sequence[TensorValue]) -> Deferred:
        """Start a function that may wait for other steps; a Deferred of its outputs."""

    def function_definitions(self, names: Iterable[str]) -> pb.FunctionDefLibrary:
        """The definitions of functions of the graph's library, and of all functions they call."""

    def function_runner(self, library: pb.FunctionDefLibrary) -> Any:
        """An object that runs the functions of another library, for `with_functions`."""

    def with_functions(self, runner: Any) -> StepState:
        """This step with the functions of a `function_runner` in place of the graph's library."""


class OpKernelContext:
    """The node that is executed and the step in which it is executed."""

    __slots__ = ("node", "step")

    def __init__(self, node: NodeView, step: StepState) -> None:
        self.node = node
        self.step = step

    @property
    def resources(self) -> ResourceManager:
        """The session's resources."""
        return self.step.session.resources

    @property
    def cancellation(self) -> CancellationManager:
        """The step's cancellation; kernels must call its `check` in loops that may be long."""
        return self.step.cancellation

    def attr(self, name: str) -> AttributeValue:
        """The Python value of an attribute of the node."""
        return self.node.attr(name)

    def call_function(self, function: NameAttrList, *arguments: TensorValue) -> list[TensorValue]:
        """Run a function of the graph's library on `arguments`; return its outputs in order."""
        return self.step.call_function(function, arguments)

    def start_function(
        self, function: NameAttrList, *arguments: TensorValue
    ) -> list[TensorValue] | Deferred:
        """Start a function; return its outputs, or a Deferred if it may wait for other steps."""
        if self.step.may_wait(function):
            return self.step.start_function(function, arguments)
        return self.step.call_function(function, arguments)

    def kernel_state(self, create: Callable[[], KernelState]) -> KernelState:
        """The state that the session keeps for this node, created by `create` at first use."""
        session = self.step.session
        state = session.kernel_state.get(self.node.name)
        if state is None:
            with session.kernel_state_lock:
                state = session.kernel_state.get(self.node.name)
                if state is None:
                    state = session.kernel_state[self.node.name] = create()
        return state


class Deferred:
    """The future result of an asynchronous kernel.

    Guarantees: thread-safe; completes once (a later `set_*` has no effect and returns False); the
    callback is called exactly once, in the thread that completes the Deferred, or in the thread
    that sets the callback if it is complete by then.
    """

    __slots__ = ("_callback", "_done", "_lock", "error", "value")

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _done and _callback
        self._callback: Callable[[Deferred], None] | None = None
        self._done = False
        self.value: KernelResult = None
        self.error: OpError | None = None

    def set_value(self, value: KernelResult) -> bool:
        """Complete with the kernel's outputs; False when already complete."""
        return self._complete(value, None)

    def set_error(self, error: OpError) -> bool:
        """Complete with an error; False when already complete."""
        return self._complete(None, error)

    def _complete(self, value: KernelResult, error: OpError | None) -> bool:
        with self._lock:
            if self._done:
                return False
            self._done = True
            self.value, self.error = value, error
            callback = self._callback
        if callback is not None:
            callback(self)
        return True

    def when_done(self, callback: Callable[[Deferred], None]) -> None:
        """Call `callback(self)` at completion; at most one callback may be set."""
        with self._lock:
            if not self._done:
                self._callback = callback
                return
        callback(self)

    def until_cancelled(
        self, cancellation: CancellationManager, cancel: Callable[[], object]
    ) -> Deferred:
        """A new Deferred with the result of this one, for a step that may be cancelled.

        When the step is cancelled, `cancel` is called; it must complete this Deferred with an error
        unless it is complete. The registration with `cancellation` ends when this Deferred
        completes. Uses the one callback of this Deferred.
        """
        result = Deferred()
        token = cancellation.add_callback(cancel)

        def settle(done: Deferred) -> None:
            cancellation.remove_callback(token)
            result._complete(done.value, done.error)

        self.when_done(settle)
        if token is None:  # the step is cancelled already
            cancel()
        return result

    def wait(self) -> KernelResult:
        """Block the calling thread until complete; return the value or raise the error."""
        event = threading.Event()
        self.when_done(lambda _: event.set())
        event.wait()
        if self.error is not None:
            raise self.error
        return self.value

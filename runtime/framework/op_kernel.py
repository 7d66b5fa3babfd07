"""Kernels: functions from arrays to arrays, and the context that a few of them need.

A kernel is a plain function:

    def concat_v2(*inputs):                                # inputs positional, lists flattened
    def conv2d(x, filter, *, strides, padding, data_format, dilations, explicit_paddings):
    def assign_variable(context, handle, value):           # first parameter `context`: stateful

* Positional parameters are the op's inputs in the order of its OpDef; an input that is a list
  (`number_attr`, `type_list_attr`) contributes its elements one by one.
* Keyword-only parameters are attributes by their names, as `attr_value` reads them, with the
  OpDef's defaults filled in. `kernel_registry` looks at the signature once.
* An op with exactly one output that is not a list returns the array; every other op returns a
  tuple or list with one element an output (list outputs flattened); an op without outputs
  returns None.
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
from typing import Any, Protocol

import numpy as np

import protos as pb
from runtime.foundation.errors import OpError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.cancellation import CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import ResourceManager

Kernel = Callable[..., Any]


class _Dead:
    def __repr__(self) -> str:
        return "<dead>"


# The output on the untaken side of a Switch: its readers do not run.
DEAD = _Dead()


@dataclasses.dataclass(frozen=True, slots=True)
class KernelDef:
    """One row of a kernel table.

    `constraints` lists the element types (or strings) that an attribute may have for this kernel;
    an attribute that is not named may have any value that the OpDef allows. `asynchronous` kernels
    may return a `Deferred`. `expensive` ones are worth a thread of their own.

    `fresh` promises that the first output is memory that nobody else holds, at every input.
    `in_place` computes the same into the first input and returns it, or something new where that
    cannot be: a function like `function`, or an augmented assignment such as `+=`, which may raise
    ValueError and must then have changed nothing. Only plans call it, with a fresh first input of
    the output's type that has no other reader.
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
        """The attributes that the function takes."""
        return _signature(self.function)[1]


_signatures: dict[Kernel, tuple[bool, tuple[str, ...]]] = {}


def _signature(function: Kernel) -> tuple[bool, tuple[str, ...]]:
    """(needs the context, names of keyword-only parameters), computed once a function."""
    known = _signatures.get(function)
    if known is None:
        # A numpy ufunc takes inputs only: its keyword arguments (`where`, …) are no attributes.
        is_ufunc = isinstance(function, np.ufunc)
        parameters = [] if is_ufunc else list(inspect.signature(function).parameters.values())
        needs_context = bool(parameters) and parameters[0].name == "context"
        names = tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
        known = _signatures[function] = (needs_context, names)
    return known


class NodeView(Protocol):
    """What a kernel may know of its node."""

    @property
    def name(self) -> str:
        """The node's name."""

    @property
    def op(self) -> str:
        """The op's name."""

    def attr(self, name: str) -> Any:
        """An attribute's Python value, defaults included; NotFoundError when there is none."""


class FileGate(Protocol):
    """Decides which files a step may touch."""

    def check_read(self, path: str) -> None:
        """Raise PermissionDeniedError unless `path` may be read."""

    def check_write(self, path: str) -> None:
        """Raise PermissionDeniedError unless `path` may be written."""


class SessionState(Protocol):
    """What outlives a step: the session's resources and the state of its kernels."""

    resources: ResourceManager
    kernel_state: dict[str, Any]
    kernel_state_lock: threading.RLock
    session_handle: str

    def check_device(self, name: str) -> None:
        """Raise unless the session has a device of that name; "" is any."""


class StepState(Protocol):
    """What belongs to one step."""

    step_id: int
    session: SessionState
    cancellation: CancellationManager
    files: FileGate

    @property
    def resources(self) -> ResourceManager:
        """The step's own: TensorArrays, stacks."""

    def send(self, key: str, value: Any) -> None:
        """Put a value into the step's rendezvous."""

    def receive(self, key: str) -> Deferred:
        """Take a value out of the step's rendezvous, when it comes."""

    def call_function(self, function: NameAttrList, arguments: Sequence[Any]) -> list[Any]:
        """Run a function of the graph's library in this step, in this thread."""

    def may_wait(self, function: NameAttrList) -> bool:
        """Whether a function has operations that wait for other steps (queues, …)."""

    def start_function(self, function: NameAttrList, arguments: Sequence[Any]) -> Deferred:
        """Begin a function that may wait; its outputs come later, and no thread waits for them."""

    def function_definitions(self, names: Iterable[str]) -> pb.FunctionDefLibrary:
        """Functions of the graph's library, and all that they call."""

    def function_runner(self, library: pb.FunctionDefLibrary) -> Any:
        """What runs the functions of another library: for `with_functions`."""

    def with_functions(self, runner: Any) -> StepState:
        """The same step, whose functions are those of a `function_runner`."""


class OpKernelContext:
    """The node that runs and the step that it runs in."""

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
        """The step's cancellation: `check()` it in every loop that may be long."""
        return self.step.cancellation

    def attr(self, name: str) -> Any:
        """An attribute of the node."""
        return self.node.attr(name)

    def call_function(self, function: NameAttrList, *arguments: Any) -> list[Any]:
        """Run a function of the graph's library on `arguments`; its outputs in order."""
        return self.step.call_function(function, arguments)

    def start_function(self, function: NameAttrList, *arguments: Any) -> list[Any] | Deferred:
        """The function's outputs, or a Deferred of them when it may wait for other steps."""
        if self.step.may_wait(function):
            return self.step.start_function(function, arguments)
        return self.step.call_function(function, arguments)

    def kernel_state(self, create: Callable[[], Any]) -> Any:
        """The state that the session keeps for this node, made by `create` at first use."""
        session = self.step.session
        state = session.kernel_state.get(self.node.name)
        if state is None:
            with session.kernel_state_lock:
                state = session.kernel_state.get(self.node.name)
                if state is None:
                    state = session.kernel_state[self.node.name] = create()
        return state


class Deferred:
    """The result of an asynchronous kernel that is not there yet.

    Guarantees: thread-safe; completes once (a later `set_*` is ignored and returns False); the
    callback runs exactly once, in the completing thread or at once when already complete.
    """

    __slots__ = ("_callback", "_done", "_lock", "error", "value")

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _done and _callback
        self._callback: Callable[[Deferred], None] | None = None
        self._done = False
        self.value: Any = None
        self.error: OpError | None = None

    def set_value(self, value: Any) -> bool:
        """Complete with the kernel's outputs."""
        return self._complete(value, None)

    def set_error(self, error: OpError) -> bool:
        """Complete with a failure."""
        return self._complete(None, error)

    def _complete(self, value: Any, error: OpError | None) -> bool:
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
        """The same result, to wait for in a step: its cancellation calls `cancel`.

        `cancel` completes this Deferred with its error, unless it is complete already; it is
        forgotten once this is. Takes the one callback of this Deferred.
        """
        result = Deferred()
        token = cancellation.add_callback(cancel)

        def settle(done: Deferred) -> None:
            cancellation.remove_callback(token)
            result._complete(done.value, done.error)

        self.when_done(settle)
        if token is None:  # cancelled before
            cancel()
        return result

    def wait(self) -> Any:
        """Block this thread until complete; the value, or the error raised."""
        event = threading.Event()
        self.when_done(lambda _: event.set())
        event.wait()
        if self.error is not None:
            raise self.error
        return self.value

"""The kernel contract: kernels are functions from arrays to arrays; some also take a context.

A step is one execution of Session.run. A kernel is a plain function:

    def concat_v2(*inputs):                                # inputs positional, lists flattened
    def conv2d(x, filter, *, strides, padding, data_format, dilations, explicit_paddings):
    def assign_variable(context, handle, value):           # first parameter `context`: stateful

* Positional parameters are the op's inputs in the order of its OpDef. If an input is a list
  (`number_attr`, `type_list_attr`), each element of the list is an argument of its own.
* Keyword-only parameters are attributes with the same names. Their values are converted by
  `attr_value`; the OpDef's defaults are filled in. A function's signature is inspected once.
* If the op has exactly one output and the output is not a list, the kernel returns the array. If
  the op has no outputs, it returns None. Otherwise it returns a tuple or list with one element for
  each output (list outputs flattened).
* A kernel must not write into its inputs. It may return an input, or a view of one, as its output.
* Values are numpy arrays or numpy scalars (rank 0); strings are object arrays of bytes; resources
  and variants are Python objects (`ResourceHandle`, `TensorList`, …). A reference input of a
  stateful op (`is_ref` in its OpDef) arrives as the `Variable`.
* A kernel that may take longer than 50 ms calls `context.cancellation.check()`, or `check_task` of
  `runtime.foundation.running_task` if it has no context, in its loops.
* A kernel raises the errors of `runtime.foundation.errors`; the executor adds the node's name.

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
from runtime.framework.derived_values import DerivedValues
from runtime.framework.dtypes import DataType
from runtime.framework.memory_account import MemoryAccount, SessionAccount
from runtime.framework.resource_manager import ResourceManager
from runtime.framework.tensor_value import TensorValue

# What a kernel returns: an output, a tuple or list of outputs, or a Deferred of one of these. The
# op's signature determines the type, so a type checker can't know it.
KernelResult: TypeAlias = Any

# A kernel takes the inputs, then attributes by keyword; the op's signature determines their types.
Kernel: TypeAlias = Callable[..., KernelResult]

# A bound on the memory of one call: it takes the kernel's inputs, then those attributes by keyword
# that it names, and returns bytes. See `KernelDef.memory`.
MemoryNeed: TypeAlias = Callable[..., int]

# What a kernel keeps in the session for a node between steps; each kernel chooses the type.
KernelState: TypeAlias = Any


class _Dead:
    def __repr__(self) -> str:
        return "<dead>"


# The value of an output on the untaken branch of a Switch; a node that reads it is not executed.
DEAD = _Dead()


@dataclasses.dataclass(frozen=True, slots=True)
class KernelDef:
    """One row of a kernel table.

    `constraints` lists, for each attribute, the element types (or strings) that this kernel
    supports; an attribute that is not listed may have any value that the OpDef allows. An
    `asynchronous` kernel may return a `Deferred`. An `expensive` kernel runs long enough that it
    should get a thread of its own.

    If `fresh`, the kernel must always return its first output in newly allocated memory to which
    no other object refers. `in_place` writes the same result into the memory of the first input
    and returns that input, or returns a new array if it can't. It is a function with the
    parameters of `function`, or the name of an augmented assignment such as `+=`. It may raise
    ValueError, but must then have changed nothing. Only step plans (`runtime.executors`) call it,
    and only if the first input is fresh, has the output's type and is read by no other node.

    `memory` returns an upper bound in bytes of what a call allocates: outputs and temporaries, also
    of strings and of the elements of lists. It has the parameters of `function`, but only those
    keyword-only ones that it reads, and `context` only if the bound depends on a resource. It may
    raise what `function` raises for the same inputs, and must allocate nothing that grows with
    them. If it is a number instead, outputs and temporaries need at most that many times the bytes
    of all inputs, and an output has not more elements than all inputs together, or than the
    largest if there are no others but constants; what a resource or a list gives is not new. If it
    is None, this is not known, and outputs are looked at after each call. The built-in kernels
    have theirs in `memory_needs.py` of their room.

    `check` looks at a node before a model is served, and raises what would make each step fail that
    reaches the node: an attribute with a damaged program, for example. `constants` has functions
    that read inputs, by their index: they get the constants that reach these inputs, also by way of
    functions, and raise likewise. Only kernels of op packages are asked.
    """

    op: str
    function: Kernel
    constraints: Mapping[str, tuple[DataType | str, ...]] = dataclasses.field(default_factory=dict)
    device_type: str = "CPU"
    asynchronous: bool = False
    expensive: bool = False
    fresh: bool = False
    in_place: Kernel | str | None = None
    memory: MemoryNeed | int | None = None
    check: Callable[[pb.NodeDef], object] | None = None
    constants: Mapping[int, Callable[[np.ndarray], object]] = dataclasses.field(
        default_factory=dict
    )

    @property
    def needs_context(self) -> bool:
        """Whether the first positional parameter is the OpKernelContext."""
        return signature(self.function)[0]

    @property
    def attr_names(self) -> tuple[str, ...]:
        """The names of the attributes that the function takes."""
        return signature(self.function)[1]


_signatures: dict[Kernel, tuple[bool, tuple[str, ...]]] = {}


def signature(function: Kernel) -> tuple[bool, tuple[str, ...]]:
    """Return (whether `function` takes the context, the names of its keyword-only parameters).

    The result is computed once for each function.
    """
    known = _signatures.get(function)
    if known is None:
        # The keyword arguments of a numpy ufunc (`where`, …) are not attributes.
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
        """Return the Python value of an attribute, or the attribute's default value.

        Raises NotFoundError if the op has no attribute `name`.
        """


class FileGate(Protocol):
    """The checks of whether a step may access a file."""

    def check_read(self, path: str) -> None:
        """Raise PermissionDeniedError unless `path` may be read."""

    def check_write(self, path: str) -> None:
        """Raise PermissionDeniedError unless `path` may be written."""


class SessionState(Protocol):
    """The part of a session that kernels use: resources, and the state that nodes keep."""

    resources: ResourceManager
    kernel_state: dict[str, KernelState]
    kernel_state_lock: threading.RLock
    session_handle: str
    memory: SessionAccount | None

    def check_device(self, name: str) -> None:
        """Raise unless `name` is "" or the session has a device of that name."""


class StepState(Protocol):
    """The part of a step that kernels use."""

    step_id: int
    session: SessionState
    cancellation: CancellationManager
    files: FileGate
    is_low_priority: bool
    memory: MemoryAccount | None
    derived: DerivedValues | None

    @property
    def resources(self) -> ResourceManager:
        """The resources that live only as long as the step, such as TensorArrays and stacks."""

    def send(self, key: str, value: TensorValue) -> None:
        """Send a value to the step's rendezvous under `key`."""

    def receive(self, key: str) -> Deferred:
        """Return a Deferred of the value that is or will be sent to the rendezvous under `key`."""

    def call_function(
        self, function: NameAttrList, arguments: Sequence[TensorValue]
    ) -> list[TensorValue]:
        """Run a function of the graph's library in the calling thread and return its outputs."""

    def may_wait(self, function: NameAttrList) -> bool:
        """Return whether `function` has operations that may wait for other steps (queues, …)."""

    def start_function(self, function: NameAttrList, arguments: Sequence[TensorValue]) -> Deferred:
        """Start a function that may wait for other steps; return a Deferred of its outputs."""

    def function_definitions(self, names: Iterable[str]) -> pb.FunctionDefLibrary:
        """Return the definitions of the functions `names` and of all functions that they call."""

    def function_runner(self, library: pb.FunctionDefLibrary) -> Any:
        """Return an object that runs the functions of `library`; `with_functions` takes it."""

    def with_functions(self, runner: Any) -> StepState:
        """Return this step with `runner`'s functions instead of those in the graph's library.

        `runner` must be a result of `function_runner`.
        """


class OpKernelContext:
    """The node that is executed and the step in which it is executed."""

    # `elements` is set only while an iterator produces an element: where iterators note theirs.
    __slots__ = ("elements", "node", "step")
    elements: Any

    def __init__(self, node: NodeView, step: StepState) -> None:
        self.node = node
        self.step = step

    @property
    def resources(self) -> ResourceManager:
        """The session's resources."""
        return self.step.session.resources

    @property
    def cancellation(self) -> CancellationManager:
        """The step's CancellationManager; kernels must call `check` on it in long loops."""
        return self.step.cancellation

    def attr(self, name: str) -> AttributeValue:
        """Return the Python value of an attribute of the node."""
        return self.node.attr(name)

    def call_function(self, function: NameAttrList, *arguments: TensorValue) -> list[TensorValue]:
        """Run a function of the graph's library on `arguments`; return its outputs in order."""
        return self.step.call_function(function, arguments)

    def start_function(
        self, function: NameAttrList, *arguments: TensorValue
    ) -> list[TensorValue] | Deferred:
        """Start `function`; return the outputs, or a Deferred of them if `function` may wait."""
        if self.step.may_wait(function):
            return self.step.start_function(function, arguments)
        return self.step.call_function(function, arguments)

    def kernel_state(self, create: Callable[[], KernelState]) -> KernelState:
        """Return the state that the session keeps for this node; call `create` at first use."""
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

    Guarantees: thread-safe; it completes once (a later `set_value` or `set_error` has no effect and
    returns False). The callback is called exactly once: in the thread that sets the callback if the
    Deferred is already complete, otherwise in the thread that completes the Deferred.
    """

    __slots__ = ("_callback", "_done", "_lock", "error", "value")

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards `_done` and `_callback`
        self._callback: Callable[[Deferred], None] | None = None
        self._done = False
        self.value: KernelResult = None
        self.error: OpError | None = None

    def set_value(self, value: KernelResult) -> bool:
        """Complete with the kernel's outputs; if already complete, only return False."""
        return self._complete(value, None)

    def set_error(self, error: OpError) -> bool:
        """Complete with an error; if already complete, only return False."""
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
        """Call `callback(self)` when this Deferred completes; must not be called twice."""
        with self._lock:
            if not self._done:
                self._callback = callback
                return
        callback(self)

    def until_cancelled(
        self, cancellation: CancellationManager, cancel: Callable[[], object]
    ) -> Deferred:
        """Return a new Deferred with the result of this one, for a step that may be cancelled.

        If `cancellation` is cancelled before this Deferred completes, `cancel` is called, which
        must complete this Deferred with an error. This method sets the callback of this Deferred,
        so the caller must not set one.
        """
        result = Deferred()
        token = cancellation.add_callback(cancel)

        def settle(done: Deferred) -> None:
            cancellation.remove_callback(token)
            result._complete(done.value, done.error)

        self.when_done(settle)
        if token is None:  # the step has already been cancelled
            cancel()
        return result

    def wait(self) -> KernelResult:
        """Block the calling thread until completion; then return the value or raise the error."""
        event = threading.Event()
        self.when_done(lambda _: event.set())
        event.wait()
        if self.error is not None:
            raise self.error
        return self.value

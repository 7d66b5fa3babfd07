"""Target: something that takes bytes from strangers, and what must hold for any bytes.

An outcome is a word and, after a space, details. A word in small letters is right; one in capitals
is a finding. Whatever the target, these are findings: an exception that is no OpError (RAISES), an
OpError of the codes INTERNAL and UNKNOWN that hides one (FAULT), and an error in the log (LOGGED).
"""

from __future__ import annotations

import abc
import gc
import logging
import random
import re
import traceback
import types
from collections.abc import Iterator
from typing import ClassVar

from runtime.errors import Code, OpError
from runtime.registrations import kernel_registry
from tests.fuzz.children import INPUTS_A_CHILD, Limits, enter
from tests.fuzz.mutate_bytes import smaller_bytes

LIMITS = Limits(seconds=10.0, wall_seconds=240.0, memory_bytes=3 << 30, growth_bytes=1 << 30)
_OURS = re.compile(r"((?:runtime|server|protos)/.*)")
_EXCEPTION = re.compile(r"\w+(?:Error|Exception|Warning): |assert", re.ASCII)


class Target(abc.ABC):
    """One target; it is made in the parent, and its children are forks of the parent.

    The parent must not have threads when it forks. `start` is called in each child and may start
    some.
    """

    name: ClassVar[str]
    limits: ClassVar[Limits] = LIMITS
    inputs_a_child: ClassVar[int] = INPUTS_A_CHILD

    def load(self) -> None:
        """Read what inputs are made from, in the parent, before it makes them or has children."""
        return

    def start(self) -> None:
        """Prepare a child for inputs."""
        return

    @abc.abstractmethod
    def make(self, random_state: random.Random) -> bytes:
        """Return an input; the same random numbers must give the same one."""

    @abc.abstractmethod
    def run(self, data: bytes) -> str:
        """Return the outcome of an input."""

    def smaller(self, data: bytes) -> Iterator[bytes]:
        """Yield inputs that are parts of one, large steps first."""
        yield from smaller_bytes(data)

    def show(self, data: bytes) -> str:
        """Return a form of an input to be read."""
        return repr(data)


def import_kernels() -> None:
    """Import the kernels of all rooms in the parent, so that its children have them."""
    assert kernel_registry().ops
    gc.freeze()  # so that collections in the children don't copy what they share


def input_of(target: Target, seed: int, number: int) -> bytes:
    """Return the input that has this seed and number; `target` must have been loaded."""
    return target.make(random.Random(f"{target.name}/{seed}/{number}"))


class Watch(logging.Handler):
    """Collects what is logged as an error while an input is handled."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @classmethod
    def begin(cls) -> Watch:
        """Take the place of what the root logger has."""
        watch = cls()
        logging.getLogger().handlers[:] = [watch]
        return watch

    def outcome(self) -> str:
        """Return LOGGED with the first record's exception or text, or nothing; then forget."""
        records, self.records = self.records, []
        for record in records:
            error = record.exc_info[1] if record.exc_info else None
            text = place(error) if error is not None else record.getMessage()
            return f"LOGGED {record.name}: {text}"
        return ""


def observed(target: Target, watch: Watch, data: bytes) -> str:
    """Return the outcome of an input, or what was logged, or what was raised."""
    enter("run")
    try:
        outcome = target.run(data)
    except Exception as error:
        watch.outcome()
        return f"RAISES {place(error)}"
    logged = watch.outcome()
    if outcome.split(" ", 1)[0].isupper():
        # What the log says about the error of a step has the place where it was raised.
        return f"{outcome} {logged}" if logged and " at " not in outcome else outcome
    return logged or outcome


def outcome_of(error: OpError) -> str:
    """Return the outcome that an OpError is: its code, or FAULT if it hides an exception."""
    hidden = error.__cause__
    if error.code in (Code.INTERNAL, Code.UNKNOWN):
        if hidden is not None and not isinstance(hidden, OpError):
            return f"FAULT {place(hidden)}"
        if _EXCEPTION.match(error.message):
            return f"FAULT {error.message}"
    return error.code.name.lower()


def place(error: BaseException) -> str:
    """Return the class, the innermost place in this project, and the message of an exception."""
    where = ""
    for frame, _ in traceback.walk_tb(_with_frames(error)):
        found = _OURS.search(frame.f_code.co_filename)
        if found and "tests/" not in frame.f_code.co_filename:
            where = f"{found[1]}:{frame.f_code.co_name}"
    return f"{type(error).__name__} at {where}: {str(error)[:300]}"


def _with_frames(error: BaseException) -> types.TracebackType | None:
    return error.__traceback__ or (error.__cause__ and error.__cause__.__traceback__)


def signature(outcome: str) -> str:
    """Return what findings of one kind have in common: the outcome without values."""
    word, _, rest = outcome.partition(" ")
    if word in ("MEMORY", "DIFFERS"):
        return word
    at = re.search(r"(\w+) at ([\w/.]+:[\w<>]+)", rest)
    if at:
        return f"{word} {at[1]} {at[2]}"
    at = re.search(r"at ([\w/.]+:[\w<>]+)", rest)
    if at:
        return f"{word} {at[1]}"
    return f"{word} {re.sub(r'[^A-Za-z ]+', '#', rest)[:80]}"

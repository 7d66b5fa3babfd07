"""What happens on division by zero, overflow and the like: nothing, as in TensorFlow.

numpy warns unless its error state says otherwise, and to enter an error state takes 1 µs. A program
that runs nothing else, as a server, sets the state once for all that it does.

Guarantees: the mark and numpy's error state are variables of the same context, so that a thread or
a task which inherits one of them has the other.
"""

from __future__ import annotations

import contextlib
import contextvars
from contextlib import AbstractContextManager

import numpy as np

are_ignored = contextvars.ContextVar("runstep_float_errors_are_ignored", default=False)
_AS_IT_IS: AbstractContextManager[None] = contextlib.nullcontext()


def ignore_float_errors() -> None:
    """Let numpy ignore all floating-point errors in this context and those copied from it."""
    np.seterr(all="ignore")
    are_ignored.set(True)


def float_errors_ignored() -> AbstractContextManager[None]:
    """Return a context manager in which numpy ignores all floating-point errors."""
    return _AS_IT_IS if are_ignored.get() else np.errstate(all="ignore")

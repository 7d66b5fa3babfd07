"""The status codes of gRPC and TensorFlow, and one exception class for each error code.

    OpError
    ├── CancelledError           1    ├── FailedPreconditionError  9
    ├── UnknownError             2    ├── AbortedError            10
    ├── InvalidArgumentError     3    ├── OutOfRangeError         11
    ├── DeadlineExceededError    4    ├── UnimplementedError      12
    ├── NotFoundError            5    ├── InternalError           13
    ├── AlreadyExistsError       6    ├── UnavailableError        14
    ├── PermissionDeniedError    7    ├── DataLossError           15
    └── ResourceExhaustedError   8    └── UnauthenticatedError    16

TF: tensorflow/python/framework/errors_impl.py (class names), absl status codes (numbers).
"""

from __future__ import annotations

import enum
import errno
import os


class Code(enum.IntEnum):
    """Status codes, with the numbers that gRPC and TensorFlow use."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class OpError(Exception):
    """A failure with a status code.

    `node` is the name of the graph node that failed, or None. If it is set, the message ends with
    TensorFlow's `\\n\\t [[{{node NAME}}]]`. `with_node` does not replace a name that is set, so
    that the innermost node is reported. `retry_after_seconds` is when the caller may expect
    success, or 0 if that is not known.
    """

    code = Code.UNKNOWN
    retry_after_seconds = 0.0

    def __init__(self, message: str, node: str | None = None) -> None:
        if not message.isascii():
            # Bytes of a graph that are not UTF-8 were decoded to surrogates; a response can't
            # contain surrogates.
            message = message.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        super().__init__(message)
        self._text = message
        self.node = node

    @property
    def message_without_node(self) -> str:
        """The text without the failing node, for code that builds another error from this one."""
        return self._text

    @property
    def message(self) -> str:
        """The text, followed by the failing node if one is known."""
        return self._text if self.node is None else f"{self._text}\n\t [[{{{{node {self.node}}}}}]]"

    def __str__(self) -> str:
        return self.message

    def with_node(self, node: str) -> OpError:
        """Set the failing node, unless a node is already set, and return this error."""
        if self.node is None:
            self.node = node
        return self

    def copy(self) -> OpError:
        """Return a new exception with the same content; each thread must raise its own copy."""
        return type(self)(self._text, self.node)


class CancelledError(OpError):
    """The step or the session was cancelled or closed."""

    code = Code.CANCELLED


class UnknownError(OpError):
    """The failure is of a kind that no other status code describes."""

    code = Code.UNKNOWN


class InvalidArgumentError(OpError):
    """The request is invalid, whatever the state of the system."""

    code = Code.INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """The step did not finish before its deadline."""

    code = Code.DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """The object that was named does not exist."""

    code = Code.NOT_FOUND


class AlreadyExistsError(OpError):
    """The object that should be created already exists."""

    code = Code.ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """The caller is not allowed to execute the operation."""

    code = Code.PERMISSION_DENIED


class ResourceExhaustedError(OpError):
    """A limit was reached, such as the limit of memory, sessions, queue length or body size."""

    code = Code.RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """The current state does not allow the operation (a variable without value, for example)."""

    code = Code.FAILED_PRECONDITION


class AbortedError(OpError):
    """A concurrent change conflicts with the operation; the caller may retry from the start."""

    code = Code.ABORTED


class OutOfRangeError(OpError):
    """The end of a sequence was reached, or an index is beyond the end."""

    code = Code.OUT_OF_RANGE


class UnimplementedError(OpError):
    """The operation is known but not supported."""

    code = Code.UNIMPLEMENTED


class InternalError(OpError):
    """An invariant of the system is broken."""

    code = Code.INTERNAL


class UnavailableError(OpError):
    """The service is loading, draining or unreachable; a retry may succeed."""

    code = Code.UNAVAILABLE


class DataLossError(OpError):
    """Stored data is corrupt."""

    code = Code.DATA_LOSS


class UnauthenticatedError(OpError):
    """The caller has no valid credentials."""

    code = Code.UNAUTHENTICATED


_CLASSES: tuple[type[OpError], ...] = (
    CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError, NotFoundError,
    AlreadyExistsError, PermissionDeniedError, ResourceExhaustedError, FailedPreconditionError,
    AbortedError, OutOfRangeError, UnimplementedError, InternalError, UnavailableError,
    DataLossError, UnauthenticatedError,
)  # fmt: skip
_CLASS_BY_CODE: dict[int, type[OpError]] = {int(cls.code): cls for cls in _CLASSES}


def error_for_code(code: int, message: str, node: str | None = None) -> OpError:
    """Return an exception of the class for a status code, or UnknownError if it has no class."""
    return _CLASS_BY_CODE.get(int(code), UnknownError)(message, node)


# The classes of error numbers; TF: third_party/xla/xla/tsl/platform/errors.cc (ErrnoToCode)
_NUMBERS: tuple[tuple[type[OpError], tuple[int, ...]], ...] = (
    (InvalidArgumentError, (errno.EINVAL, errno.ENAMETOOLONG)),
    (NotFoundError, (errno.ENOENT, errno.ENODEV, errno.ENXIO)),
    (AlreadyExistsError, (errno.EEXIST,)),
    (PermissionDeniedError, (errno.EACCES, errno.EPERM, errno.EROFS)),
    (FailedPreconditionError, (errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EBUSY)),
    (ResourceExhaustedError, (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)),
    (ResourceExhaustedError, (errno.EMLINK, errno.ENOBUFS, errno.ENOMEM)),
    (OutOfRangeError, (errno.EFBIG, errno.EOVERFLOW)),
)
_CLASS_BY_NUMBER = {number: cls for cls, numbers in _NUMBERS for number in numbers}


def system_error(error: OSError, what: str, node: str | None = None) -> OpError:
    """Return the OpError of a failed call to the system: `<what>; No such file or directory`.

    The class is UnknownError if `_NUMBERS` does not list the error number.

    TF: third_party/xla/xla/tsl/platform/posix_error.cc (IOError)
    """
    number = error.errno or errno.EIO
    return _CLASS_BY_NUMBER.get(number, UnknownError)(f"{what}; {os.strerror(number)}", node)


def as_op_error(error: BaseException, node: str | None = None) -> OpError:
    """Convert an exception that a kernel raised to an OpError, which names `node` if given.

    ValueError, TypeError, IndexError and OverflowError become InvalidArgumentError, because numpy
    raises them for bad arguments. MemoryError and RecursionError become ResourceExhaustedError, and
    an OSError with a number becomes what `system_error` returns. Any other exception is a fault of
    the runtime and becomes InternalError.
    """
    if isinstance(error, OpError):
        return error if node is None else error.with_node(node)
    if isinstance(error, MemoryError):
        return ResourceExhaustedError(f"OOM when allocating tensor: {error}", node)
    if isinstance(error, RecursionError):
        return ResourceExhaustedError("Functions call each other too deep", node)
    if isinstance(error, OSError) and error.errno is not None:
        return system_error(error, str(error.filename or type(error).__name__), node)
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, ValueError | TypeError | IndexError | OverflowError):
        return InvalidArgumentError(text, node)
    return InternalError(text, node)

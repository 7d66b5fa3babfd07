"""The runtime's error classes and canonical codes, without the rest of the runtime.

Importing this module loads neither numpy nor protobuf: the command line and the settings use it
before it is known whether a server will start. Everything else that the server uses is imported
from `runtime.api`.
"""

from runtime.foundation.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    Code,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
    error_for_code,
)

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "Code",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OpError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "error_for_code",
]

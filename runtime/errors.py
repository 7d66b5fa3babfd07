"""The light door to the runtime: its errors and their canonical codes, and nothing else.

Importing it loads neither numpy nor protobuf: the command line and the settings use it before they
know whether a server will start. Everything else that the server uses comes from `runtime.api`.
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

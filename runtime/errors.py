"""The runtime's error classes and status codes, importable without the rest of the runtime.

Importing this module loads neither numpy nor protobuf, because the command line and the settings
use it before it is known whether a server will start. Code of the server must import everything
else from `runtime.api`.
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
    as_op_error,
    error_for_code,
    system_error,
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
    "as_op_error",
    "error_for_code",
    "system_error",
]

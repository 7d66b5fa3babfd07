"""The only door to the runtime, for the server and for programs.

from runtime.api import SessionOptions, load_saved_model, new_session

The front end (`runtime.client`: Graph, Session, ops, …) is reached through this door too; it and
the exporter are imported at first use, so that a server does not pay for them.
"""

import importlib
from typing import Any

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
from runtime.foundation.thread_pool import (
    ThreadPool,
    ThreadPoolStats,
    global_thread_pools,
    schedulable_cores,
)
from runtime.framework.allocation import set_tensor_limit
from runtime.framework.cancellation import RUN_CANCELLED, CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.file_gate import AllowAll, DenyAll, FolderGate
from runtime.framework.op_def_registry import register_op
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import ResourceManager
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.registrations import new_session, reset
from runtime.saved_model.inspection import OpReport
from runtime.saved_model.loader import SavedModelBundle, inspect_saved_model, load_saved_model
from runtime.saved_model.meta_graph import load_meta_graph_into_session
from runtime.sessions.direct_session import DirectSession
from runtime.sessions.runtime_session import RunRequest, RuntimeSession
from runtime.sessions.session_counts import session_counts
from runtime.sessions.session_options import SessionOptions

__all__ = [
    "RUN_CANCELLED",
    "AbortedError",
    "AllowAll",
    "AlreadyExistsError",
    "CancellationManager",
    "CancelledError",
    "Code",
    "DataLossError",
    "DataType",
    "DeadlineExceededError",
    "DenyAll",
    "DirectSession",
    "FailedPreconditionError",
    "FolderGate",
    "InternalError",
    "InvalidArgumentError",
    "KernelDef",
    "NotFoundError",
    "OpError",
    "OpKernelContext",
    "OpReport",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "ResourceManager",
    "RunRequest",
    "RuntimeSession",
    "SavedModelBundle",
    "SessionOptions",
    "ThreadPool",
    "ThreadPoolStats",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "error_for_code",
    "global_thread_pools",
    "inspect_saved_model",
    "load_meta_graph_into_session",
    "load_saved_model",
    "new_session",
    "register_op",
    "reset",
    "schedulable_cores",
    "session_counts",
    "set_tensor_limit",
    "tensor_from_proto",
    "tensor_to_proto",
]

# name → the module that has it; imported when it is asked for
_LATER = {
    **dict.fromkeys(
        (
            "Graph",
            "InteractiveSession",
            "Session",
            "Timeline",
            "export_meta_graph",
            "get_default_graph",
            "get_default_session",
            "import_graph_def",
            "import_meta_graph",
            "ops",
        ),
        "runtime.client",
    ),
    "export_bundle": "runtime.saved_model.exporter",
    "write_saved_model": "runtime.saved_model.exporter",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)

"""The public interface of the runtime, for the server and for programs.

    from runtime.api import SessionOptions, load_saved_model, new_session

A module that uses only the error classes should import `runtime.errors`, which loads less code. The
client API (`runtime.client`: Graph, Session, ops, …) and the exporter can be imported from here
too; they are loaded at first use, so that a server that does not use them does not load them.
"""

import importlib
from typing import Any

from runtime.clusters.running.cluster_counts import ClusterSummary, cluster_counts
from runtime.clusters.running.engine import EngineUse, return_engine_memory, unmet_choices
from runtime.clusters.running.run_width import share_processors_among_runs
from runtime.errors import (
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
from runtime.foundation.float_errors import ignore_float_errors
from runtime.foundation.global_thread_pools import global_thread_pools, schedulable_cores
from runtime.foundation.kept_memory import keep_freed_memory
from runtime.foundation.long_lived_objects import collector_pause, long_lived_objects
from runtime.foundation.machine_memory import available_bytes, resident_bytes
from runtime.foundation.model_objects import keep_model_objects_apart, model_objects
from runtime.foundation.parent_process import continue_after_parent
from runtime.foundation.priority_gate import gate as priority_gate
from runtime.foundation.processor_share import leave_one_processor, make_way, run_in_background
from runtime.foundation.shared_files import shared_files
from runtime.foundation.thread_pool import ThreadPool
from runtime.foundation.thread_pool_stats import ThreadPoolStats
from runtime.framework import dtypes
from runtime.framework.allocation import (
    MAX_RANK,
    check_representable,
    set_tensor_limit,
    tensor_limit,
)
from runtime.framework.cancellation import RUN_CANCELLED, CancellationManager
from runtime.framework.dtypes import DataType
from runtime.framework.io.file_gate import AllowAll, DenyAll, FolderGate
from runtime.framework.io.record_files import tf_records
from runtime.framework.io.record_writer import tf_record_bytes
from runtime.framework.memory_account import process_account
from runtime.framework.op_def_registry import register_op
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.op_packages import OpPackage, op_package_summaries
from runtime.framework.resource_manager import ResourceManager
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_codec import (
    VALUE_FIELD,
    as_bytes,
    shape_from_proto,
    tensor_from_proto,
    tensor_to_proto,
)
from runtime.graph.tensor_name import fed_more_than_once, parse_tensor_name
from runtime.registrations import new_session, reset
from runtime.saved_model.inspection import OpReport
from runtime.saved_model.loader import SavedModelBundle, inspect_saved_model, load_saved_model
from runtime.saved_model.meta_graph import load_meta_graph_into_session
from runtime.saved_model.stateful_ops import stateful_ops
from runtime.saved_model.tensor_infos import tensor_names
from runtime.saved_model.unrestored_state import unrestored_state
from runtime.sessions.child_process.call_process import CallProcess, CallResult
from runtime.sessions.direct.direct_session import DirectSession
from runtime.sessions.direct.executor_cache import CompiledStep
from runtime.sessions.runtime_session import RunRequest, RuntimeSession, ShortStep
from runtime.sessions.session_counts import session_counts
from runtime.sessions.session_options import SessionOptions

__all__ = [
    "MAX_RANK",
    "RUN_CANCELLED",
    "VALUE_FIELD",
    "AbortedError",
    "AllowAll",
    "AlreadyExistsError",
    "CallProcess",
    "CallResult",
    "CancellationManager",
    "CancelledError",
    "ClusterSummary",
    "Code",
    "CompiledStep",
    "DataLossError",
    "DataType",
    "DeadlineExceededError",
    "DenyAll",
    "DirectSession",
    "EngineUse",
    "FailedPreconditionError",
    "FolderGate",
    "InternalError",
    "InvalidArgumentError",
    "KernelDef",
    "NotFoundError",
    "OpError",
    "OpKernelContext",
    "OpPackage",
    "OpReport",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "ResourceManager",
    "RunRequest",
    "RuntimeSession",
    "SavedModelBundle",
    "SessionOptions",
    "ShortStep",
    "ThreadPool",
    "ThreadPoolStats",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "as_bytes",
    "available_bytes",
    "check_representable",
    "cluster_counts",
    "collector_pause",
    "continue_after_parent",
    "dtypes",
    "error_for_code",
    "fed_more_than_once",
    "global_thread_pools",
    "ignore_float_errors",
    "inspect_saved_model",
    "keep_freed_memory",
    "keep_model_objects_apart",
    "leave_one_processor",
    "load_meta_graph_into_session",
    "load_saved_model",
    "long_lived_objects",
    "make_way",
    "model_objects",
    "new_session",
    "op_package_summaries",
    "parse_tensor_name",
    "priority_gate",
    "process_account",
    "register_op",
    "reset",
    "resident_bytes",
    "return_engine_memory",
    "run_in_background",
    "schedulable_cores",
    "session_counts",
    "set_tensor_limit",
    "shape_from_proto",
    "shape_text",
    "share_processors_among_runs",
    "shared_files",
    "stateful_ops",
    "tensor_from_proto",
    "tensor_limit",
    "tensor_names",
    "tensor_to_proto",
    "tf_record_bytes",
    "tf_records",
    "unmet_choices",
    "unrestored_state",
]

# Public name → the module that defines it, which is imported when the name is first accessed.
_LAZY_MODULES = {
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
    **dict.fromkeys(
        ("Histogram", "ResourceReport", "report_resources", "variable_histogram"),
        "runtime.sessions.resource_report",
    ),
    "HostTurns": "runtime.foundation.host_turns",
    "describe_openvino": "runtime.saved_model.cluster_report",
    "engine_name": "runtime.saved_model.cluster_report",
    "report_clusters": "runtime.saved_model.cluster_report",
    "export_bundle": "runtime.saved_model.exporter",
    "write_file": "runtime.framework.io.new_files",
    "write_saved_model": "runtime.saved_model.exporter",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY_MODULES[name]), name)

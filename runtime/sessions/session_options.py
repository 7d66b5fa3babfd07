"""SessionOptions: the target, configuration and hooks of a new session.

TF: tensorflow/core/public/session_options.h
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import protos as pb
from runtime.framework.op_kernel import FileGate, KernelDef
from runtime.framework.resource_manager import ResourceManager
from runtime.sessions.argument_types import check_message, check_type


@dataclasses.dataclass(slots=True)
class SessionOptions:
    """Target, configuration and hooks of a new session.

    `target` is "" for the direct runtime, `grpc://host:port` for a master service,
    `http://host:port` for a Runstep server, and `ray://auto` or `ray://host:gcs_port` for a node of
    a Ray cluster. `kernels` take precedence over the built-in kernels
    (TF: customKernelCreator). `files` decides which files steps may read and write. If it is None,
    they may use all files, so only programs that run their own graphs may pass None. `resources` is
    a manager that several sessions share; if it is None, the session makes a manager that only it
    uses. Sessions raise ResourceExhaustedError if a graph has more than `max_graph_nodes` nodes.

    `max_session_bytes` bounds the memory that the session keeps between steps (its graph, compiled
    steps and resources), and that which the tensors of its steps and resources have together;
    `max_step_bytes` that of the tensors of one step; None is no limit. What would exceed it raises
    ResourceExhaustedError, and the session lives on. If `is_counted`, the session counts in the
    limit of the process (`process_account`) too.

    `clusters` says whether groups of expensive nodes are compiled by an engine: "auto", where this
    is estimated to be worth it, or "off". With "force", which is for tests, every group is compiled
    when it runs for the first time, and a failure is an error. `engine` is "onnxruntime",
    "openvino", or "auto": ONNX Runtime, or OpenVINO where only that is installed. `precision` is
    "float32" or, with "openvino", "bfloat16" (short: "f32", "bf16"). What is not there is replaced:
    OpenVINO by ONNX Runtime, bfloat16 by float32, and without an engine there are no clusters.
    """

    target: str = ""
    config: pb.ConfigProto = dataclasses.field(default_factory=pb.ConfigProto)
    kernels: Sequence[KernelDef] = ()
    files: FileGate | None = None
    resources: ResourceManager | None = None
    max_graph_nodes: int = 1_000_000
    max_session_bytes: int | None = None
    max_step_bytes: int | None = None
    is_counted: bool = False
    clusters: str = "auto"
    engine: str = "auto"
    precision: str = "float32"

    def __post_init__(self) -> None:
        """Raise InvalidArgumentError if the target or the configuration has a wrong type."""
        check_type("SessionOptions.target", self.target, str)
        check_message("SessionOptions.config", self.config, pb.ConfigProto)

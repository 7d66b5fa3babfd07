"""All targets, with what their inputs are; a target is imported when it is made."""

from __future__ import annotations

import importlib

from tests.fuzz.target import Target

TARGETS = {
    "graphs": "conformance cases of all rooms with other values, attributes, types, edges and ops",
    "clusters": "cases, recurrent layers and frozen models, on numpy kernels and compiled",
    "saved_models": "SavedModels with variables and assets: messages, tables and bytes",
    "checkpoints": "tensor bundles and V1 checkpoints: entries, tables and bytes",
    "tensors": "TensorProtos of every type, fed over gRPC and over HTTP",
    "json_bodies": "documents to every call, on the short way and the usual one",
    "grpc_messages": "messages of the master service, one to three calls on a session",
    "serving_calls": "messages of TensorFlow Serving's services and the Open Inference Protocol's",
    "binary_inference": "bodies of /v2 with binary tensors, on the short way and the usual one",
    "warmup_files": "TFRecord files of recorded requests of every kind",
    "http_heads": "bytes on a connection: request lines, headers, chunks, pipelines",
}


def make_target(name: str) -> Target:
    """Return a target; it is the only subclass of Target in the module of its name."""
    module = importlib.import_module(f"tests.fuzz.targets.{name}")
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Target)
        and each.__module__ == module.__name__
    ]
    target: Target = found[0]()
    return target

"""Describe the Open Inference Protocol's calls for OpenAPI; they are no routes of FastAPI."""

from __future__ import annotations

from typing import Any

_TAG = ["open inference protocol"]
# Maps a parameter of the path to its example; the model is in examples/models, y = x / 2 + 2.
_PARAMETERS = {"name": "half_plus_two", "version": "1", "region": "input"}
EXAMPLE: dict[str, Any] = {
    "inputs": [{"name": "x", "shape": [3], "datatype": "FP32", "data": [1.0, 2.0, 5.0]}]
}
# Maps a path to an example body, where other calls take an empty one.
_BODIES: dict[str, dict[str, Any]] = {
    "/v2/repository/index": {"ready": True},
    "/v2/logging": {"log_info": True, "log_verbose_level": 0},
    "/v2/trace/setting": {"trace_level": ["OFF"]},
    "/v2/models/{name}/trace/setting": {"trace_level": ["OFF"]},
}
_TENSOR = {
    "type": "object",
    "required": ["name", "shape", "datatype"],
    "properties": {
        "name": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "datatype": {"type": "string", "example": "FP32"},
        "parameters": {"type": "object"},
        "data": {"type": "array", "items": {}, "description": "Flat or nested."},
    },
}
_INFER_BODY = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": "string"},
        "parameters": {
            "type": "object",
            "description": "`signature_name`, `priority`, `timeout` (µs), `binary_data_output`, …",
        },
        "inputs": {"type": "array", "items": _TENSOR},
        "outputs": {"type": "array", "items": {"type": "object"}},
    },
}
# (path, method, summary); the calls on a model are also below `/versions/{version}`.
_CALLS: tuple[tuple[str, str, str], ...] = (
    ("/v2", "get", "Name, version and extensions of the server"),
    ("/v2/health/live", "get", "Alive"),
    ("/v2/health/ready", "get", "Ready for requests"),
    ("/v2/models/stats", "get", "Statistics of all models"),
    ("/v2/models/{name}", "get", "Metadata of a model"),
    ("/v2/models/{name}/ready", "get", "Whether a model serves"),
    ("/v2/models/{name}/config", "get", "Configuration of a model"),
    ("/v2/models/{name}/stats", "get", "Statistics of a model"),
    ("/v2/models/{name}/infer", "post", "Run a signature on tensors"),
    ("/v2/models/{name}/trace/setting", "get", "Settings of traces"),
    ("/v2/models/{name}/trace/setting", "post", "Change settings of traces"),
    ("/v2/trace/setting", "get", "Settings of traces"),
    ("/v2/trace/setting", "post", "Change settings of traces"),
    ("/v2/logging", "get", "Settings of the log"),
    ("/v2/logging", "post", "Change settings of the log"),
    ("/v2/repository/index", "post", "Known versions of all models"),
    ("/v2/repository/models/{name}/load", "post", "Load a model"),
    ("/v2/repository/models/{name}/unload", "post", "Unload a model"),
)
# The same for shared memory of the system and of CUDA, and for one region of it.
_SHARED_MEMORY: tuple[tuple[str, str, str], ...] = (
    ("status", "get", "Registered regions of shared memory: none"),
    ("register", "post", "Refused: there is no shared memory here"),
    ("unregister", "post", "Forget a region, as clients do first"),
)
_VERSIONED = ("", "/ready", "/config", "/stats", "/infer")


def inference_protocol_paths() -> dict[str, dict[str, Any]]:
    """Return the OpenAPI path items of the protocol."""
    paths: dict[str, dict[str, Any]] = {}
    for path, method, summary in _CALLS:
        _, model, rest = path.partition("{name}")
        both = [path]
        if path.startswith("/v2/models/{name}") and rest in _VERSIONED:
            both.append(f"/v2/models/{model}/versions/{{version}}{rest}")
        for each in both:
            paths.setdefault(each, {})[method] = _operation(each, method, summary)
    for kind in ("system", "cuda"):
        for call, method, summary in _SHARED_MEMORY:
            for region in ("", "/region/{region}"):
                path = f"/v2/{kind}sharedmemory{region}/{call}"
                paths[path] = {method: _operation(path, method, summary)}
    return paths


def _operation(path: str, method: str, summary: str) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "tags": _TAG,
        "summary": summary,
        "parameters": [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {"type": "string"},
                "example": example,
            }
            for name, example in _PARAMETERS.items()
            if f"{{{name}}}" in path
        ],
        "responses": {
            "200": {"description": summary},
            "default": {"description": '`{"error": "<message>"}`'},
        },
    }
    if method == "post":
        is_infer = path.endswith("/infer")
        schema = _INFER_BODY if is_infer else {"type": "object"}
        example = EXAMPLE if is_infer else _BODIES.get(path, {})
        operation["requestBody"] = {
            "required": is_infer,
            "content": {"application/json": {"schema": schema, "example": example}},
        }
    return operation

"""Describe the calls on served models for OpenAPI.

FastAPI cannot document them, because `ModelsApi` is not one of its routes.

TF: tensorflow_serving/g3doc/api_rest.md
"""

from __future__ import annotations

from typing import Any

_TAG = ["models"]
_EXAMPLE_MODEL = "half_plus_two"  # y = x / 2 + 2

# An example body for each call on the model _EXAMPLE_MODEL, which is in examples/models.
EXAMPLES: dict[str, dict[str, Any]] = {
    "predict": {"instances": [1.0, 2.0, 5.0]},
    "classify": {"signature_name": "classify_x_to_y", "examples": [{"x": 20.0}]},
    "regress": {"signature_name": "regress_x_to_y", "examples": [{"x": 80.0}]},
}

_PREDICT_BODY = {
    "type": "object",
    "properties": {
        "signature_name": {"type": "string", "default": "serving_default"},
        "instances": {
            "type": "array",
            "items": {},
            "description": "Row form: one value, list or object of named inputs per instance.",
        },
        "inputs": {
            "description": "Columnar form: the tensor, or an object with a tensor per input."
        },
        "priority": {"type": "string", "description": "An entry of `priorities`."},
    },
}
_EXAMPLES_BODY = {
    "type": "object",
    "required": ["examples"],
    "properties": {
        "signature_name": {"type": "string", "default": "serving_default"},
        "context": {"type": "object", "description": "Features that all examples share."},
        "examples": {"type": "array", "items": {"type": "object"}},
        "priority": {"type": "string", "description": "An entry of `priorities`."},
    },
}
# Maps a call to its summary, the schema of its body and the description of its response.
_INFERENCE: dict[str, tuple[str, dict[str, Any], str]] = {
    "predict": (
        "Run a signature on tensors",
        _PREDICT_BODY,
        "`predictions` for the row form, `outputs` for the columnar form",
    ),
    "classify": ("Classify examples", _EXAMPLES_BODY, "`results`: label and score pairs"),
    "regress": ("A value for each example", _EXAMPLES_BODY, "`results`: one value an example"),
}
# Maps a path to its summary and description.
_INFORMATION: dict[str, tuple[str, str]] = {
    "/v1/models": (
        "List the served models",
        "Every configured model with its versions, their states, labels and signatures, "
        "and the labels whose versions do not serve.",
    ),
    "/v1/models/{name}": ("The states of a model's versions", "The highest version first."),
    "/v1/models/{name}/versions/{version}": ("The state of one version", ""),
    "/v1/models/{name}/labels/{label}": ("The state of the version with a label", ""),
    "/v1/models/{name}/metadata": ("The signatures of a model", "Those of the latest version."),
    "/v1/models/{name}/versions/{version}/metadata": ("The signatures of one version", ""),
    "/v1/models/{name}/labels/{label}/metadata": ("The signatures of the version with a label", ""),
}
# Maps a parameter of the path to its type and its example, which configs/server.yaml serves.
_PARAMETERS: dict[str, tuple[str, object]] = {
    "name": ("string", _EXAMPLE_MODEL),
    "version": ("integer", 1),
    "label": ("string", "stable"),
}
# The alternatives for the part of a path between the model's name and the call.
_CHOICES = ("", "/versions/{version}", "/labels/{label}")
_ERRORS = {
    "400": {"description": "The request is wrong; `error` says how."},
    "404": {"description": "No such model or version is available."},
}
_INFERENCE_ERRORS = _ERRORS | {
    "429": {"description": "The queue of the thread pool is full."},
    "503": {"description": "The queue of a batch is full."},
    "504": {"description": "The deadline passed."},
}


def model_paths() -> dict[str, dict[str, Any]]:
    """Return the `paths` of the OpenAPI schema for served models, predict first."""
    paths: dict[str, dict[str, Any]] = {}
    for call, texts in _INFERENCE.items():
        for choice in _CHOICES:
            path = f"/v1/models/{{name}}{choice}:{call}"
            paths[path] = {"post": _inference(path, call, *texts)}
    return paths | {
        path: {"get": _information(path, *texts)} for path, texts in _INFORMATION.items()
    }


def _information(path: str, summary: str, description: str) -> dict[str, Any]:
    return {
        "tags": _TAG,
        "summary": summary,
        "description": description,
        "parameters": _path_parameters(path),
        "responses": {
            "200": {"description": "Found", "content": _json({})},
            **(_ERRORS if "{name}" in path else {}),
        },
    }


def _inference(
    path: str, call: str, summary: str, schema: dict[str, Any], answer: str
) -> dict[str, Any]:
    body = _json(schema)
    body["application/json"]["example"] = EXAMPLES[call]
    return {
        "tags": _TAG,
        "summary": summary,
        "parameters": [*_path_parameters(path), *_HEADERS],
        "requestBody": {"required": True, "content": body},
        "responses": {"200": {"description": answer, "content": _json({})}, **_INFERENCE_ERRORS},
    }


_HEADERS = [
    {
        "name": "X-Priority",
        "in": "header",
        "schema": {"type": "string"},
        "description": "An entry of `priorities`; the body's `priority` wins.",
    },
    {
        "name": "X-Timeout-Ms",
        "in": "header",
        "schema": {"type": "integer", "minimum": 1},
        "description": "Milliseconds from receipt to the answer; default `rest.timeout_ms`.",
    },
]


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": parameter,
            "in": "path",
            "required": True,
            "schema": {"type": kind},
            "example": example,
        }
        for parameter, (kind, example) in _PARAMETERS.items()
        if f"{{{parameter}}}" in path
    ]


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}

"""Add plain Starlette routes, which FastAPI does not document, to the OpenAPI schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from starlette.routing import Route

_VALIDATION_ERROR = "422"  # FastAPI documents it, but handle_error responds with 400


def document_plain_routes(
    app: FastAPI,
    operations: Mapping[str, dict[str, Any]],
    paths: Mapping[str, dict[str, Any]],
) -> None:
    """Add the OpenAPI operations of plain routes to the schema of `app`.

    `operations` maps the name of an endpoint to its operation, which is added at the path of its
    route. `paths` describes an application that is not a route; it is added unchanged.

    The schema is made when it is first requested, as FastAPI does.
    """
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = generate()
            for route in app.routes:
                if isinstance(route, Route) and route.name in operations:
                    methods = (route.methods or set()) - {"HEAD"}
                    item = {method.lower(): operations[route.name] for method in methods}
                    schema["paths"].setdefault(route.path_format, {}).update(item)
            schema["paths"] = {**paths, **schema["paths"]}  # what most callers look for is first
            _drop_validation_errors(schema)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign] # FastAPI's documented way


def _drop_validation_errors(schema: dict[str, Any]) -> None:
    """Remove the code 422, and its schemas, which no call responds with."""
    for item in schema["paths"].values():
        for operation in item.values():
            operation.get("responses", {}).pop(_VALIDATION_ERROR, None)
    schemas = schema.get("components", {}).get("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)

"""Serve `/docs`: the OpenAPI document as one plain page, without scripts or other hosts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

_STYLE = """
body { font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
summary { cursor: pointer; } code, pre { font-family: monospace; }
pre { background: #f4f4f4; padding: .6rem; overflow-x: auto; } b { display: inline-block; width: 4.5rem; }
"""  # noqa: E501
_SCHEMAS = "#/components/schemas/"


def docs_route(openapi: Callable[[], dict[str, Any]]) -> Route:
    """Return the route of the page; `openapi` is called at every request."""

    async def docs(_: Request) -> HTMLResponse:
        return HTMLResponse(docs_page(openapi()))

    return Route("/docs", docs, methods=["GET"])


def docs_page(schema: Mapping[str, Any]) -> str:
    """Render an OpenAPI document as a page that shows each call.

    The page has the parameters, the example bodies and the responses of each call.
    """
    info = schema["info"]
    title = escape(f"{info['title']} {info['version']}")
    body = "\n".join(
        _operation(schema, path, method, operation)
        for path, item in schema["paths"].items()
        for method, operation in item.items()
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1><p>{escape(info.get('summary', ''))}. "
        f'For tools: <a href="openapi.json">openapi.json</a>.</p>\n{body}\n</html>'
    )


def _operation(
    schema: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]
) -> str:
    parts = [f"<p>{escape(operation.get('description', ''))}</p>"]
    parts += [
        f"<p><code>{escape(each['name'])}</code> ({escape(each['in'])}) "
        f"{escape(each.get('description', ''))}{_parameter_example(each)}</p>"
        for each in operation.get("parameters", ())
    ]
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<p>Body, {escape(kind)}:</p>")
        parts += [f"<pre>{_shown(value)}</pre>" for value in _body_values(schema, content)]
    parts += [
        f"<p><code>{escape(status)}</code> {escape(answer.get('description', ''))}</p>"
        for status, answer in operation.get("responses", {}).items()
    ]
    return (
        f"<details><summary><b>{escape(method.upper())}</b> <code>{escape(path)}</code> "
        f"{escape(operation.get('summary', ''))}</summary>{''.join(parts)}</details>"
    )


def _parameter_example(parameter: Mapping[str, Any]) -> str:
    example = parameter.get("example")
    return "" if example is None else f"such as <code>{escape(str(example))}</code>"


def _body_values(schema: Mapping[str, Any], content: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the examples of a request body, or its schema if there are no examples."""
    if "example" in content:
        yield content["example"]
    for example in content.get("examples", {}).values():
        yield example.get("value")
    if not content.keys() & {"example", "examples"}:
        described = content.get("schema", {})
        name = described.get("$ref", "").removeprefix(_SCHEMAS)
        yield schema.get("components", {}).get("schemas", {}).get(name, described)


def _shown(value: Any) -> str:
    return escape(json.dumps(value, indent=2, ensure_ascii=False))

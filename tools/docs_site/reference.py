"""Reference pages that are generated from the code: REST, settings, command line, errors."""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import pathlib
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pydantic

from runtime.errors import Code, error_for_code
from server.app import create_app, make_services
from server.commands.model_server_flags import FLAGS
from server.errors import HTTP_STATUS
from server.main import _parser
from server.settings import Settings


def pages(root: pathlib.Path) -> dict[str, str]:
    """Return the text of each generated page by its name in the navigation."""
    return {
        "generated/rest.md": rest(),
        "generated/settings.md": settings(root),
        "generated/commands.md": commands(),
        "generated/errors.md": errors(),
        "generated/metrics.md": metrics(),
    }


# REST


def rest() -> str:
    """Return the page of REST, from the OpenAPI document that a server has at /openapi.json."""
    document = asyncio.run(_openapi())
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            tag = (call.get("tags") or ["server"])[0]
            by_tag.setdefault(tag, []).append(_call(method.upper(), path, call))
    parts = [
        "# REST\n\nEvery call, from the OpenAPI document that a server has at `/openapi.json`; "
        "`/docs` of a server is the same with forms. Errors: [errors](errors.md).\n"
    ]
    for tag, calls in by_tag.items():
        parts += [f"## {tag.capitalize()}\n", *calls]
    return "\n".join(parts)


async def _openapi() -> Any:
    application: Any = create_app(make_services(Settings(models=())))
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return (await client.get("/openapi.json")).raise_for_status().json()


def _call(method: str, path: str, call: Mapping[str, Any]) -> str:
    lines = [f"### `{method} {path}`\n", call.get("summary", "")]
    if call.get("description"):
        lines += ["", call["description"]]
    parameters = [each for each in call.get("parameters", []) if "name" in each]
    if parameters:
        lines += ["", "| parameter | in | |", "| --- | --- | --- |"]
        lines += [
            f"| `{each['name']}` | {each['in']} | {_cell(each.get('description', ''))} |"
            for each in parameters
        ]
    content = call.get("requestBody", {}).get("content", {}).get("application/json", {})
    examples = [each.get("value") for each in content.get("examples", {}).values()]
    examples += [content["example"]] if "example" in content else []
    for example in examples[:2]:
        lines += ["", "```json", json.dumps(example), "```"]
    answers = call.get("responses", {})
    lines += ["", "Answers: " + ", ".join(f"{code} {_first(a)}" for code, a in answers.items()), ""]
    return "\n".join(lines)


def _first(answer: Mapping[str, Any]) -> str:
    return _cell(str(answer.get("description", "")).partition("\n")[0])


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


# Settings


def settings(root: pathlib.Path) -> str:
    """Return the page of settings: every key with its type, default, environment and flag."""
    comments = _comments((root / "configs" / "server.yaml").read_text())
    flags = {flag.setting: flag.name for flag in FLAGS if flag.setting}
    lines = [
        "# Settings\n",
        "From `configs/server.yaml` (or `--config PATH`), then the environment, then flags. Each "
        "key is also an environment variable: `rest.port` is `RUNSTEP_REST__PORT`; "
        "lists and maps are JSON.\n",
    ]
    for section, rows in _sections(Settings):
        lines += [f"## `{section}`\n" if section else "## Top level\n"]
        lines += ["| key | type | default | | flag |", "| --- | --- | --- | --- | --- |"]
        lines += [
            f"| `{key}` | {_cell(kind)} | {_cell(default)} | {_cell(comments.get(key, ''))} "
            f"| {f'`--{flags[key]}`' if key in flags else ''} |"
            for key, kind, default in rows
        ]
        lines.append("")
    return "\n".join(lines)


_Row = tuple[str, str, str]


def _sections(model: type[pydantic.BaseModel]) -> Iterator[tuple[str, list[_Row]]]:
    top: list[_Row] = []
    inner: list[tuple[str, list[_Row]]] = []
    for name, field in model.model_fields.items():
        kind = _section_of(field.annotation)
        if kind is None:
            top.append((name, _type(field.annotation), _default(field)))
        else:
            inner.append((name, list(_rows(kind, name))))
    yield "", top
    yield from inner


def _rows(model: type[pydantic.BaseModel], prefix: str) -> Iterator[_Row]:
    for name, field in model.model_fields.items():
        kind = _section_of(field.annotation)
        if kind is None:
            yield f"{prefix}.{name}", _type(field.annotation), _default(field)
        else:
            yield from _rows(kind, f"{prefix}.{name}")


def _section_of(annotation: object) -> type[pydantic.BaseModel] | None:
    """Return the section that a key is; None for a value, a list or a map."""
    if inspect.isclass(annotation) and issubclass(annotation, pydantic.BaseModel):
        return annotation
    return None


def _type(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is None or annotation is type(None):
        return "null"
    if origin is typing.Annotated:
        return _type(arguments[0])
    if origin is typing.Literal:
        return " or ".join(f"`{each}`" for each in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_type, arguments))
    if origin is not None and inspect.isclass(origin) and issubclass(origin, Mapping):
        return "map"
    if origin is not None:
        return f"list of {_type(arguments[0])}" if arguments else "list"
    if inspect.isclass(annotation) and issubclass(annotation, pydantic.BaseModel):
        return "{" + ", ".join(annotation.model_fields) + "}"
    names = {"str": "text", "int": "integer", "float": "number", "bool": "true or false"}
    return names.get(getattr(annotation, "__name__", ""), str(annotation))


def _default(field: pydantic.fields.FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, pydantic.BaseModel):
        value = value.model_dump()
    if isinstance(value, tuple | list):
        value = [
            each.model_dump() if isinstance(each, pydantic.BaseModel) else each for each in value
        ]
    return f"`{json.dumps(value, default=str)}`"


def _comments(text: str) -> dict[str, str]:
    """Return {dotted key: comment} of a YAML file whose keys have their comment in the line."""
    found, path = {}, list[tuple[int, str]]()
    for line in text.splitlines():
        match = re.match(r"( *)([\w]+):[^#]*(?:#\s*(.*))?$", line)
        if match is None:
            continue
        indent = len(match[1])
        path = [each for each in path if each[0] < indent] + [(indent, match[2])]
        if match[3]:
            found[".".join(name for _, name in path)] = match[3]
    return found


# Command line


def commands() -> str:
    """Return the page of the command line, from its parser."""
    parser = _parser()
    (action,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    lines = ["# Command line\n", f"{parser.description}\n"]
    help_of = {choice.dest: choice.help for choice in action._choices_actions}
    for name, command in action.choices.items():
        lines += [f"## `runstep {name}`\n", f"{_sentence(help_of.get(name))}\n"]
        if command.description:
            lines.append(f"{command.description}\n")
        rows = [a for a in command._actions if a.help is not argparse.SUPPRESS]
        lines += ["| argument | |", "| --- | --- |"]
        lines += [f"| `{_argument(each)}` | {_cell(each.help or '')} |" for each in rows]
        lines.append("")
    return "\n".join(lines)


def _sentence(text: str | None) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _argument(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    shown = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
    if not names:
        return str(shown)
    return names if action.nargs == 0 else f"{names} {shown}"


# Errors


def errors() -> str:
    """Return the page of errors: each canonical code with its HTTP status and class."""
    lines = [
        "# Errors\n",
        "Errors have TensorFlow's canonical codes. Over HTTP the body is "
        '`{"error": "…", "code": "NOT_FOUND", "request_id": "…"}`, below `/v2` only '
        '`{"error": "…"}`; over gRPC the status has the code and the message. Some statuses say '
        "more than the code's: 405 (method), 410 (the session has ended), 413 (body too large), "
        "431 (headers too large).\n",
        "| code | gRPC | HTTP | class | means |",
        "| --- | --- | --- | --- | --- |",
    ]
    for code in Code:
        if code is Code.OK:
            continue
        kind = type(error_for_code(code, ""))
        means = _cell(inspect.getdoc(kind) or "")
        lines.append(
            f"| `{code.name}` | {code.value} | {HTTP_STATUS[code]} | `{kind.__name__}` | {means} |"
        )
    return "\n".join(lines) + "\n"


# Metrics


def metrics() -> str:
    """Return the page of metrics: each family of a server, its kind and what it counts."""
    registry = make_services(Settings(models=())).metrics.registry
    lines = [
        "# Metrics\n",
        "The families of the metrics page of a server that has just started, from its registry; "
        "[metrics](../metrics.md) explains labels, and what differs from TensorFlow Serving.\n",
        "| metric | kind | |",
        "| --- | --- | --- |",
    ]
    for family in sorted(registry.collect(), key=lambda each: each.name):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if name.startswith(":"):  # TensorFlow Serving's counters have no suffix
            name = family.name
        lines.append(f"| `{name}` | {family.type} | {_cell(family.documentation)} |")
    return "\n".join(lines) + "\n"

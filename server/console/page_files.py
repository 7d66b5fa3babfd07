"""The files of the console's page, with the headers that keep it to itself."""

from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from runtime.errors import NotFoundError

FOLDER = pathlib.Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_OTHER = "text/plain; charset=utf-8"  # licences
# No script or style but the files', no connection but to this server, no frame around the page.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # the browser asks with the ETag, and gets 304
}


class PageFile(NamedTuple):
    """A file that is served."""

    content: bytes
    media_type: str
    etag: str


def read_files(folder: pathlib.Path = FOLDER) -> dict[str, PageFile]:
    """Return every file of the page by its path. No other path is ever read."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            name = path.relative_to(folder).as_posix()
            found[name] = PageFile(content, _TYPES.get(path.suffix, _OTHER), etag)
    return found


def page_routes() -> list[Route]:
    """Return the routes of the page; the files are read at the first request."""
    page = _Page()
    return [
        Route("/console", _redirect, methods=["GET"]),
        Route("/console/{path:path}", page.file, methods=["GET"]),
    ]


async def _redirect(_: Request) -> Response:
    # Relative, because a proxy may serve Runstep below a path.
    return RedirectResponse("console/", 307)


class _Page:
    def __init__(self) -> None:
        self._files: Mapping[str, PageFile] = {}

    async def file(self, request: Request) -> Response:
        """Return a file; the page itself for the empty path."""
        self._files = self._files or read_files()
        name = request.path_params["path"] or "index.html"
        file = self._files.get(name)
        if file is None:
            raise NotFoundError(f"The console has no file {name!r:.80}")
        headers = {**HEADERS, "ETag": file.etag}
        if file.etag in _etags(request.headers.getlist("if-none-match")):
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers={**headers, "Content-Type": file.media_type})


def _etags(values: Iterable[str]) -> set[str]:
    return {each.strip().removeprefix("W/") for value in values for each in value.split(",")}

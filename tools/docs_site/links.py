"""Checks of the built site: internal links lead somewhere, and nothing comes from elsewhere."""

from __future__ import annotations

import html.parser
import pathlib
import posixpath
from urllib.parse import unquote, urlsplit

_RESOURCES = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
_LOADED = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch"}


class _Page(html.parser.HTMLParser):
    """The links, the loaded resources and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and set(found.get("rel", "").split()) & _LOADED:
            self.loaded.append(found.get("href", ""))
        if tag in _RESOURCES and _RESOURCES[tag] in found:
            self.loaded.append(found[_RESOURCES[tag]])


def read_page(path: pathlib.Path) -> _Page:
    page = _Page()
    page.feed(path.read_text())
    return page


def check_site(site: pathlib.Path) -> tuple[int, list[str]]:
    """Return (the number of internal links and resources, what is wrong with some)."""
    pages = {path.relative_to(site).as_posix(): read_page(path) for path in site.rglob("*.html")}
    faults, count = [], 0
    for name, page in sorted(pages.items()):
        faults += [
            f"{name}: loads {each} from elsewhere" for each in page.loaded if urlsplit(each).netloc
        ]
        for target in [*page.links, *page.loaded]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            fault = _fault(site, pages, name, unquote(parts.path), unquote(parts.fragment))
            if fault:
                faults.append(f"{name}: {target} {fault}")
    return count, faults


def _fault(site: pathlib.Path, pages: dict[str, _Page], name: str, path: str, fragment: str) -> str:
    if path.startswith("/"):
        return "is absolute: the site may be below any path"
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
    if path and (path.endswith("/") or (site / target).is_dir()):
        target = posixpath.normpath(posixpath.join(target, "index.html"))
    if not (site / target).is_file():
        return "leads nowhere"
    if fragment and target in pages and fragment not in pages[target].anchors:
        return "has no such anchor"
    return ""

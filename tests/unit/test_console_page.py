"""The console's files: no build, nothing from elsewhere, no HTML from strings, licences listed."""

from __future__ import annotations

import hashlib
import pathlib
import re

import pytest

STATIC = pathlib.Path(__file__).parents[2] / "server" / "console" / "static"
VENDOR = STATIC / "vendor"
OWN = sorted(
    path
    for path in STATIC.rglob("*")
    if path.suffix in {".js", ".css", ".html", ".svg"} and not path.is_relative_to(VENDOR)
)
# What makes HTML, style attributes or code from strings.
_FROM_STRINGS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|DOMParser"
    r"|\beval\(|new Function|setAttribute\(|srcdoc|javascript:"
)
_ADDRESS = re.compile(r"https?://[^\s\"'`)]+|[\"'(]//[a-z]")
_SVG = "http://www.w3.org/2000/svg"  # a name, which nothing is loaded from
_COMMENT = re.compile(r"/\*.*?\*/|^\s*//[^\n]*|(?<=\s)// [^\n]*", re.DOTALL | re.MULTILINE)
_IMPORT = re.compile(r"""(?:from|import)\s+["']([^"']+)["']""")
_ROW = re.compile(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", re.MULTILINE)


def test_the_list_of_licences_equals_the_vendored_files() -> None:
    listed = dict(_ROW.findall((VENDOR / "LICENSES.md").read_text()))
    files = {
        str(path.relative_to(VENDOR)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "LICENSES.md"
    }
    assert files
    assert listed == files


def test_each_vendored_package_has_its_licence() -> None:
    packages = [path for path in VENDOR.iterdir() if path.is_dir()]
    assert packages
    assert [path.name for path in packages if not (path / "LICENSE").is_file()] == []


@pytest.mark.parametrize("path", OWN, ids=lambda path: str(path.relative_to(STATIC)))
def test_a_file_makes_nothing_from_strings_and_names_no_other_host(path: pathlib.Path) -> None:
    text = _COMMENT.sub("", path.read_text())
    assert _FROM_STRINGS.findall(text) == []
    assert [one for one in _ADDRESS.findall(text) if one != _SVG] == []


def test_every_import_is_a_file_of_the_console() -> None:
    modules = [path for path in OWN if path.suffix == ".js"]
    missing = [
        (path.name, target)
        for path in modules
        for target in _IMPORT.findall(path.read_text())
        if not (path.parent / target).is_file()
    ]
    assert len(modules) > 10
    assert missing == []


def test_the_page_has_no_inline_script_or_style() -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=", page) == []
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page))
    named = re.findall(r"""(?:src|href)="([^"]+)\"""", page)
    assert [name for name in named if name != "../docs" and not (STATIC / name).is_file()] == []


def test_no_page_of_the_console_is_too_long_to_read() -> None:
    assert {p.name: n for p in OWN if (n := len(p.read_text().splitlines())) > 400} == {}

"""The console in Debian's Chromium, on a server process of its own: `make test-browser`."""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.browser.watched_page import WatchedPage, launch
from tests.integration.access import write_keys
from tests.integration.server_process import ROOT, ServerProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

SWITCH = "RUNSTEP_TEST_BROWSER"  # set by `make test-browser`
CHROMIUM = "chromium"
EXAMPLES = ROOT / "examples" / "models"
MODELS = [
    {"name": name, "base_path": str(EXAMPLES / name)}
    for name in ("half_plus_two", "counter", "digits")
]


class _UnreadModule(pytest.Module):
    """A module that is not imported, as the packages that it needs may not be there."""

    def collect(self) -> Iterator[pytest.Item]:
        pytest.skip("needs a browser; make test-browser runs it")


def pytest_pycollect_makemodule(
    module_path: pathlib.Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Skip these tests unless `make test-browser` runs them."""
    if os.environ.get(SWITCH):
        return None
    unread: pytest.Module = _UnreadModule.from_parent(parent, path=module_path)
    return unread


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    path = shutil.which(CHROMIUM)
    assert path is not None, f"{CHROMIUM} is not on the PATH: apt-get install {CHROMIUM}"
    started = launch(playwright, path)
    yield started
    started.close()


def serve(folder: pathlib.Path, **settings: object) -> ServerProcess:
    """Start a server of the example models with these settings."""
    path = folder / "server.yaml"
    path.write_text(yaml.safe_dump({"models": MODELS, **settings}))
    process = ServerProcess(f"--config={path}")
    process.wait_for("gRPC listens on port")
    return process


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Without authentication, and with administration."""
    process = serve(tmp_path_factory.mktemp("open"), admin={"enabled": True})
    yield process
    process.end()


@pytest.fixture(scope="session")
def guarded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """With the keys of tests/integration/access.py, and administration."""
    folder = tmp_path_factory.mktemp("guarded")
    keys = write_keys(folder / "keys.yaml")
    process = serve(folder, admin={"enabled": True}, access={"keys_file": keys})
    yield process
    process.end()


@pytest.fixture
def page(browser: Browser, server: ServerProcess) -> Iterator[WatchedPage]:
    """A page of 1280 by 800 in light colours on the open server."""
    with WatchedPage(browser, server.http_address) as watched:
        yield watched


@pytest.fixture
def guarded_page(browser: Browser, guarded_server: ServerProcess) -> Iterator[WatchedPage]:
    """A page on the server with authentication, not logged in."""
    with WatchedPage(browser, guarded_server.http_address) as watched:
        yield watched

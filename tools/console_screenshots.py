"""Make a picture of every page of the console: `python -m tools.console_screenshots FOLDER`.

It starts a server of the example models with one session and some load, and drives the Chromium
on the PATH (`pip install '.[browser]'`). By default each page is shown at 1280 and 360 px, light
and dark, and at 3840 px. The pictures are FOLDER/PAGE-WIDTH-SCHEME.png, of the whole page. The
command fails if a page has an error of the console, asks another host, or scrolls sideways.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import yaml

from tests.browser.watched_page import ColorScheme, WatchedPage, launch
from tests.integration.access import write_keys
from tests.integration.server_process import ROOT, ServerProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

EXAMPLES = ROOT / "examples" / "models"
MODELS = ("half_plus_two", "counter", "digits")
HEIGHTS = {360: 740, 1280: 800, 3840: 2160}
SCHEMES: tuple[ColorScheme, ...] = ("light", "dark")
FILL_MS = 40_000  # of figures before the first picture
SETTLE_MS = 1500  # for the next message of the stream and its repaint
DIGIT = [[float((row * column) % 17) for column in range(8)] for row in range(8)]
# (path, body) of the calls of the load, in turns; the last one is answered with an error.
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    *[("v1/models/half_plus_two:predict", {"instances": [1.0, 2.0, 5.0]})] * 6,
    *[("v1/models/digits:predict", {"instances": [DIGIT] * 4})] * 3,
    ("v1/models/digits:predict", {"instances": [DIGIT] * 32, "priority": "low"}),
    ("v1/models/counter:predict", {"signature_name": "incr_counter", "inputs": {}}),
    ("v1/models/half_plus_two:predict", {"instances": ["not a number"]}),
)


class View(NamedTuple):
    """One picture: its name, the address of the page, and what is done on it first."""

    name: str
    route: str
    act: Callable[[Page], None] = lambda page: None
    is_whole: bool = True  # not only what a reader sees without scrolling


def _trace(page: Page) -> None:
    page.get_by_role("button", name="Trace").first.click()
    page.get_by_role("button", name="Download for Perfetto").wait_for()


def _send(page: Page) -> None:
    page.get_by_role("button", name="Send the request to serving_default").click()
    page.get_by_role("region", name="Answer of serving_default").wait_for()


def _confirm(page: Page) -> None:
    page.get_by_role("button", name="Move a label of half_plus_two").click()
    page.get_by_role("dialog").wait_for()


def views(session: str) -> tuple[View, ...]:
    """Return what is shown of a server on which `session` is open."""
    return (
        View("overview", "overview"),
        View("models", "models"),
        View("model", "models/digits", _send),
        View("move_a_label", "models/half_plus_two", _confirm, False),
        View("sessions", "sessions"),
        View("session", f"sessions/{session}"),
        View("timeline", "timeline?model=digits", _trace),
        View("pools", "pools"),
    )


@contextlib.contextmanager
def served(folder: pathlib.Path, **settings: Any) -> Iterator[ServerProcess]:
    """Serve the example models."""
    models = [{"name": name, "base_path": str(EXAMPLES / name)} for name in MODELS]
    config = folder / "server.yaml"
    config.write_text(yaml.safe_dump({"models": models, "admin": {"enabled": True}} | settings))
    server = ServerProcess(f"--config={config}")
    try:
        server.wait_for("gRPC listens on port")
        yield server
    finally:
        server.end()


@contextlib.contextmanager
def loaded(address: str) -> Iterator[None]:
    """Call the server, some sixty times a second, until the block ends."""
    ended = threading.Event()

    def call() -> None:
        with httpx.Client(base_url=address, timeout=30) as client:
            turn = 0
            while not ended.wait(0.015):
                path, body = CALLS[turn % len(CALLS)]
                headers = {"X-Priority": body["priority"]} if "priority" in body else {}
                sent = {key: value for key, value in body.items() if key != "priority"}
                client.post(f"/{path}", json=sent, headers=headers)
                turn += 1

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)


def open_session(client: httpx.Client) -> str:
    """Open a session on the model counter and run some steps; return its id."""
    body = {"model": "counter", "name": "nightly scoring", "lease_seconds": 3600}
    session: str = client.post("/v1/sessions", json=body).raise_for_status().json()["session"]
    metadata = client.get("/v1/models/counter/metadata").raise_for_status().json()
    signatures = metadata["metadata"]["signature_def"]["signature_def"]
    fetches = [info["name"] for info in signatures["incr_counter"]["outputs"].values()]
    for _ in range(5):
        client.post(f"/v1/sessions/{session}:run", json={"fetches": fetches}).raise_for_status()
    client.post(f"/v1/sessions/{session}:run", json={"fetches": ["no_such_node:0"]})
    return session


class _Pages:
    """One page for each width and scheme; they stay open, so that their charts fill."""

    def __init__(
        self, browser: Browser, address: str, widths: list[int], schemes: list[ColorScheme]
    ) -> None:
        self.faults: list[str] = []
        self._all = {
            f"{width}-{scheme}": WatchedPage(
                browser, address, width=width, height=HEIGHTS.get(width, 900), color_scheme=scheme
            )
            for width in widths
            for scheme in schemes
        }

    def fill(self) -> None:
        """Wait until the charts of all pages show something."""
        for watched in self._all.values():
            watched.open("overview")
        next(iter(self._all.values())).page.wait_for_timeout(FILL_MS)

    def show(self, view: View, folder: pathlib.Path) -> None:
        """Make the pictures of one page."""
        for name, watched in self._all.items():
            path = folder / f"{view.name}-{name}.png"
            try:
                self._picture(watched, view, path)
            except Exception as error:
                self.faults.append(f"{path.name}: {error}")
            self.faults += [f"{path.name}: {fault}" for fault in watched.faults]
            watched.faults.clear()
            print(path.name, flush=True)

    def _picture(self, watched: WatchedPage, view: View, path: pathlib.Path) -> None:
        if view.name == "login":
            watched.may_answer = {401}
            watched.page.goto(f"{watched.address}/console/")
            watched.page.get_by_label("Key or token").wait_for()
        else:
            watched.open(view.route)
        view.act(watched.page)
        watched.page.wait_for_timeout(SETTLE_MS)
        watched.page.evaluate("scrollTo(0, 0)")
        watched.page.screenshot(path=path, full_page=view.is_whole)
        if watched.is_too_wide():
            self.faults.append(f"{path.name}: it scrolls sideways")


def main() -> int:
    """Make the pictures; return 1 if a page has a fault."""
    parser = argparse.ArgumentParser(description="Make a picture of every page of the console.")
    parser.add_argument("folder", type=pathlib.Path, help="where the pictures are written")
    parser.add_argument("--widths", type=int, nargs="+", default=list(HEIGHTS))
    parser.add_argument("--schemes", nargs="+", choices=SCHEMES, default=list(SCHEMES))
    parser.add_argument("--pages", nargs="+", help="names of pages; all of them by default")
    chosen = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not on the PATH; on Debian: apt-get install chromium", file=sys.stderr)
        return 2
    chosen.folder.mkdir(parents=True, exist_ok=True)
    faults = _make(chosen, chromium)
    print("\n".join(faults), file=sys.stderr)
    return 1 if faults else 0


def _make(chosen: argparse.Namespace, chromium: str) -> list[str]:
    """Make the chosen pictures; return what is wrong with the pages."""
    from playwright.sync_api import sync_playwright

    def shown(address: str, all_views: tuple[View, ...]) -> list[str]:
        wanted = [one for one in all_views if not chosen.pages or one.name in chosen.pages]
        if not wanted:
            return []
        pages = _Pages(browser, address, chosen.widths, chosen.schemes)
        if wanted[0].name != "login":
            pages.fill()
        for view in wanted:
            pages.show(view, chosen.folder)
        return pages.faults

    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = pathlib.Path(made)
        browser = launch(playwright, chromium)
        with served(folder) as server, loaded(server.http_address):
            faults = shown(server.http_address, views(open_session(server.client)))
        keys = write_keys(folder / "keys.yaml")
        with served(folder, access={"keys_file": keys}) as server:
            faults += shown(server.http_address, (View("login", ""),))
        browser.close()
    return faults


if __name__ == "__main__":
    sys.exit(main())

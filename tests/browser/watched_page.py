"""A page of the console that notes every console error and every request to elsewhere."""

from __future__ import annotations

import re
import urllib.parse
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright

ColorScheme = Literal["light", "dark"]
MILLISECONDS = 20_000  # for anything that a test waits for
WCAG = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
# A process of root has no sandbox; the rest keeps Chromium itself from calling anybody.
FLAGS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-gpu",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_STATUS = re.compile(r"the server responded with a status of (\d+)")


def launch(playwright: Playwright, path: str) -> Browser:
    """Start the Chromium of that path."""
    return playwright.chromium.launch(executable_path=path, args=list(FLAGS))


class WatchedPage:
    """One page in a context of its own; leaving it without an exception checks what was noted.

    `address` is the server's, with the prefix of a proxy if there is one. An answer with an error
    status is an error of the console too, unless `may_answer` has its status.
    """

    def __init__(
        self,
        browser: Browser,
        address: str,
        *,
        width: int = 1280,
        height: int = 800,
        color_scheme: ColorScheme = "light",
    ) -> None:
        self.address = address
        self.may_answer: set[int] = set()
        self.faults: list[str] = []
        self._context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=color_scheme,
            reduced_motion="reduce",
        )
        self._context.set_default_timeout(MILLISECONDS)
        self._context.grant_permissions(["clipboard-read", "clipboard-write"], origin=self._origin)
        self._context.on("request", lambda request: self._note_request(request.url))
        self.page: Page = self._context.new_page()
        self.page.on("console", self._note_message)
        self.page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))

    @property
    def _origin(self) -> str:
        parts = urllib.parse.urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    def _note_request(self, url: str) -> None:
        if not url.startswith((self.address + "/", "data:", "blob:" + self._origin)):
            self.faults.append(f"a request to elsewhere: {url}")

    def _note_message(self, message: ConsoleMessage) -> None:
        status = _STATUS.search(message.text)
        if status is not None and int(status[1]) in self.may_answer:
            return
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text} ({message.location['url']})")

    def open(self, route: str = "") -> Page:
        """Go to `console/#/route` and wait for its heading."""
        self.page.goto(f"{self.address}/console/#/{route}")
        self.page.locator("main h1").wait_for()
        return self.page

    def violations(self) -> list[str]:
        """What axe finds in the page as it is now: contrast, labels, names, roles."""
        from axe_playwright_python.sync_playwright import Axe

        found: list[dict[str, Any]] = Axe().run(self.page, options=WCAG).response["violations"]
        return [
            f"{entry['id']}: {node['html']} ({node['failureSummary']})"
            for entry in found
            for node in entry["nodes"]
        ]

    def is_too_wide(self) -> bool:
        """Whether the page scrolls horizontally."""
        script = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(self.page.evaluate(script))

    def __enter__(self) -> WatchedPage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._context.close()
        if kind is None:
            assert not self.faults, self.faults

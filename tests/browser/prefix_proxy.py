"""A proxy that serves another server under a path prefix, as an ingress does."""

from __future__ import annotations

import http.server
import threading
from types import TracebackType

import httpx

PREFIX = "/models/team"
_OWN = {"content-length", "transfer-encoding", "connection", "content-encoding", "host"}


class PrefixProxy:
    """Forwards what is below `PREFIX`, with the prefix taken away; anything else is 404."""

    def __init__(self, backend: str) -> None:
        client = httpx.Client(base_url=backend, timeout=None)  # an event stream is endless

        class Handler(http.server.BaseHTTPRequestHandler):
            def forward(self) -> None:
                if not self.path.startswith(PREFIX + "/"):
                    self.send_error(404)
                    return
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {k: v for k, v in self.headers.items() if k.lower() not in _OWN}
                # The page's origin is the proxy's, so a proxy passes its own name on.
                headers["Host"] = self.headers["host"]
                path = self.path.removeprefix(PREFIX)
                with client.stream(self.command, path, content=body, headers=headers) as answer:
                    self.send_response(answer.status_code)
                    for name, value in answer.headers.multi_items():
                        if name not in _OWN:
                            self.send_header(name, value)
                    self.send_header("connection", "close")
                    self.end_headers()
                    for part in answer.iter_bytes():
                        self.wfile.write(part)
                        self.wfile.flush()

            def do_GET(self) -> None:
                try:
                    self.forward()
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._client = client
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.address = f"http://127.0.0.1:{self._server.server_port}{PREFIX}"

    def __enter__(self) -> PrefixProxy:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._client.close()

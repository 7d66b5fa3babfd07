"""Names of a graph: name scopes, unique names, and the syntax of names.

TF: tensorflow/python/framework/ops.py (Graph.name_scope, Graph.unique_name)
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator

_SCOPE_NAME = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")
_NODE_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")


class NameScopes:
    """The names in use in a graph, and the current scope of each thread.

    Names that differ in case only count as equal: on some file systems they would clash.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _in_use
        self._in_use: dict[str, int] = {}  # name in lower case → next number to try
        self._current = threading.local()

    @property
    def current(self) -> str:
        """The scope of this thread without its last slash, "" outside of any scope."""
        scope: str = getattr(self._current, "scope", "")
        return scope

    def unique(self, name: str, mark_as_used: bool = True) -> str:
        """Return `name` under the current scope, with a number appended if it is in use."""
        full = f"{self.current}/{name}" if self.current else name
        key = full.lower()
        with self._lock:
            number = self._in_use.get(key, 0)
            if number == 0:
                if mark_as_used:
                    self._in_use[key] = 1
                return full
            while f"{key}_{number}" in self._in_use:
                number += 1
            if mark_as_used:
                self._in_use[key] = number + 1
                self._in_use[f"{key}_{number}"] = 1
            return f"{full}_{number}"

    def mark(self, full_name: str) -> None:
        """Mark `full_name` as in use."""
        with self._lock:
            self._in_use.setdefault(full_name.lower(), 1)

    @contextlib.contextmanager
    def entered(self, name: str | None) -> Iterator[str]:
        """Enter a scope under the current one, and yield its prefix, which ends in a slash.

        If `name` is None or "", the prefix is "". If it ends in a slash, it is an absolute scope,
        which is entered again without a new number. Raises ValueError if the name is invalid.
        """
        outer = self.current
        if not name:
            scope = ""
        else:
            self._check(name, outer)
            scope = name[:-1] if name.endswith("/") else self.unique(name)
        self._current.scope = scope
        try:
            yield f"{scope}/" if scope else ""
        finally:
            self._current.scope = outer

    @staticmethod
    def _check(name: str, outer: str) -> None:
        pattern, kind = (_SCOPE_NAME, "") if outer else (_NODE_NAME, "root ")
        if not pattern.match(name):
            raise ValueError(
                f"'{name}' is not a valid {kind}scope name. A {kind}scope name has to match the "
                f"following pattern: {pattern.pattern}"
            )


def check_node_name(name: str) -> None:
    """Raise ValueError if `name` is not a valid node name."""
    if not _NODE_NAME.match(name):
        raise ValueError(
            f"`{name}` is not a valid node name. Accepted names conform to Regex /{_NODE_NAME!r}/"
        )

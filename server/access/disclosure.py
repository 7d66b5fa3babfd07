"""Remove the server's paths and host name from texts for clients who are not admins."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterable

PATH, HOST = "[path]", "[host]"
_REST_OF_PATH = r"(?:/[^\s'\",;:()\[\]{}<>]*)?"
_MIN_NAME = 3  # a shorter host name would be found in words
_NOT_A_NAME = ("localhost",)  # TensorFlow's device names have it


class Redactor:
    """Removes the server's paths, and those in the folders that `more_folders` has at the time.

    `more_folders` are those of models that a file or an administrator configures. What has been
    one of them stays hidden, because errors outlive their models.
    """

    def __init__(
        self, folders: Iterable[str], more_folders: Callable[[], Iterable[str]] = tuple
    ) -> None:
        self._folders = frozenset(folders)
        self._more_folders = more_folders
        self._redact = redactor(self._folders)

    def __call__(self, text: str) -> str:
        """Return the text without the paths and the name of this host."""
        folders = self._folders.union(self._more_folders())
        if folders != self._folders:
            self._folders, self._redact = folders, redactor(folders)
        return self._redact(text)


def redactor(folders: Iterable[str], host_name: str | None = None) -> Callable[[str], str]:
    """Return a function that replaces paths in `folders`, and the name of this host.

    A folder is replaced as it is written, as an absolute path and with its links resolved; what
    follows it is replaced with it. The root folder is ignored.
    """
    spellings = {
        spelling.rstrip("/")
        for folder in folders
        for spelling in (folder, os.path.abspath(folder), os.path.realpath(folder))
        if "/" in spelling.rstrip("/")
    }
    paths = "|".join(re.escape(each) for each in sorted(spellings, key=len, reverse=True))
    patterns = [(re.compile(rf"(?<![\w/.-])(?:{paths})(?![\w-]){_REST_OF_PATH}"), PATH)]
    if not spellings:
        patterns.clear()
    name = socket.gethostname() if host_name is None else host_name
    if len(name) >= _MIN_NAME and name not in _NOT_A_NAME:
        patterns.append((re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])"), HOST))

    def redact(text: str) -> str:
        for pattern, replacement in patterns:
            text = pattern.sub(replacement, text)
        return text

    return redact

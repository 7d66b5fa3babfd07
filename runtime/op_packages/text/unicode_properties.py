"""What ICU holds of each code point, where Python's module unicodedata can't say it.

TF Text contains ICU 77, which has the data of Unicode 16. Python's unicodedata has those of another
version, no scripts and no properties of sentence breaking. The file `unicode_properties.npz` has
what is missing; `tools/record/unicode_properties.py` found it by running TF Text's ops with every
code point.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import io
import unicodedata

import numpy as np

CODE_POINTS = 0x110000
UNICODE = (16, 0)  # the version of the data
# bits of `sentence_bits`
TERMINAL, CLOSE_PUNCTUATION, CLOSE_PARENTHESIS, OPEN_PARENTHESIS, PUNCTUATION = 1, 2, 4, 8, 16
_UNKNOWN_SCRIPT = 0  # of code points that are not assigned to a character


@functools.cache
def _tables() -> dict[str, np.ndarray]:
    path = importlib.resources.files(__package__) / "unicode_properties.npz"
    with np.load(io.BytesIO(path.read_bytes())) as arrays:
        return {key: arrays[key] for key in arrays.files}


def _filled(starts: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.repeat(values, np.diff(starts, append=CODE_POINTS))


@functools.cache
def scripts() -> np.ndarray:
    """Return a number for the script of each code point, uint8 `[CODE_POINTS]`."""
    tables = _tables()
    return _filled(tables["script_starts"], tables["scripts"].astype(np.uint8))


@functools.cache
def sentence_bits() -> np.ndarray:
    """Return what sentence breakers hold of each code point, uint8 `[CODE_POINTS]`.

    PUNCTUATION is known only of those that have TERMINAL.
    """
    tables = _tables()
    return _filled(tables["sentence_starts"], tables["sentence_bits"])


def points_with(bit: int) -> list[int]:
    """Return the code points that have a bit of `sentence_bits`."""
    found: list[int] = np.flatnonzero(sentence_bits() & bit).tolist()
    return found


@functools.cache
def ends_closed(form: str) -> np.ndarray:
    """Return whether nothing after a character composes with it, bool `[CODE_POINTS]`.

    `form` is NFC or NFKC. ICU: Normalizer2::hasBoundaryAfter
    """
    starts = _tables()[f"closed_{form}"]
    return _filled(starts, np.arange(len(starts)) % 2 == 0)


@functools.cache
def folds() -> dict[int, str]:
    """Return what NFKC_Casefold makes of each code point that it changes."""
    joined = _tables()["folds"].tobytes().decode()
    return {ord(each[0]): each[1:] for each in joined.split("\0")}


@dataclasses.dataclass(frozen=True)
class LaterCharacter:
    """How a character is normalized that unicodedata does not know, or knows otherwise."""

    combining_class: int
    canonical: str  # its canonical decomposition
    compatible: str
    composes: bool  # whether its canonical decomposition is composed again


@functools.cache
def later_characters() -> dict[str, LaterCharacter]:
    """Return the characters that unicodedata, of whatever version, normalizes differently."""
    tables = _tables()
    columns = ("later", "later_classes", "later_NFD", "later_NFKD", "later_composes")
    rows = zip(*(tables[name].tolist() for name in columns), strict=True)
    found = {chr(point): LaterCharacter(*row) for point, *row in rows}
    version = tuple(map(int, unicodedata.unidata_version.split(".")[:2]))
    if version > UNICODE:  # characters that came after the data
        for point in np.flatnonzero(scripts() == _UNKNOWN_SCRIPT).tolist():
            text = chr(point)
            if unicodedata.combining(text) or unicodedata.decomposition(text):
                found[text] = LaterCharacter(0, text, text, False)
    return found

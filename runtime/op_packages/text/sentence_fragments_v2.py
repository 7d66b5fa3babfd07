"""SentenceFragmentsV2: parts of texts that end where a sentence may end.

A fragment ends behind punctuation, an acronym or an emoticon, and what closes a quotation behind
it. Texts are examined byte by byte, so white space of several bytes is one only at its first.

TF: tensorflow_text/core/kernels/sentence_fragmenter_v2.cc
"""

from __future__ import annotations

import dataclasses
import functools
import re
from array import array

import numpy as np

from runtime.foundation.errors import FailedPreconditionError
from runtime.foundation.running_task import check_task, checked
from runtime.framework.op_kernel import KernelDef
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import POINTER, elements, text_in
from runtime.op_packages.text.unicode_characters import WHITE_SPACE
from runtime.op_packages.text.unicode_properties import (
    CLOSE_PARENTHESIS,
    CLOSE_PUNCTUATION,
    PUNCTUATION,
    TERMINAL,
    points_with,
)

# Of those that a text begins with, the first in this list counts.
_EMOTICONS = (
    rb":(:) :) :( :o) :] :3 :> =] =) :} :^) :-D :-))))) :-)))) :-))) :-)) :-) >:[ :-( :-c :c "
    rb":-< :< :-[ :[ :{ ;( :-|| :@ >:( :'-( :'( :'-) :') D:< >:O :-O :-o :* :-* :^* ;-) ;) *-) "
    rb"*) ;-] ;] ;^) :-, >:P :-P :p =p :-p :P =P ;p ;-p ;P ;-P >:\ >:/ :-/ :-. :/ :\ =/ =\ :| "
    rb":-| :$ :-# :# O:-) 0:-) 0:) 0;^) >:) >;) >:-) }:-) }:) 3:-) >_>^ ^<_< |;-) |-O :-J :-& "
    rb":& #-) <3 8-) ^_^ :D =D O=) }=) B) B-) =| -_- o_o; u_u :-\ :s :S :-s :-S ;* ;-*=( >.< "
    rb">:-( >=( ;_; T_T ='( >_< D: :o =o o.o :O =O O.O x_x X-( X( X-o X-O :X) (=^.^=) (=^..^=) "
    rb"=^_^= -<@% (]:{ <\3 ~@~ 8'( XD DX "
).split()  # fmt: skip
_ELLIPSIS = rb"\.\.\.|\xe2\x80\xa6"
_ACRONYM = rb"(?:[A-Z]\.){2,}"
# bits of a fragment's properties
HAS_TERMINAL, HAS_SEVERAL, HAS_CLOSE_PARENTHESIS, HAS_SENTENTIAL_CLOSE_PARENTHESIS = 1, 2, 4, 8
# Bytes for a fragment, which has at least one byte: five numbers in arrays and their growth.
_FRAGMENT = 16 * POINTER


@dataclasses.dataclass(frozen=True)
class _Patterns:
    """What texts are searched for; an ellipsis is terminal, too."""

    space: re.Pattern[bytes]
    end: re.Pattern[bytes]  # what ends a sentence, as the group of one of the kinds below
    ellipsis: re.Pattern[bytes]
    terminal: re.Pattern[bytes]
    emoticon: re.Pattern[bytes]
    close: re.Pattern[bytes]  # closing punctuation
    close_parenthesis: re.Pattern[bytes]
    punctuation: re.Pattern[bytes]


@functools.cache
def _patterns() -> _Patterns:
    terminal = _ELLIPSIS + b"|" + _characters(points_with(TERMINAL))
    emoticon = b"|".join(map(re.escape, _EMOTICONS))
    parts = (
        _characters(sorted(WHITE_SPACE)),
        # a character that is terminal may begin an emoticon, or the other way round
        emoticon + b"|" + _ACRONYM + b"|" + terminal,
        _ELLIPSIS,
        terminal,
        emoticon,
        b"''|" + _characters(points_with(CLOSE_PUNCTUATION)),
        _characters(points_with(CLOSE_PARENTHESIS)),
        _characters(points_with(PUNCTUATION)),
    )
    return _Patterns(*map(re.compile, parts))


def _characters(points: list[int]) -> bytes:
    """Return a pattern of the UTF-8 of any of some code points."""
    lasts: dict[bytes, list[bytes]] = {}
    for point in points:
        text = chr(point).encode()
        lasts.setdefault(text[:-1], []).append(re.escape(text[-1:]))
    parts = (re.escape(head) + b"[" + b"".join(last) + b"]" for head, last in lasts.items())
    return b"(?:" + b"|".join(parts) + b")"


@dataclasses.dataclass
class _End:
    """The end of a fragment: where its first mark is, where closing ones begin, and its limit."""

    terminal: int
    close: int
    limit: int


class _Fragmenter:
    """Divides texts. The lists have a number for each fragment of all texts."""

    def __init__(self) -> None:
        self._found = _patterns()
        self.starts, self.limits = array("q"), array("q")
        self.properties, self.terminals = array("q"), array("q")

    def add(self, text: bytes) -> int:
        """Divide a text; return how many fragments it has."""
        before = len(self.starts)
        start = 0
        while start < len(text):
            if self._found.space.match(text, start):
                start += 1
                continue
            end = self._end(text, start)
            self.starts.append(start)
            self.limits.append(end.limit)
            self.properties.append(self._properties(text, end))
            self.terminals.append(self._first_terminal(text, end))
            start = end.limit
            check_task()
        return len(self.starts) - before

    def _end(self, text: bytes, start: int) -> _End:
        """Return the end of the fragment that begins at a place."""
        found = self._found
        first = found.end.search(text, start)
        if first is None:
            return _End(-1, -1, len(text))
        end = _End(first.start(), first.end(), first.end())
        is_closing = False
        while end.limit < len(text):
            check_task()
            place = end.limit
            emoticon = found.emoticon.match(text, place)
            terminal = emoticon or found.terminal.match(text, place)
            close = found.close.match(text, place)
            if terminal is None and found.close_parenthesis.match(text, place) is None:
                break
            if is_closing:
                match = emoticon or close or found.ellipsis.match(text, place)
            else:
                match = terminal or close
            if match is None:
                break
            if not is_closing and terminal is None:
                is_closing, end.close = True, place
            end.limit = match.end()
            if not is_closing:
                end.close = end.limit
        return end

    def _properties(self, text: bytes, end: _End) -> int:
        if end.terminal < 0:
            return 0
        found = HAS_TERMINAL
        if self._has_several(text, end):
            found |= HAS_SEVERAL
        if self._found.close_parenthesis.search(text, end.close, end.limit):
            # TensorFlow never finds that the parenthesis was opened at the fragment's begin
            found |= HAS_CLOSE_PARENTHESIS
        return found

    def _first_terminal(self, text: bytes, end: _End) -> int:
        """Return the place of the first mark that is no ellipsis and no emoticon before others."""
        for place in checked(range(end.close, end.terminal, -1)):
            if self._found.ellipsis.match(text, place) or self._found.emoticon.match(text, place):
                return end.terminal if place == end.close else place
        return end.terminal

    def _has_several(self, text: bytes, end: _End) -> bool:
        """Return whether there is punctuation among the marks after the first."""
        found = self._found
        place = end.terminal
        for pattern in (found.ellipsis, found.emoticon):
            first = pattern.match(text, end.terminal)
            if first is not None:
                place += first.end() - first.start() - 1
        place += 1
        while place < end.close:
            check_task()
            skipped = found.ellipsis.match(text, place) or found.emoticon.match(text, place)
            if skipped is not None:
                place = skipped.end()
            elif found.punctuation.match(text, place):
                return True
            else:
                place += 1
        return False


def sentence_fragments_v2(doc: np.ndarray) -> tuple[np.ndarray, ...]:
    """SentenceFragmentsV2: return where the fragments of texts begin and end, in bytes.

    Returns the begins, the ends, the properties and the first terminal marks (−1 if there is none)
    of all fragments, int64 `[n]`, and how many each text has. Raises FailedPreconditionError if
    `doc` is no vector.
    """
    if np.ndim(doc) != 1:
        raise FailedPreconditionError(f"Shape must be rank 1: {list(np.shape(doc))}")
    fragmenter = _Fragmenter()
    lengths = [fragmenter.add(text) for text in doc.tolist()]
    columns = (
        fragmenter.starts, fragmenter.limits, fragmenter.properties, fragmenter.terminals, lengths,
    )  # fmt: skip
    return tuple(np.array(each, np.int64) for each in columns)


def _memory(doc: TensorValue) -> int:
    return _FRAGMENT * text_in(doc) + 6 * POINTER * elements(doc)


KERNELS = (KernelDef("SentenceFragmentsV2", sentence_fragments_v2, memory=_memory),)

"""The fast WordPiece algorithm: the longest tokens from left to right, in linear time.

Where the trie of the vocabulary ends, its failure links say which tokens are complete, and which
node stands for the rest, so that no byte of the text is read twice.

TF: tensorflow_text/core/kernels/fast_wordpiece_tokenizer.cc. Paper: arXiv 2012.15524
"""

from __future__ import annotations

from array import array

from runtime.foundation.errors import InternalError
from runtime.foundation.running_task import check_task
from runtime.op_packages.text.unicode_characters import (
    WHITE_SPACE,
    characters,
    code_point_and_size,
    is_punctuation,
)
from runtime.op_packages.text.wordpieces.fast_wordpiece_model import (
    NO_NODE,
    ROOT,
    FastWordpieceModel,
    is_suffix,
    token_length,
    token_number,
)


class Pieces:
    """Tokens with their numbers and their places in a text, in bytes."""

    __slots__ = ("closed", "ends", "numbers", "starts", "texts")

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.numbers = array("q")
        self.starts = array("q")
        self.ends = array("q")
        self.closed = 0  # the tokens which a later unknown word does not replace

    def __len__(self) -> int:
        return len(self.texts)

    def add(self, text: bytes, number: int, start: int, end: int) -> None:
        """Add a token."""
        self.texts.append(text)
        self.numbers.append(number)
        self.starts.append(start)
        self.ends.append(end)

    def close(self) -> None:
        """Keep all tokens."""
        self.closed = len(self.texts)

    def add_unknown(self, model: FastWordpieceModel, start: int, end: int) -> None:
        """Replace the tokens that are not closed by the unknown token."""
        for column in (self.texts, self.numbers, self.starts, self.ends):
            del column[self.closed :]
        self.add(model.unknown_token, model.unknown_number, start, end)
        self.close()


class _Word:
    """A word from its first byte on: the node that it led to, and the tokens found so far."""

    __slots__ = ("_found", "_model", "_start", "_text", "node", "taken", "unit")

    def __init__(self, model: FastWordpieceModel, text: bytes, start: int, found: Pieces) -> None:
        self._model = model
        self._text = text
        self._start = start
        self._found = found
        self.node, self.unit = ROOT, model.units[ROOT]
        self.taken = 0  # bytes of the word that are in tokens

    def read(self, character: bytes) -> bool:
        """Go on by a character. Return False if the word has no tokens then."""
        check_task()
        step = self._model.step
        while (reached := step(self.node, self.unit, character)) is None:
            if not self._fail():
                return False
        self.node, self.unit = reached
        return True

    def _fail(self) -> bool:
        """Go to the node of the rest of the word. Return False if there is none."""
        check_task()
        model, node = self._model, self.node
        token = model.token_at(node, self.unit)
        failure = model.failure(node)
        if token is not None:
            self._add(token)
        elif failure == NO_NODE:
            return False
        else:
            for each in model.failure_tokens(node):
                self._add(each)
        self.node, self.unit = failure, model.units[failure]
        return True

    def _add(self, token: int) -> None:
        model, taken = self._model, self.taken
        length = token_length(token)
        if not taken and is_suffix(token):  # the word itself begins with the suffix indicator
            length += len(model.suffix_indicator)
        start, number = self._start + taken, token_number(token)
        end = start + length
        if end > len(self._text):
            raise model.damaged()
        text = model.unknown_token if number == model.unknown_number else self._text[start:end]
        self._found.add(model.suffix_indicator + text if taken else text, number, start, end)
        self.taken = taken + length

    def finish(self, end: int) -> None:
        """Add the tokens of the rest of the word, which ends at `end`, or the unknown token."""
        model, found = self._model, self._found
        if self.node == ROOT:
            return  # an empty word; with an empty suffix indicator also another word
        if self.node == model.suffix_root and len(found) == found.closed:
            self._add_suffix_indicator(end)
        while self.node not in (model.suffix_root, model.punctuation_failure):
            if not self._fail():
                found.add_unknown(model, self._start, end)
                return
        found.close()

    def _add_suffix_indicator(self, end: int) -> None:
        """Add the tokens of a word that is the suffix indicator."""
        model, tokens = self._model, self._model.suffix_indicator_tokens
        if len(tokens) == 1 and token_number(tokens[0]) == model.unknown_number:
            self._found.add_unknown(model, self._start, end)
            return
        for each in tokens:
            self._add(each)


def split_word(model: FastWordpieceModel, text: bytes, found: Pieces) -> None:
    """Add the tokens of `text`, which is one word."""
    found.close()
    if not text:
        return
    if len(text) > model.max_bytes >= 0:
        found.add_unknown(model, 0, len(text))
        return
    word = _Word(model, text, 0, found)
    for byte in range(len(text)):
        if not word.read(text[byte : byte + 1]):
            found.add_unknown(model, 0, len(text))
            return
    word.finish(len(text))


class _Text:
    """A text that is split into words while their tokens are found."""

    def __init__(self, model: FastWordpieceModel, text: bytes, found: Pieces) -> None:
        self._model = model
        self._text = text
        self._found = found
        self._characters = characters(text)
        self._next = 0  # the next character
        self._position = 0  # its place in bytes
        self._previous = self._current = 0  # the code points of the last two characters read
        self.takes_space = False  # whether a token has or might have a space

    def split(self) -> None:
        """Add the tokens of all words.

        Raises InternalError if the model does not let a word end.
        """
        self._found.close()
        before = -1
        while self._next < len(self._characters):
            if before == self._position:
                raise InternalError("Failed to make any progress in tokenizing the input text.")
            before = self._position
            self._split_word()

    def _split_word(self) -> None:
        start = self._position
        word = _Word(self._model, self._text, start, self._found)
        while self._next < len(self._characters):
            self._previous = self._current
            self._current, size = code_point_and_size(self._characters[self._next])
            end = self._position + size
            if end - start > self._model.max_bytes:
                break
            if not word.read(self._text[self._position : end]):
                break
            self.takes_space = self.takes_space or self._current == 0x20
            self._skip(size)
        else:
            word.finish(self._position)
            return
        self._end_word(word, start, size)

    def _skip(self, size: int) -> None:
        self._position += size
        self._next += 1

    def _end_word(self, word: _Word, start: int, size: int) -> None:
        """Finish a word at a character of `size` bytes that it can't have."""
        is_space = self._current in WHITE_SPACE
        is_boundary = is_space or is_punctuation(self._current)
        if is_boundary or (self._position and is_punctuation(self._previous)):
            word.finish(self._position)
            if is_space:
                self._skip(size)
            elif self._position == start:
                self._skip(size)
                self._found.add_unknown(self._model, start, self._position)
            return
        self._skip(size)
        self._found.add_unknown(self._model, start, self._skip_word())

    def _skip_word(self) -> int:
        """Skip the rest of a word and a space after it; return where the word ended."""
        while self._next < len(self._characters):
            check_task()
            code_point, size = code_point_and_size(self._characters[self._next])
            end = self._position
            if code_point in WHITE_SPACE:
                self._skip(size)
                return end
            if is_punctuation(code_point):
                return end
            self._skip(size)
        return self._position


def split_text(model: FastWordpieceModel, text: bytes, found: Pieces) -> bool:
    """Add the tokens of `text`, which is split into words.

    Return False if the tokens before a space may depend on what is after it.
    """
    splitter = _Text(model, text, found)
    splitter.split()
    return not splitter.takes_space and len(found) == found.closed

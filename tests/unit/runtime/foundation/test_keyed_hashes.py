"""Keyed string hashes: published vectors, and that a batch hashes like its members.

Bit-equality with TensorFlow on every length is in the conformance cases `string_hashing`.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.foundation.keyed_hashes import murmurhash64, siphash64

STRINGS = st.lists(st.binary(max_size=200), max_size=8)


def test_siphash_gives_the_vector_of_its_paper() -> None:
    # Appendix A: key 00 01 … 0f, message 00 01 … 0e.
    key = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
    assert siphash64([bytes(range(15))], key)[0] == 0xA129CA6149BE45E5


def test_no_strings_have_no_hashes() -> None:
    assert murmurhash64([]).tolist() == []
    assert siphash64([], (1, 2)).tolist() == []


@given(STRINGS)
def test_a_batch_hashes_like_its_members(strings: list[bytes]) -> None:
    assert murmurhash64(strings).tolist() == [int(murmurhash64([s])[0]) for s in strings]
    assert siphash64(strings, (3, -5)).tolist() == [
        int(siphash64([s], (3, -5))[0]) for s in strings
    ]

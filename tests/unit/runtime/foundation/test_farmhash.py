"""FarmHash fingerprints: a batch hashes like its members.

Bit-equality with TensorFlow on every length is in the conformance cases `string_hashing`.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.foundation.farmhash import fingerprint64


def test_no_strings_have_no_fingerprints() -> None:
    assert fingerprint64([]).tolist() == []


@given(st.lists(st.binary(max_size=200), max_size=8))
def test_a_batch_has_the_fingerprints_of_its_members(strings: list[bytes]) -> None:
    assert fingerprint64(strings).tolist() == [int(fingerprint64([s])[0]) for s in strings]

"""Hashes of strings: bucket numbers and fingerprints.

TF: tensorflow/core/kernels/string_to_hash_bucket_op.cc, string_to_hash_bucket_fast_op.cc
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.farmhash import fingerprint64
from runtime.foundation.keyed_hashes import murmurhash64, siphash64
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import items_of
from runtime.kernels.array.boxing import box


def _buckets(hashes: np.ndarray, strings: np.ndarray, num_buckets: int) -> np.ndarray:
    buckets = (hashes % np.uint64(num_buckets)).astype(np.int64)
    return buckets.reshape(np.shape(np.asarray(strings, object)))


def string_to_hash_bucket_fast(input: np.ndarray, *, num_buckets: int) -> np.ndarray:
    """StringToHashBucketFast: return each string's Fingerprint64 modulo `num_buckets`, int64."""
    return _buckets(fingerprint64(items_of(input)), input, num_buckets)


def string_to_hash_bucket(string_tensor: np.ndarray, *, num_buckets: int) -> np.ndarray:
    """StringToHashBucket: return each string's MurmurHash64A modulo `num_buckets`, int64."""
    return _buckets(murmurhash64(items_of(string_tensor)), string_tensor, num_buckets)


def fingerprint(data: np.ndarray, method: np.ndarray) -> np.ndarray:
    """Fingerprint: return the Fingerprint64 of each row of `data`, as uint8 [rows, 8].

    A row of numbers is hashed by its bytes and a row of one string by the string, whatever the
    rank of `data` is. For a row of several strings, their fingerprints are hashed.
    """
    rows = box(data)
    if not rows.ndim:
        raise InvalidArgumentError(
            f"`data` should have at least one dimension: {shape_text(rows.shape)}"
        )
    if np.ndim(method):
        raise InvalidArgumentError(
            f"`method` should be a scalar string: {shape_text(np.shape(method))}"
        )
    name = bytes(np.asarray(method, object)[()])
    if name != b"farmhash64":
        raise InvalidArgumentError(f"Unsupported fingerprint method: {name.decode()}")
    if rows.dtype != object:
        hashes = fingerprint64([np.ascontiguousarray(row).tobytes() for row in rows])
    else:
        hashes = fingerprint64(items_of(rows))
        if rows.size != len(rows):
            parts = hashes.astype("<u8").reshape(len(rows), math.prod(rows.shape[1:]))
            hashes = fingerprint64([row.tobytes() for row in parts])
    return hashes.astype("<u8").view(np.uint8).reshape(len(rows), 8)


def string_to_hash_bucket_strong(
    input: np.ndarray,
    *,
    num_buckets: int,
    key: Sequence[int],
) -> np.ndarray:
    """StringToHashBucketStrong: return each string's SipHash modulo `num_buckets`, int64.

    `key` is the key of SipHash. Raises InvalidArgumentError unless it has two elements.
    """
    if len(key) != 2:
        raise InvalidArgumentError("Key must have 2 elements")
    return _buckets(siphash64(items_of(input), (key[0], key[1])), input, num_buckets)


KERNELS = (
    KernelDef("Fingerprint", fingerprint),
    KernelDef("StringToHashBucket", string_to_hash_bucket),
    KernelDef("StringToHashBucketFast", string_to_hash_bucket_fast),
    KernelDef("StringToHashBucketStrong", string_to_hash_bucket_strong),
)

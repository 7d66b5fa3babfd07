"""Random changes of the values, shapes and types of a case's inputs."""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType

SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5, 1e4, -1e4, 2.5, -1.5)
STRINGS = (b"", b"\xff\xfe", b"a", b"\xc3\xa9", b"abc", b"-1", b" 7 ", b"1e3", b"\x00x", b"z" * 40)


def converted(array: np.ndarray, to: DataType, random: np.random.Generator) -> np.ndarray:
    """Return the array as another element type; strings become small random numbers."""
    dtype = to.numpy
    if to is DataType.STRING:
        return _objects([str(item).encode() for item in array.ravel().tolist()], array.shape)
    if array.dtype.hasobject:
        return np.asarray(random.integers(0, 6, array.shape)).astype(dtype)
    if array.dtype.kind == "c" and dtype.kind != "c":
        array = array.real
    if dtype.kind in "iu" and array.dtype.kind not in "biu":
        numbers = np.nan_to_num(array.astype(np.float64), nan=1, posinf=5, neginf=-5)
        array = np.clip(np.rint(numbers), -100, 100).astype(np.int64)
    with np.errstate(all="ignore"):
        result = array.astype(dtype)
    if dtype.kind == "c" and array.dtype.kind != "c":
        result = (result + 1j * random.integers(-3, 4, array.shape)).astype(dtype)
    return np.asarray(result)


def changed_values(
    array: np.ndarray, random: np.random.Generator, quantised: bool = False
) -> np.ndarray:
    """Return the array with some or all elements replaced."""
    flat = array.ravel().copy()
    if not flat.size:
        return array
    if random.random() < 0.4:
        chosen = np.arange(flat.size)
    else:
        chosen = random.integers(0, flat.size, int(random.integers(1, 4)))
    kind = array.dtype.kind
    if array.dtype.hasobject:
        for at in chosen.tolist():
            flat[at] = STRINGS[int(random.integers(len(STRINGS)))]
    elif kind == "b":
        flat[chosen] = random.random(chosen.size) < 0.5
    elif kind in "iu" or "int" in array.dtype.name:
        flat[chosen] = _integers(flat[chosen], random, quantised)
    else:
        flat[chosen] = _floats(flat[chosen], random)
    return flat.reshape(array.shape)


def _integers(old: np.ndarray, random: np.random.Generator, quantised: bool) -> np.ndarray:
    if old.dtype.kind not in "iu":  # int2, uint2, int4 and uint4
        return random.integers(0, 2, old.size).astype(old.dtype)
    info = np.iinfo(old.dtype)
    if quantised or (old.size > 3 and random.random() < 0.3):
        return random.integers(max(info.min, -128), min(info.max, 127) + 1, old.size).astype(
            old.dtype
        )
    with np.errstate(all="ignore"):
        small = random.integers(-3, 9, old.size).astype(old.dtype)
        near = old + random.integers(-1, 2, old.size).astype(old.dtype)
        opposite = -old
    extreme = random.choice(np.array([info.min, info.max], old.dtype), old.size)
    which = random.choice(4, old.size, p=[0.45, 0.35, 0.12, 0.08])
    return np.choose(which, [small, near, opposite, extreme])


def _floats(old: np.ndarray, random: np.random.Generator) -> np.ndarray:
    dtype = old.dtype
    style = random.random()
    scale = float(random.choice([0.3, 1.0, 5.0, 60.0]))
    fresh = random.normal(0, scale, old.size)
    if style < 0.3:
        fresh = np.rint(fresh)
    elif style < 0.6:
        special = np.array(SPECIAL)[random.integers(0, len(SPECIAL), old.size)]
        fresh = np.where(random.random(old.size) < 0.5, special, fresh)
    elif style < 0.7:
        fresh = np.abs(fresh)
    with np.errstate(all="ignore"):
        if dtype.kind == "c":
            return (fresh + 1j * random.normal(0, scale, old.size)).astype(dtype)
        return fresh.astype(dtype)


def resized(array: np.ndarray, axis: int, size: int, random: np.random.Generator) -> np.ndarray:
    """Return the array with `size` elements along an axis, repeated or truncated."""
    if array.shape[axis]:
        return np.take(array, np.arange(size) % array.shape[axis], axis)
    shape = [*array.shape]
    shape[axis] = size
    if array.dtype.hasobject:
        return _objects([b"s"] * int(np.prod(shape)), tuple(shape))
    return random.integers(0, 3, shape).astype(array.dtype)


def reranked(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return the array with another rank."""
    choice = int(random.integers(5))
    if choice == 0 and array.ndim < 7:
        return array[np.newaxis]
    if choice == 1 and array.ndim < 7:
        return array[..., np.newaxis]
    if choice == 2 and array.ndim and array.shape[0]:
        return np.asarray(array[0] if array.ndim > 1 else _rank_0(array))
    if choice == 3 and array.size:
        return _rank_0(array)
    return array.reshape(-1)


def _rank_0(array: np.ndarray) -> np.ndarray:
    result = np.empty((), array.dtype)
    result[()] = array.ravel()[0]
    return result


def _objects(items: list[bytes], shape: tuple[int, ...]) -> np.ndarray:
    flat = np.empty(len(items), object)
    flat[:] = items
    return flat.reshape(shape)

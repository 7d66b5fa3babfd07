"""Inputs of the measured models that are not plain numbers: words, tf.Examples, JPEG files."""

import numpy as np
import tensorflow as tf

# The vocabularies of the string columns.
LISTS: dict[str, list[str]] = {
    "work": [f"work {k}" for k in range(20)],
    "school": [f"school {k}" for k in range(50)],
    "brand": [f"brand {k}" for k in range(500)],
    "town": [f"town {k}" for k in range(5000)],
}


def words(rng: np.random.Generator, vocabulary: list[str], count: int) -> list[str]:
    """Return random words; about one in ten is not in the vocabulary."""
    known = [str(word) for word in rng.choice(vocabulary, count)]
    return ["elsewhere" if rng.random() < 0.1 else word for word in known]


def table_rows(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Return eight numbers [count, 8] and a word [count, 1] for each column of LISTS."""
    rows = {
        name: np.array(words(rng, vocabulary, count)).astype("S").reshape(count, 1)
        for name, vocabulary in LISTS.items()
    }
    return {"numbers": rng.normal(size=(count, 8)).astype(np.float32)} | rows


def people(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return serialized tf.Examples [count] of 16 numbers, a town and some tags."""
    examples = []
    for town in words(rng, LISTS["town"], count):
        example = tf.train.Example()
        feature = example.features.feature
        feature["numbers"].float_list.value.extend(rng.normal(size=16))
        feature["town"].bytes_list.value.append(town.encode())
        feature["tags"].int64_list.value.extend(rng.integers(1, 1000, rng.integers(1, 12)))
        examples.append(example.SerializeToString(deterministic=True))
    return np.array(examples)


def pictures(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return JPEG files [count] of 240 × 320 pixels: smooth colours with some noise."""
    files = []
    for _ in range(count):
        coarse = rng.uniform(0, 255, (6, 8, 3))
        smooth = tf.image.resize(coarse, [240, 320], "bicubic").numpy()
        noisy = np.clip(smooth + rng.normal(0, 8, smooth.shape), 0, 255).astype(np.uint8)
        files.append(tf.io.encode_jpeg(noisy, quality=90).numpy())
    return np.array(files)

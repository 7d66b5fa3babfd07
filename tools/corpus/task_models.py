"""Models of the corpus for whole tasks: recommendation, detection, audio, feature columns.

Every function takes the folder to export to and returns the calls whose answers are recorded.
"""

import pathlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gen_audio_ops  # tf.audio lacks AudioSpectrogram and Mfcc

from tools.corpus.call import Call
from tools.corpus.graph_models import v1_control_flow

v1 = tf.compat.v1
Export = Callable[[pathlib.Path], list[Call]]
PREDICT, CLASSIFY = "tensorflow/serving/predict", "tensorflow/serving/classify"
info, define = v1.saved_model.build_tensor_info, v1.saved_model.build_signature_def


def save_v1(
    session: tf.compat.v1.Session, folder: pathlib.Path, signatures: dict[str, object]
) -> None:
    builder = v1.saved_model.Builder(str(folder))
    builder.add_meta_graph_and_variables(
        session, ["serve"], signatures, main_op=v1.tables_initializer()
    )
    builder.save()


def random_variable(name: str, rng: np.random.Generator, *shape: int) -> tf.Variable:
    value = rng.normal(0, 1 / np.sqrt(shape[0]), shape).astype(np.float32)
    return v1.get_variable(name, initializer=value)


def person(**features: object) -> bytes:
    """Return a serialized tf.Example: str as bytes, int as int64, float as float features."""
    example = tf.train.Example()
    for name, values in features.items():
        feature = example.features.feature[name]
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, str):
                feature.bytes_list.value.append(value.encode())
            elif isinstance(value, int):
                feature.int64_list.value.append(value)
            else:
                feature.float_list.value.append(value)
    return example.SerializeToString(deterministic=True)


def feature_columns() -> tuple[list[object], list[object]]:
    """Return feature columns of every kind: those of the linear part and of the deep part."""
    column = v1.feature_column
    age = column.numeric_column("age")
    ages = column.bucketized_column(age, [20, 30, 40, 65])
    gains = column.numeric_column("gains", [3], 0.0, normalizer_fn=lambda x: tf.math.log1p(x))
    kinds = ["shop", "farm", "sea"]
    work = column.categorical_column_with_vocabulary_list("work", kinds, None, -1, 2)
    town = column.categorical_column_with_hash_bucket("town", 30)
    marks = column.categorical_column_with_identity("marks", 10, 0)
    more = column.categorical_column_with_identity("more", 10)
    weighed = column.weighted_categorical_column(marks, "weights")
    wide = [ages, work, weighed, column.crossed_column([ages, "town"], 50)]
    deep = [
        age,
        gains,
        column.indicator_column(work),
        column.embedding_column(town, 6, "sqrtn"),
        *column.shared_embedding_columns([marks, more], 4),
    ]
    return wide, deep


def wide_and_deep(folder: pathlib.Path) -> list[Call]:
    """Export a linear and a deep part over feature columns of every kind, of tf.Examples."""
    rng = np.random.default_rng(31)
    with tf.Graph().as_default(), v1.Session() as session:
        wide, deep = feature_columns()
        spec = v1.feature_column.make_parse_example_spec([*wide, *deep])
        serialized = v1.placeholder(tf.string, [None], name="examples")
        features = v1.parse_example(serialized, spec)
        linear = v1.feature_column.linear_model(features, wide, units=3)
        x = v1.feature_column.input_layer(features, deep)
        for index, size in enumerate((16, 8)):
            kernel = random_variable(f"kernel_{index}", rng, x.shape[-1], size)
            x = tf.nn.relu(x @ kernel + random_variable(f"bias_{index}", rng, size))
        logits = tf.identity(linear + x @ random_variable("top", rng, 8, 3), "logits")
        session.run(v1.global_variables_initializer())
        for variable in v1.trainable_variables():
            if "linear_model" in variable.name:
                variable.load(rng.normal(size=variable.shape).astype(np.float32), session)
        names = tf.constant([["low", "middle", "high"]])
        classes = tf.tile(names, [tf.shape(logits)[0], 1])
        scores = {"classes": info(classes), "scores": info(tf.nn.softmax(logits))}
        inputs = {"inputs": info(serialized)}
        signatures = {
            "serving_default": define(inputs, scores, CLASSIFY),
            "predict": define(inputs, {"logits": info(logits), "linear": info(linear)}, PREDICT),
        }
        save_v1(session, folder, signatures)
    examples = [
        person(age=34.0, gains=[1.0, 0.0, 9.5], work="farm", town="Ulm", marks=[1, 4],
               weights=[0.5, 2.0], more=[3]),
        person(age=71.0, work=["sea", "shop"], town=["Bern", "Ulm"], marks=[9], weights=[1.0]),
        person(age=19.5, gains=[0.0, 2.0, 0.0], work="elsewhere"),
    ]  # fmt: skip
    return [Call(name, {"inputs": np.array(examples)}) for name in signatures]


def recommender(folder: pathlib.Path) -> list[Call]:
    """Export a matrix factorisation: tables map names to rows; the best unseen films are output."""
    people, films = [f"user {k}" for k in range(12)], [f"film {k}" for k in range(25)]

    def table(keys: list[str]) -> tf.lookup.StaticHashTable:
        rows = tf.range(len(keys), dtype=tf.int64)
        return tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant(keys), rows), -1
        )

    class Recommender(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            rng = np.random.default_rng(32)
            self.person_row, self.film_row = table(people), table(films)
            self.titles = tf.Variable(films)
            self.person = tf.Variable(rng.normal(size=(13, 8)).astype(np.float32))
            self.film = tf.Variable(rng.normal(size=(25, 8)).astype(np.float32))
            self.bias = tf.Variable(rng.normal(size=25).astype(np.float32))

        @tf.function(
            input_signature=[
                tf.TensorSpec([None], tf.string, "user"),
                tf.TensorSpec([None, None], tf.string, "seen"),
                tf.TensorSpec([], tf.int32, "k"),
            ]
        )
        def recommend(self, user: tf.Tensor, seen: tf.Tensor, k: tf.Tensor) -> dict[str, tf.Tensor]:
            row = self.person_row.lookup(user)
            row = tf.where(row < 0, tf.constant(12, tf.int64), row)  # 12: the row of unknown users
            scores = tf.linalg.matmul(tf.gather(self.person, row), self.film, transpose_b=True)
            seen_row = self.film_row.lookup(seen)
            hidden = tf.reduce_max(tf.one_hot(seen_row, 25), 1)
            scores += self.bias - 1e9 * hidden
            best, index = tf.math.top_k(scores, k)
            unique, _ = tf.unique(tf.reshape(index, [-1]))
            return {"title": tf.gather(self.titles, index), "score": best, "films": unique}

    model = Recommender()
    tf.saved_model.save(model, str(folder), signatures=model.recommend)
    seen = np.array([[b"film 3", b"film 24"], [b"", b""], [b"film 0", b"unknown"]])
    user = np.array([b"user 3", b"nobody", b"user 11"])
    return [Call("serving_default", {"user": user, "seen": seen, "k": np.int32(k)}) for k in (5, 1)]


def detection(folder: pathlib.Path) -> list[Call]:
    """Export non-maximum suppression of boxes and crops of a resized image's features."""

    class Detector(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            rng = np.random.default_rng(33)
            self.kernel = tf.Variable(rng.normal(0, 0.3, (3, 3, 3, 4)).astype(np.float32))

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, None, 3], tf.uint8, "image"),
                tf.TensorSpec([None, 4], tf.float32, "codes"),
                tf.TensorSpec([None, 3], tf.float32, "logits"),
            ]
        )
        def detect(
            self, image: tf.Tensor, codes: tf.Tensor, logits: tf.Tensor
        ) -> dict[str, tf.Tensor]:
            small = tf.raw_ops.ResizeBilinear(
                images=image[tf.newaxis], size=[24, 32], half_pixel_centers=True
            )
            features = tf.nn.relu(tf.nn.conv2d(small / 255.0, self.kernel, 2, "SAME"))
            centre, size = tf.sigmoid(codes[:, :2]), 0.4 * tf.sigmoid(codes[:, 2:])
            boxes = tf.clip_by_value(tf.concat([centre - size, centre + size], 1), 0.0, 1.0)
            scores = tf.sigmoid(logits)
            best = tf.reduce_max(scores, 1)
            kept = tf.image.non_max_suppression(boxes, best, 6, 0.4, 0.1)
            soft, soft_scores = tf.image.non_max_suppression_with_scores(
                boxes, best, 6, 0.9, 0.1, soft_nms_sigma=0.5
            )
            padded, valid = tf.image.non_max_suppression_padded(
                boxes, best, 8, 0.4, 0.1, pad_to_max_output_size=True
            )
            combined = tf.image.combined_non_max_suppression(
                boxes[tf.newaxis, :, tf.newaxis], scores[tf.newaxis], 4, 8, 0.4, 0.1
            )
            chosen = tf.gather(boxes, kept)
            rows = tf.zeros_like(kept)
            crops = tf.image.crop_and_resize(features, chosen, rows, [5, 5])
            nearest = tf.image.crop_and_resize(features, chosen, rows, [3, 4], "nearest", -1.0)
            outputs = {
                "boxes": chosen,
                "classes": tf.gather(tf.argmax(scores, 1), kept),
                "soft": soft,
                "soft_scores": soft_scores,
                "padded": padded,
                "valid": valid,
                "crops": crops,
                "nearest": nearest,
            }
            return outputs | {f"nms_{key}": value for key, value in combined._asdict().items()}

    model = Detector()
    tf.saved_model.save(model, str(folder), signatures=model.detect)
    rng = np.random.default_rng(34)
    return [
        Call(
            "serving_default",
            {
                "image": rng.integers(0, 256, (*size, 3)).astype(np.uint8),
                "codes": rng.normal(size=(count, 4)).astype(np.float32),
                "logits": rng.normal(size=(count, 3)).astype(np.float32),
            },
        )
        for size, count in (((60, 50), 40), ((17, 90), 3))
    ]


def audio(folder: pathlib.Path) -> list[Call]:
    """Export STFT, mel bands, MFCC and the inverse STFT; and MFCC of a WAV file by audio ops."""

    class Listener(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, "samples")])
        def cepstra(self, samples: tf.Tensor) -> dict[str, tf.Tensor]:
            spectra = tf.signal.stft(samples, 256, 128, pad_end=True)
            mel = tf.signal.linear_to_mel_weight_matrix(20, 129, 8000, 80.0, 3800.0)
            bands = tf.tensordot(tf.abs(spectra), mel, 1)
            cepstra = tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(bands + 1e-3))
            window = tf.signal.inverse_stft_window_fn(128)
            again = tf.signal.inverse_stft(spectra, 256, 128, window_fn=window)
            return {
                "spectra": spectra, "bands": bands, "mfcc": cepstra[..., :13],
                "again": again, "phase": tf.math.angle(spectra[:, :2, 1:9]),
            }  # fmt: skip

        @tf.function(input_signature=[tf.TensorSpec([], tf.string, "file")])
        def from_wav(self, file: tf.Tensor) -> dict[str, tf.Tensor]:
            sound = tf.audio.decode_wav(file, desired_channels=1)
            spectrogram = gen_audio_ops.audio_spectrogram(
                sound.audio, 240, 120, magnitude_squared=True
            )
            mfcc = gen_audio_ops.mfcc(
                spectrogram, sound.sample_rate, lower_frequency_limit=40,
                upper_frequency_limit=3500, filterbank_channel_count=30, dct_coefficient_count=12,
            )  # fmt: skip
            return {"spectrogram": spectrogram, "mfcc": mfcc, "rate": sound.sample_rate}

    model = Listener()
    signatures = {"serving_default": model.cepstra, "from_wav": model.from_wav}
    tf.saved_model.save(model, str(folder), signatures=signatures)
    rng = np.random.default_rng(35)
    time = np.arange(2000) / 8000
    tones = [np.sin(2 * np.pi * hertz * time) for hertz in (220, 1330)]
    samples = (0.4 * np.stack(tones) + rng.normal(0, 0.05, (2, 2000))).astype(np.float32)
    wav = tf.audio.encode_wav(samples[:1].T, 8000).numpy()
    return [
        Call("serving_default", {"samples": samples}),
        Call("serving_default", {"samples": samples[:1, :300]}),
        Call("from_wav", {"file": np.array(wav)}),
    ]


def sparse_inputs(folder: pathlib.Path) -> list[Call]:
    """Export a model of two SparseTensors: counts for a product, weighted ids for an embedding."""
    rng = np.random.default_rng(36)
    with tf.Graph().as_default(), v1.Session() as session:
        counts = v1.sparse_placeholder(tf.float32, [None, 20], name="counts")
        ids = v1.sparse_placeholder(tf.int64, [None, None], name="ids")
        hidden = tf.sparse.sparse_dense_matmul(counts, random_variable("kernel", rng, 20, 6))
        table = random_variable("table", rng, 15, 6)
        weights = tf.SparseTensor(
            ids.indices, tf.cast(ids.values % 4 + 1, tf.float32), ids.dense_shape
        )
        found = tf.nn.safe_embedding_lookup_sparse(table, ids, weights, "mean", default_id=2)
        part = tf.sparse.slice(counts, [0, 5], [100, 10])
        outputs = {
            "logits": tf.concat([hidden, found], 1),
            "rows": tf.sparse.reduce_sum(counts, 1),
            "softmax": tf.sparse.softmax(tf.sparse.reorder(part)).values,
            "dense": tf.sparse.to_dense(tf.sparse.add(counts, counts * 0.5), 0.0),
        }
        session.run(v1.global_variables_initializer())
        signature = define(
            {"counts": info(counts), "ids": info(ids)},
            {key: info(value) for key, value in outputs.items()} | {"part": info(part)},
            PREDICT,
        )
        save_v1(session, folder, {"serving_default": signature})
    values = {
        "counts.indices": np.array([[0, 1], [0, 7], [1, 5], [1, 14], [1, 19], [3, 0]]),
        "counts.values": rng.normal(size=6).astype(np.float32),
        "counts.dense_shape": np.array([4, 20]),
        "ids.indices": np.array([[0, 0], [0, 1], [1, 0], [3, 0], [3, 2]]),
        "ids.values": np.array([3, 14, 0, 7, 7]),
        "ids.dense_shape": np.array([4, 3]),
    }
    return [Call("serving_default", values)]


def frozen_lstm(folder: pathlib.Path) -> list[Call]:
    """Write a GraphDef with constants for variables: a v1 loop over TensorArrays, and a cond."""
    units = 8
    rng = np.random.default_rng(37)
    with v1_control_flow(), tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, None, 5], name="x")
        lengths = v1.placeholder(tf.int32, [None], name="lengths")
        kernel = random_variable("kernel", rng, 5 + units, 4 * units)
        top = random_variable("top", rng, units, 3)
        time = tf.shape(x)[1]
        frames = tf.TensorArray(tf.float32, time).unstack(tf.transpose(x, [1, 0, 2]))

        def step(i: tf.Tensor, cell: tf.Tensor, output: tf.Tensor, seen: tf.TensorArray) -> object:
            gates = tf.concat([frames.read(i), output], 1) @ kernel
            write, candidate, forget, show = tf.split(gates, 4, 1)
            new = cell * tf.sigmoid(forget + 1.0) + tf.sigmoid(write) * tf.tanh(candidate)
            alive = (i < lengths)[:, tf.newaxis]
            cell = tf.where(alive, new, cell)
            output = tf.where(alive, tf.tanh(new) * tf.sigmoid(show), output)
            return i + 1, cell, output, seen.write(i, output)

        zeros = tf.zeros([tf.shape(x)[0], units])
        state = (0, zeros, zeros, tf.TensorArray(tf.float32, time))
        *_, output, seen = tf.while_loop(lambda i, *_: i < time, step, state)
        logits = tf.matmul(output, top, name="logits")
        tf.transpose(seen.stack(), [1, 0, 2], name="states")
        confident = tf.reduce_max(tf.nn.softmax(logits)) > 0.5
        v1.cond(confident, lambda: tf.nn.softmax(logits), lambda: tf.zeros_like(logits), name="out")
        session.run(v1.global_variables_initializer())
        outputs = ["logits", "states", "out/Merge"]
        frozen = v1.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), outputs
        )
    folder.mkdir(parents=True)
    (folder / "frozen.pb").write_bytes(frozen.SerializeToString(deterministic=True))
    return [
        Call(
            "graph",
            {
                "x:0": rng.normal(size=(len(lengths), max(lengths) + 1, 5)).astype(np.float32),
                "lengths:0": np.array(lengths, np.int32),
            },
            tuple(f"{name}:0" for name in outputs),
        )
        for lengths in ([4, 7, 1], [0])
    ]


def fake_quant(folder: pathlib.Path) -> list[Call]:
    """Export a quantisation-aware CNN: weights by channel, activations by fixed ranges."""
    rng = np.random.default_rng(38)
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 12, 12, 3], name="x")
        quantised = tf.quantization.fake_quant_with_min_max_args(x, -1.0, 1.0)
        width = 3
        for index, channels in enumerate((8, 12)):
            kernel = random_variable(f"kernel_{index}", rng, 3, 3, width, channels)
            largest = tf.reduce_max(tf.abs(kernel), [0, 1, 2])
            kernel = tf.quantization.fake_quant_with_min_max_vars_per_channel(
                kernel, -largest, largest, 8, narrow_range=True
            )
            y = tf.nn.conv2d(quantised, kernel, 1 + index, "SAME")
            y = tf.nn.relu6(tf.nn.bias_add(y, random_variable(f"bias_{index}", rng, channels)))
            top = v1.get_variable(f"max_{index}", initializer=np.float32(2.5 + index))
            quantised = tf.quantization.fake_quant_with_min_max_vars(y, 0.0, top)
            width = channels
        pooled = tf.reduce_mean(quantised, [1, 2])
        kernel = random_variable("dense", rng, width, 4)
        kernel = tf.quantization.fake_quant_with_min_max_vars(kernel, -0.6, 0.7, 4)
        logits = pooled @ kernel
        packed = tf.quantization.quantize_and_dequantize_v2(logits, -2.0, 2.0, range_given=True)
        session.run(v1.global_variables_initializer())
        outputs = {"logits": logits, "packed": packed, "activations": quantised}
        v1.saved_model.simple_save(session, str(folder), {"x": x}, outputs)
    return [
        Call("serving_default", {"x": rng.uniform(-1.2, 1.2, (n, 12, 12, 3)).astype(np.float32)})
        for n in (1, 3)
    ]


SMALL: dict[str, Export] = {
    "wide_and_deep": wide_and_deep,
    "recommender": recommender,
    "detection": detection,
    "audio": audio,
    "sparse_inputs": sparse_inputs,
    "fake_quant": fake_quant,
}
FROZEN: dict[str, Export] = {"frozen_lstm": frozen_lstm}  # not a SavedModel

"""Sequence models of the corpus: recurrent stacks, decoders with loops, a text classifier.

Every function takes the folder to export to and returns the calls whose answers are recorded.
"""

import pathlib
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from tools.corpus.call import Call
from tools.corpus.graph_models import v1_control_flow
from tools.corpus.keras_models import export, spread_logits

v1 = tf.compat.v1
Export = Callable[[pathlib.Path], list[Call]]
Weights = dict[str, tf.Tensor]
WORDS, WIDTH, START, END = 40, 16, 1, 2  # the seq2seq vocabulary; token 0 is padding
HEADS, BLOCKS, CONTEXT = 4, 2, 12  # the causal decoder


def recurrent_stack(folder: pathlib.Path) -> list[Call]:
    """Export stacked layers of every kind of cell, over any number of time steps."""
    rng = np.random.default_rng(21)
    stack = [
        keras.Input((None, 8)),
        layers.LSTM(12, return_sequences=True),
        layers.GRU(12, return_sequences=True, reset_after=False),
        layers.Bidirectional(layers.LSTM(8, return_sequences=True), merge_mode="sum"),
        layers.LayerNormalization(),
        layers.SimpleRNN(12, return_sequences=True, go_backwards=True),
        layers.RNN([layers.GRUCell(10), layers.LSTMCell(10)]),
        layers.Dense(5),
    ]
    batches = [rng.normal(size=(n, 6 + n, 8)).astype(np.float32) for n in (1, 3)]
    return export(keras.Sequential(stack), folder, batches)


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(0, 1.5 / np.sqrt(shape[0]), shape).astype(np.float32)


def seq2seq_weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(22)
    return {
        "embedding": rng.normal(0, 1, (WORDS, WIDTH)).astype(np.float32),
        "encoder": _normal(rng, 2 * WIDTH, 3 * WIDTH),
        "decoder": _normal(rng, 3 * WIDTH, 3 * WIDTH),
        "keys": _normal(rng, WIDTH, WIDTH),
        "query": _normal(rng, WIDTH, WIDTH),
        "score": _normal(rng, WIDTH, 1),
        "output": 2 * _normal(rng, 2 * WIDTH, WORDS),
    }


def gated_unit(kernel: tf.Tensor, inputs: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
    """Return the next state of a GRU without biases, [batch, size]."""
    size = state.shape[-1]
    gates = tf.sigmoid(tf.concat([inputs, state], 1) @ kernel[:, : 2 * size])
    reset, update = tf.split(gates, 2, 1)
    candidate = tf.tanh(tf.concat([inputs, reset * state], 1) @ kernel[:, 2 * size :])
    return update * state + (1 - update) * candidate


def translate(weights: Weights, tokens: tf.Tensor, max_steps: tf.Tensor) -> dict[str, tf.Tensor]:
    """Encode `tokens` [batch, time] and decode greedily with attention until all rows have ended.

    At most `max_steps` tokens are decoded for each row.
    """
    batch, time = tf.unstack(tf.shape(tokens))
    embedded = tf.transpose(tf.gather(weights["embedding"], tokens), [1, 0, 2])
    present = tf.not_equal(tokens, 0)
    inputs = tf.TensorArray(tf.float32, time).unstack(embedded)
    is_word = tf.TensorArray(tf.bool, time).unstack(tf.transpose(present))

    def encode(i: tf.Tensor, state: tf.Tensor, seen: tf.TensorArray) -> tuple[object, ...]:
        new = gated_unit(weights["encoder"], inputs.read(i), state)
        state = tf.where(is_word.read(i)[:, tf.newaxis], new, state)
        return i + 1, state, seen.write(i, state)

    start = (0, tf.zeros([batch, WIDTH]), tf.TensorArray(tf.float32, time))
    _, state, seen = tf.while_loop(lambda i, *_: i < time, encode, start)
    memory = tf.transpose(seen.stack(), [1, 0, 2])
    keys = tf.einsum("btw,wv->btv", memory, weights["keys"])

    def decode(
        i: tf.Tensor, token: tf.Tensor, state: tf.Tensor, done: tf.Tensor,
        words: tf.TensorArray, looks: tf.TensorArray,
    ) -> tuple[object, ...]:  # fmt: skip
        query = state @ weights["query"]
        scores = tf.tanh(keys + query[:, tf.newaxis]) @ weights["score"]
        scores = tf.where(present, scores[..., 0], -1e9)
        attention = tf.nn.softmax(scores)
        context = tf.reduce_sum(attention[..., tf.newaxis] * memory, 1)
        embedded = tf.gather(weights["embedding"], token)
        state = gated_unit(weights["decoder"], tf.concat([embedded, context], 1), state)
        logits = tf.concat([state, context], 1) @ weights["output"]
        token = tf.where(done, 0, tf.argmax(logits, 1, tf.int32))
        done = tf.logical_or(done, tf.equal(token, END))
        return i + 1, token, state, done, words.write(i, token), looks.write(i, attention)

    words = tf.TensorArray(tf.int32, 0, dynamic_size=True, element_shape=[None])
    looks = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[None, None])
    start = (0, tf.fill([batch], START), state, tf.fill([batch], False), words, looks)
    *_, state, _, words, looks = tf.while_loop(
        lambda i, token, state, done, *_: tf.logical_and(i < max_steps, ~tf.reduce_all(done)),
        decode,
        start,
    )
    return {
        "words": tf.transpose(words.stack()),
        "attention": tf.transpose(looks.stack(), [1, 0, 2]),
        "state": state,
    }


def seq2seq_calls() -> list[Call]:
    rng = np.random.default_rng(23)
    calls = []
    for count, steps in ((1, 4), (3, 12)):
        tokens = rng.integers(3, WORDS, (count, 7)).astype(np.int32)
        for row in range(count):
            tokens[row, 7 - row :] = 0
        calls.append(Call("serving_default", {"tokens": tokens, "max_steps": np.int32(steps)}))
    return calls


def seq2seq_attention(folder: pathlib.Path) -> list[Call]:
    """Export the translator with While ops over functions, and tensor lists."""

    class Translator(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = {key: tf.Variable(value) for key, value in seq2seq_weights().items()}

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, None], tf.int32, "tokens"),
                tf.TensorSpec([], tf.int32, "max_steps"),
            ]
        )
        def translate(self, tokens: tf.Tensor, max_steps: tf.Tensor) -> dict[str, tf.Tensor]:
            return translate(self.weights, tokens, max_steps)

    model = Translator()
    tf.saved_model.save(model, str(folder), signatures=model.translate)
    return seq2seq_calls()


def seq2seq_attention_v1(folder: pathlib.Path) -> list[Call]:
    """Export the same translator with TensorFlow 1 loops and TensorArrays."""
    with v1_control_flow(), tf.Graph().as_default(), v1.Session() as session:
        tokens = v1.placeholder(tf.int32, [None, None], name="tokens")
        max_steps = v1.placeholder(tf.int32, [], name="max_steps")
        weights = {
            key: v1.get_variable(key, initializer=value, use_resource=False)
            for key, value in seq2seq_weights().items()
        }
        outputs = translate(weights, tokens, max_steps)
        session.run(v1.global_variables_initializer())
        inputs = {"tokens": tokens, "max_steps": max_steps}
        v1.saved_model.simple_save(session, str(folder), inputs, outputs)
    return seq2seq_calls()


class CausalDecoder(tf.Module):
    """A small language model: log probabilities of a text, or greedy generation with a cache."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(24)
        shapes = {"qkv": (WIDTH, 3 * WIDTH), "mix": (WIDTH, WIDTH)}
        shapes |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
        self.words = tf.Variable(_normal(rng, WORDS, WIDTH) * 4)
        self.places = tf.Variable(_normal(rng, CONTEXT, WIDTH))
        self.blocks = [
            {name: tf.Variable(_normal(rng, *shape)) for name, shape in shapes.items()}
            for _ in range(BLOCKS)
        ]

    @staticmethod
    def normalise(x: tf.Tensor) -> tf.Tensor:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, None, None, 1e-5)

    def attend(self, block: Weights, x: tf.Tensor, cache: tf.Tensor, start: tf.Tensor) -> object:
        """Return the self-attention of `x`, whose first position is `start`, and the new cache.

        `x` is [batch, length, WIDTH], the cache of keys and values [2, batch, CONTEXT, H, D].
        """
        batch, length = tf.shape(x)[0], tf.shape(x)[1]
        qkv = tf.reshape(x @ block["qkv"], [batch, length, 3, HEADS, WIDTH // HEADS])
        query, new = qkv[:, :, 0], tf.transpose(qkv[:, :, 1:], [2, 0, 1, 3, 4])
        position = start + tf.range(length)
        one_hot = tf.one_hot(position, CONTEXT)
        written = tf.reduce_sum(one_hot, 0)[:, tf.newaxis, tf.newaxis]
        cache = cache * (1 - written) + tf.einsum("kblhd,lc->kbchd", new, one_hot)
        scores = tf.einsum("blhd,bchd->bhlc", query, cache[0]) / np.sqrt(WIDTH / HEADS)
        hidden = tf.range(CONTEXT) > position[:, tf.newaxis]
        scores = tf.where(hidden, np.float32(-1e9), scores)
        seen = tf.einsum("bhlc,bchd->blhd", tf.nn.softmax(scores), cache[1])
        return tf.reshape(seen, [batch, length, WIDTH]) @ block["mix"], cache

    def forward(self, tokens: tf.Tensor, caches: tf.Tensor, start: tf.Tensor) -> object:
        places = tf.gather(self.places, start + tf.range(tf.shape(tokens)[1]))
        x = tf.gather(self.words, tokens) + places
        new_caches = []
        for block, cache in zip(self.blocks, tf.unstack(caches), strict=True):
            seen, cache = self.attend(block, self.normalise(x), cache, start)
            new_caches.append(cache)
            x = x + seen
            x = x + tf.nn.gelu(self.normalise(x) @ block["up"], True) @ block["down"]
        logits = tf.einsum("blw,vw->blv", self.normalise(x), self.words)
        return logits, tf.stack(new_caches)

    def empty_caches(self, batch: tf.Tensor) -> tf.Tensor:
        return tf.zeros([BLOCKS, 2, batch, CONTEXT, HEADS, WIDTH // HEADS])

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, "tokens")])
    def score(self, tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        logits, _ = self.forward(tokens, self.empty_caches(tf.shape(tokens)[0]), 0)
        return {"log_probabilities": tf.nn.log_softmax(logits)}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, "tokens")])
    def generate(self, tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        batch, length = tf.shape(tokens)[0], tf.shape(tokens)[1]
        logits, caches = self.forward(tokens, self.empty_caches(batch), 0)
        chosen = tf.argmax(logits[:, -1], 1, tf.int32)

        def body(i: tf.Tensor, chosen: tf.Tensor, caches: tf.Tensor, texts: tf.Tensor) -> object:
            texts = tf.concat([texts, chosen[:, tf.newaxis]], 1)
            logits, caches = self.forward(chosen[:, tf.newaxis], caches, i)
            return i + 1, tf.argmax(logits[:, -1], 1, tf.int32), caches, texts

        state = (length, chosen, caches, tokens)
        shapes = tuple(part.shape for part in state[:-1])
        *_, caches, texts = tf.while_loop(
            lambda i, *_: i < CONTEXT, body, state, (*shapes, tf.TensorShape([None, None]))
        )
        return {"texts": texts, "caches": caches}


def causal_decoder(folder: pathlib.Path) -> list[Call]:
    model = CausalDecoder()
    signatures = {"serving_default": model.score, "generate": model.generate}
    tf.saved_model.save(model, str(folder), signatures=signatures)
    rng = np.random.default_rng(25)
    tokens = rng.integers(0, WORDS, (2, 5)).astype(np.int32)
    return [
        Call(name, {"tokens": value}) for name in signatures for value in (tokens, tokens[:1, :2])
    ]


def text_classifier(folder: pathlib.Path) -> list[Call]:
    rng = np.random.default_rng(26)
    vectorize = layers.TextVectorization(max_tokens=30, output_sequence_length=10)
    vectorize.adapt(["a fine and lovely film", "a dull film, badly made", "lovely music; fine!"])
    stack = [
        keras.Input((1,), dtype="string"),
        vectorize,
        layers.Embedding(30, 12, embeddings_initializer="normal"),
        layers.SeparableConv1D(16, 3, activation="relu", bias_initializer="normal"),
        layers.GlobalMaxPooling1D(),
        layers.Dense(3, activation="softmax"),
    ]
    model = keras.Sequential(stack)
    texts = np.array([["A FINE, lovely film"], ["badly made, and dull"], ["nothing known"], [""]])
    spread_logits(model, tf.constant(texts))
    rng.shuffle(texts)
    return export(model, folder, [texts.astype("S"), texts[:1].astype("S")])


SMALL: dict[str, Export] = {
    "seq2seq_attention": seq2seq_attention,
    "seq2seq_attention_v1": seq2seq_attention_v1,
    "causal_decoder": causal_decoder,
    "text_classifier": text_classifier,
}
LARGE: dict[str, Export] = {"recurrent_stack": recurrent_stack}

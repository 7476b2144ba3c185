"""fastText's supervised model in kernels: its features, its training and its scores.

Why a trainer of our own: no training library is kept up for numpy 2, and the wheels that exist take the module name of
`fasttext-predict`; and the reference implementation's random numbers and threads do not promise the same model twice. What is written is
its own file format, so any fastText reads the result. The differences: the order of texts is drawn anew in every epoch, rows that no
training text has touched are zero (there they keep their random start, which is noise in the score of every unseen word pair), and the
words of the texts are passed over that have a meaning to fastText (kernels/fasttext.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import xxhash

from dataproc.kernels import fasttext as k
from dataproc.kernels.columns import chunks, text_buffers
from dataproc.kernels.compiling import ready
from dataproc.quality_models import fasttext_file as file
from dataproc.quality_models.fasttext_file import END, FastTextFile, Settings
from store.errors import ConfigError

FEATURES_AT_ONCE = 4096
TEXT_BYTES = 1 << 20  # of a training text that are looked at: one giant must not be most of an epoch
MOST_LABELS = 16  # of more the collapsed weights would be larger than the model


@dataclass(frozen=True)
class Training:
    """How a model is trained: fastText's settings, with its meaning. rate: of the first step."""

    dim: int
    epochs: int
    rate: float
    settings: Settings
    min_count: int
    seed: int


def vocabulary(words: list[bytes], settings: Settings) -> k.Vocabulary:
    """The look-up table of a model's words, by row."""
    joined = np.frombuffer(b"".join(words) or b"\0", np.uint8)
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in words], dtype=np.int64)]).astype(np.int64)
    hashes = np.empty(len(words), np.uint64)
    bits = max(4, int(2 * len(words)).bit_length())
    keys, ids = np.zeros(1 << bits, np.uint64), np.full(1 << bits, -1, np.int32)
    with ready(k.hash_words):
        k.hash_words(joined, offsets, hashes)
        k.enter_words(hashes, keys, ids, bits)
    end_id = words.index(END) if END in words else -1
    return k.Vocabulary(
        keys, ids, bits, len(words), settings.word_ngrams, max(1, settings.bucket), settings.min_n, settings.max_n, _fnv(END), end_id
    )


def _fnv(word: bytes) -> int:
    """32-bit FNV-1a of a word of ASCII."""
    h = 2166136261
    for byte in word:
        h = (h ^ byte) * 16777619 % (1 << 32)
    return h


def _work(settings: Settings, room: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(state, chains, out) of a walk; out has room for so many features."""
    least = 2 * max(settings.word_ngrams, settings.max_n, 1)
    return np.zeros(k.STATE, np.int64), np.zeros(settings.word_ngrams, np.uint64), np.zeros(max(room, least), np.int32)


class FastTextScorer:
    """Scores texts by a model. With few labels under a softmax its two matrices become one number for each feature and label, which is
    exact: a score is a softmax over (mean of input rows) . output row = mean of (input row . output row); so a feature costs one look-up,
    whatever the model's dimension. With many, or a tree of labels, the input rows are added up."""

    def __init__(self, model: FastTextFile):
        if not model.labels:
            raise file.Unsupported("it has no labels")
        self.labels = list(model.labels)
        self._settings = model.settings
        self._vocabulary = vocabulary(model.words, model.settings)
        self._rows = np.zeros(0, np.int32)
        if model.kept is not None:
            self._rows = np.full(max(1, model.settings.bucket), -1, np.int32)
            self._rows[model.kept] = np.arange(len(model.kept), dtype=np.int32)
        self._tree = _Tree(model.label_counts) if model.settings.loss == file.HIERARCHICAL else None
        self._outputs = model.outputs.astype(np.float64) if self._tree or len(model.labels) > MOST_LABELS else None
        # Of two labels under a softmax only the difference counts.
        self._pair = model.settings.loss == file.SOFTMAX and len(self.labels) == 2
        if self._outputs is not None:
            self.weights = np.ascontiguousarray(model.inputs, np.float32)
        else:
            weights = np.empty((len(model.inputs), len(model.labels)), np.float64)
            with ready(k.collapse):
                k.collapse(np.ascontiguousarray(model.inputs), np.ascontiguousarray(model.outputs), weights)
            self.weights = (weights[:, 1:] - weights[:, :1] if self._pair else weights).astype(np.float32)
        self._work = _work(model.settings, FEATURES_AT_ONCE)

    def scores(self, texts: pa.Array | pa.ChunkedArray, languages: list[str | None] | None = None) -> np.ndarray:
        """(rows, labels) float64: the probability of each label; NaN for a text without a feature. A null text is an empty one."""
        rows = len(texts)
        sums, counts = np.zeros((rows, self.weights.shape[1])), np.zeros(rows, np.int64)
        row = 0
        for part in chunks(texts):
            stop = row + len(part)
            with ready(k.sum_weights):
                k.sum_weights(
                    part.data, part.offsets, self._vocabulary, self._rows, self.weights, *self._work, sums[row:stop], counts[row:stop]
                )
            row = stop
        with np.errstate(invalid="ignore", over="ignore"):
            means = np.where(counts[:, None] > 0, sums, np.nan) / np.maximum(counts, 1)[:, None]
            if self._outputs is not None:
                means = _products(means, self._outputs)
            if self._tree:
                return self._tree.probabilities(means)
            if self._pair:
                second = 1 / (1 + np.exp(-means))
                return np.hstack([1 - second, second])
            if self._settings.loss == file.SOFTMAX:
                shares = np.exp(means - means.max(axis=1, keepdims=True))
                return shares / shares.sum(axis=1, keepdims=True)
            return 1 / (1 + np.exp(-means))


def _products(hidden: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """hidden @ outputs.T, each row by itself: a product of matrices may add in another order where there are more rows."""
    return np.stack([outputs @ row for row in hidden]) if len(hidden) else np.zeros((0, len(outputs)))


class _Tree:
    """The Huffman tree of labels under which fastText's hierarchical softmax works: a label's probability is the product of the turns on
    the way to it."""

    def __init__(self, counts: np.ndarray):
        """counts: of the labels, the most frequent first, as the reference implementation builds its tree from them."""
        size = len(counts)
        weight = [int(count) for count in counts] + [10**15] * (size - 1)
        parent, right = [-1] * (2 * size - 1), [False] * (2 * size - 1)
        leaf, node = size - 1, size
        for made in range(size, 2 * size - 1):
            pair = []
            for _ in range(2):
                if leaf >= 0 and weight[leaf] < weight[node]:
                    pair.append(leaf)
                    leaf -= 1
                else:
                    pair.append(node)
                    node += 1
            weight[made] = weight[pair[0]] + weight[pair[1]]
            parent[pair[0]] = parent[pair[1]] = made
            right[pair[1]] = True
        # (inner nodes, labels): whether the way to a label turns there, and to which side.
        self._rights, self._lefts = np.zeros((size - 1, size)), np.zeros((size - 1, size))
        for label in range(size):
            at = label
            while parent[at] >= 0:
                (self._rights if right[at] else self._lefts)[parent[at] - size, label] = 1
                at = parent[at]

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """(rows, labels) float64. outputs: (rows, labels), of which the last column stands for no node."""
        nodes = outputs[:, : len(self._rights)]
        return np.exp(-(_products(np.logaddexp(0, -nodes), self._rights.T) + _products(np.logaddexp(0, nodes), self._lefts.T)))


def train(texts: pa.Array, labels: np.ndarray, names: list[str], label_weights: np.ndarray, how: Training) -> tuple[FastTextFile, list]:
    """Trains a model. texts: one contiguous column; labels: (rows,) int64 into `names`; label_weights: (labels,) of a text's step.

    The model depends on the set of texts, not on their order. Returns it and the mean loss of each epoch. Raises ConfigError when the
    numbers run away."""
    part = text_buffers(texts)
    words, counts, tokens = count_words(part.data, part.offsets, how.min_count)
    table = vocabulary(words, how.settings)
    bucket = how.settings.bucket if how.settings.word_ngrams > 1 or how.settings.max_n > 0 else 0
    inputs = np.empty((len(words) + bucket, how.dim), np.float32)
    outputs = np.zeros((len(names), how.dim), np.float32)
    touched = np.zeros(len(inputs), np.bool_)
    per_byte = how.settings.word_ngrams / 2 + (how.settings.max_n - how.settings.min_n + 1 if how.settings.max_n else 0)
    longest = min(int(np.diff(part.offsets).max(initial=0)), TEXT_BYTES)
    state, chains, found = _work(how.settings, int((longest + 4) * 2 * per_byte) + 16 * (how.settings.word_ngrams + how.settings.max_n + 1))
    scratch = [np.zeros(how.dim, np.float32), np.zeros(how.dim, np.float32), np.zeros(len(names), np.float32)]
    digests = [xxhash.xxh3_64_intdigest(bytes(part.data[a:b])) for a, b in zip(part.offsets[:-1], part.offsets[1:], strict=True)]
    done, losses = 0, []
    with ready(k.train_epoch):
        k.draw_rows(how.seed, inputs)
        for epoch in range(how.epochs):
            order = _order(digests, labels, how.seed, epoch)
            done, loss = k.train_epoch(
                part.data, part.offsets, TEXT_BYTES, labels, label_weights, order, table, inputs, outputs, touched, state, chains, found,
                *scratch, how.rate, done, max(1, tokens) * how.epochs,
            )  # fmt: skip
            losses.append(float(loss) / max(1, len(order)))
    if not (np.isfinite(inputs).all() and np.isfinite(outputs).all()):
        raise ConfigError(f"training ran away to infinite numbers: lower fasttext.rate, which is {how.rate:g}")
    inputs[~touched] = 0
    label_counts = np.bincount(labels, minlength=len(names))
    kept = {"epochs": how.epochs, "min_count": how.min_count}
    settings = Settings(how.settings.word_ngrams, bucket, how.settings.min_n, how.settings.max_n)
    return FastTextFile(settings, words, counts, names, label_counts, inputs, outputs, training=kept), losses


def _order(digests: list[int], labels: np.ndarray, seed: int, epoch: int) -> np.ndarray:
    """The order of an epoch: by a hash of seed, epoch and text, so that it does not depend on how the texts came."""
    keys = np.array([xxhash.xxh3_64_intdigest(f"{seed} {epoch} {digest}".encode()) for digest in digests], np.uint64)
    return np.lexsort((labels, keys)).astype(np.int64)


def count_words(data: np.ndarray, offsets: np.ndarray, min_count: int) -> tuple[list[bytes], np.ndarray, int]:
    """(words, how often each stands, tokens): the words that stand at least `min_count` times, the most frequent first, and `</s>`."""
    room = 1 << 16
    table, bits, base, count, row = np.zeros(2 * room, np.uint32), 10, 1, 0, 0
    columns = [np.zeros(room, kind) for kind in (np.uint64, np.int64, np.int64, np.int64)]  # hashes, starts, ends, counts
    heads = np.zeros(1, np.int64)
    with ready(k.count_words):
        while row < len(offsets) - 1:
            keys, starts, ends, counts = columns
            row, bits, base, count = k.count_words(data, offsets, row, keys, table, bits, base, count, starts, ends, counts, heads)
            if row < len(offsets) - 1:
                needed = count + (int(offsets[row + 1] - offsets[row])) // 2 + 2
                room = max(2 * len(keys), 1 << needed.bit_length())
                columns = [np.concatenate([column, np.zeros(room - len(column), column.dtype)]) for column in columns]
                table = np.concatenate([table, np.zeros(2 * room - len(table), np.uint32)])
    _, starts, ends, counts = columns
    found = [(int(n), bytes(data[a:b])) for n, a, b in zip(counts[:count], starts, ends, strict=False) if n >= min_count]
    found.append((len(offsets) - 1, END))
    found.sort(key=lambda pair: (-pair[0], pair[1]))
    return [word for _, word in found], np.array([n for n, _ in found], np.int64), int(heads[0])

"""fastText's .bin files, read and written: version 12 of the format, as `FastText::saveModel` of the reference implementation lays it out.

All numbers are little-endian: magic and version (int32); settings (12 int32 and one float64); the dictionary (its counts, then each word
with a NUL, its frequency as int64 and its kind as int8); one byte that says whether the input matrix is quantised; the input matrix (rows
and columns as int64, then float32 row by row); the same for the output matrix.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from store import files

MAGIC = struct.pack("<i", 793712314)
VERSION = 12
LABEL_PREFIX = "__label__"
END = b"</s>"
SOFTMAX, ONE_VS_ALL, NEGATIVE_SAMPLING, HIERARCHICAL = 3, 4, 2, 1
SUPERVISED = 3
_HEADER = struct.Struct("<ii")
_SETTINGS = struct.Struct("<12id")
_COUNTS = struct.Struct("<iiiqq")
_ENTRY = struct.Struct("<qb")
_SHAPE = struct.Struct("<qq")
_LEAST_BYTES = _HEADER.size + _SETTINGS.size + _COUNTS.size


@dataclass(frozen=True)
class Settings:
    """What of a model's settings decides its scores."""

    word_ngrams: int
    bucket: int
    min_n: int
    max_n: int
    loss: int = SOFTMAX


@dataclass(frozen=True)
class FastTextFile:
    """A supervised model. words: as UTF-8, by row of `inputs`, `</s>` one of them; counts: how often each stood in the training texts;
    labels: without their prefix; inputs: (words + bucket, dim) float32; outputs: (labels, dim) float32."""

    settings: Settings
    words: list[bytes]
    counts: np.ndarray
    labels: list[str]
    label_counts: np.ndarray
    inputs: np.ndarray
    outputs: np.ndarray
    training: dict[str, float] = field(default_factory=dict)  # epochs, rate and min_count, which the file has room for


class Unsupported(ValueError):
    """A fastText model that this module does not read: quantised, pruned or without labels. fastText itself may run it."""


def is_fasttext(beginning: bytes) -> bool:
    """Whether a file that begins so is a model of fastText."""
    return beginning[:4] == MAGIC


def read(url: str) -> FastTextFile:
    """Reads a model. Its matrices are mapped from a local file, not copied. Raises ValueError for what is no whole model, Unsupported for a
    kind that is not read here."""
    data = np.memmap(files.local_path(url), np.uint8, "r") if files.is_local(url) else np.frombuffer(files.read_bytes(url), np.uint8)
    view = memoryview(data)
    try:
        return _parse(view, data)
    except (struct.error, IndexError, OverflowError, UnicodeDecodeError) as error:
        raise ValueError(f"the file is cut off or damaged ({error})") from error


def _parse(view: memoryview, data: np.ndarray) -> FastTextFile:
    if len(view) < _LEAST_BYTES or not is_fasttext(bytes(view[:4])):
        raise ValueError("it does not begin as one")
    version = _HEADER.unpack_from(view)[1]
    if version not in (11, VERSION):
        raise Unsupported(f"version {version} of the format")
    (_, _, epochs, min_count, _, word_ngrams, loss, kind, bucket, min_n, max_n, _, _) = _SETTINGS.unpack_from(view, _HEADER.size)
    if kind != SUPERVISED:
        raise Unsupported("it has no labels")
    if version == 11:
        max_n = 0  # as the reference implementation takes supervised models of that version
    at = _HEADER.size + _SETTINGS.size
    size, words_count, labels_count, _, pruned = _COUNTS.unpack_from(view, at)
    if pruned >= 0:
        raise Unsupported("a pruned model")
    names, counts, at = _entries(view, at + _COUNTS.size, size)
    if words_count + labels_count != size or min(words_count, labels_count) < 0:
        raise ValueError("its dictionary does not add up")
    inputs, at = _matrix(view, data, at)
    outputs, _ = _matrix(view, data, at)
    needs_bucket = word_ngrams > 1 or max_n > 0
    if len(inputs) != words_count + (bucket if needs_bucket else len(inputs) - words_count) or len(outputs) != labels_count:
        raise ValueError("its matrices do not fit its dictionary")
    if inputs.shape[1] != outputs.shape[1] or word_ngrams < 1 or (needs_bucket and bucket < 1):
        raise ValueError("its settings contradict each other")
    return FastTextFile(
        Settings(word_ngrams, bucket, min_n, max_n, loss),
        names[:words_count],
        counts[:words_count],
        [name.decode().removeprefix(LABEL_PREFIX) for name in names[words_count:]],
        counts[words_count:],
        inputs,
        outputs,
        {"epochs": epochs, "min_count": min_count},
    )


def _entries(view: memoryview, at: int, size: int) -> tuple[list[bytes], np.ndarray, int]:
    """(names, counts, the byte after them) of the dictionary's entries."""
    names: list[bytes] = []
    counts = np.zeros(max(0, min(size, len(view))), np.int64)
    block_start, block = at, bytes(view[at : at + (1 << 20)])
    for number in range(len(counts)):
        if at - block_start > len(block) - 4096:
            block_start, block = at, bytes(view[at : at + (1 << 20)])
        end = block.find(b"\0", at - block_start)
        if end < 0:  # a word longer than the block
            block_start, block = at, bytes(view[at:])
            end = block.index(b"\0")
        names.append(block[at - block_start : end])
        at = block_start + end + 1
        counts[number], _ = _ENTRY.unpack_from(view, at)
        at += _ENTRY.size
    return names, counts, at


def _matrix(view: memoryview, data: np.ndarray, at: int) -> tuple[np.ndarray, int]:
    if view[at]:
        raise Unsupported("a quantised model")
    rows, columns = _SHAPE.unpack_from(view, at + 1)
    at += 1 + _SHAPE.size
    end = at + rows * columns * 4
    if rows < 0 or columns < 1 or end > len(view):
        raise ValueError("the file is cut off")
    return np.frombuffer(data, "<f4", rows * columns, at).reshape(rows, columns), end


def to_bytes(model: FastTextFile) -> bytes:
    """The model as a .bin file."""
    s, training = model.settings, model.training
    parts = [
        _HEADER.pack(struct.unpack("<i", MAGIC)[0], VERSION),
        # Those of word vectors alone (window, negatives, rate updates, sampling) have the reference implementation's defaults.
        _SETTINGS.pack(
            model.inputs.shape[1], 5, int(training.get("epochs", 5)), int(training.get("min_count", 1)), 5, s.word_ngrams, s.loss,
            SUPERVISED, s.bucket, s.min_n, s.max_n, 100, 1e-4,
        ),
        _COUNTS.pack(len(model.words) + len(model.labels), len(model.words), len(model.labels), int(model.counts.sum()), -1),
    ]  # fmt: skip
    parts += [word + b"\0" + _ENTRY.pack(int(n), 0) for word, n in zip(model.words, model.counts, strict=True)]
    named = zip(model.labels, model.label_counts, strict=True)
    parts += [(LABEL_PREFIX + label).encode() + b"\0" + _ENTRY.pack(int(n), 1) for label, n in named]
    for matrix in (model.inputs, model.outputs):
        parts += [b"\0", _SHAPE.pack(*matrix.shape), np.ascontiguousarray(matrix, "<f4").tobytes()]
    return b"".join(parts)

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
_CENTROIDS = 256
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
    kept: np.ndarray | None = None  # (rows after the words,) int32: of a pruned model, the bucket that each of them is
    training: dict[str, float] = field(default_factory=dict)  # epochs, rate and min_count, which the file has room for


class Unsupported(ValueError):
    """A fastText model that this module does not read: of another version of the format, or without labels. fastText may run it."""


def is_fasttext(beginning: bytes) -> bool:
    """Whether a file that begins so is a model of fastText."""
    return beginning[:4] == MAGIC


def read(url: str) -> FastTextFile:
    """Reads a model. Its matrices are mapped from a local file, not copied; those of a quantised one are made whole. Raises ValueError for
    what is no whole model, Unsupported for a kind that is not read here."""
    data = (
        np.memmap(files.local_path(url), np.uint8, "r")
        if files.is_local(url) and files.info(url).size
        else np.frombuffer(files.read_bytes(url), np.uint8)
    )
    view = memoryview(data)
    if not is_fasttext(bytes(view[:4])):
        raise ValueError("it does not begin as one")
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
    names, counts, at = _entries(view, at + _COUNTS.size, size)
    kept = None
    if pruned >= 0:
        pairs = np.frombuffer(data, "<i4", 2 * pruned, at).reshape(pruned, 2)
        at += 8 * pruned
        kept = np.full(pruned, -1, np.int32)
        kept[pairs[:, 1]] = pairs[:, 0]
    if words_count + labels_count != size or min(words_count, labels_count) < 0:
        raise ValueError("its dictionary does not add up")
    quantised = bool(view[at])
    inputs, at = (_quantised if quantised else _matrix)(view, data, at + 1)
    outputs, _ = (_quantised if quantised and view[at] else _matrix)(view, data, at + 1)
    needs_bucket = word_ngrams > 1 or max_n > 0
    hashed = len(inputs) - words_count if not needs_bucket else bucket if kept is None else len(kept)
    if len(inputs) != words_count + hashed or len(outputs) != labels_count or (kept is not None and (kept < 0).any()):
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
        kept,
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
    """(matrix, the byte after it)."""
    rows, columns = _SHAPE.unpack_from(view, at)
    at += _SHAPE.size
    end = at + rows * columns * 4
    if rows < 0 or columns < 1 or end > len(view):
        raise ValueError("the file is cut off")
    return np.frombuffer(data, "<f4", rows * columns, at).reshape(rows, columns), end


def _quantised(view: memoryview, data: np.ndarray, at: int) -> tuple[np.ndarray, int]:
    """A matrix kept by product quantisation (Jegou et al. 2011; Joulin et al. 2016, arXiv 1612.03651), made whole: a byte for each part
    of a row says which of 256 centroids stands there; lengths of rows may be kept apart, in the same way."""
    with_norms = bool(view[at])
    rows, columns = _SHAPE.unpack_from(view, at + 1)
    (size,) = struct.unpack_from("<i", view, at + 1 + _SHAPE.size)
    at += 5 + _SHAPE.size
    codes = np.frombuffer(data, np.uint8, size, at)
    made, at = _decoded(view, data, at + size, codes, rows, columns)
    if with_norms:
        norms, at = _decoded(view, data, at + rows, np.frombuffer(data, np.uint8, rows, at), rows, 1)
        made *= norms
    return made, at


def _decoded(view: memoryview, data: np.ndarray, at: int, codes: np.ndarray, rows: int, columns: int) -> tuple[np.ndarray, int]:
    """(rows, columns) float32 that the codes stand for, by the quantiser that begins at a byte; and the byte after it."""
    dim, parts, width, last = struct.unpack_from("<4i", view, at)
    if dim != columns or len(codes) != rows * parts or (parts - 1) * width + last != dim:
        raise ValueError("its quantised matrix does not fit its quantiser")
    centroids = np.frombuffer(data, "<f4", dim * _CENTROIDS, at + 16)
    codes = codes.reshape(rows, parts)
    made = np.empty((rows, dim), np.float32)
    for part in range(parts):
        first, size = part * width, last if part == parts - 1 else width
        table = centroids[first * _CENTROIDS : (first + size) * _CENTROIDS].reshape(_CENTROIDS, size)
        made[:, first : first + size] = table[codes[:, part]]
    return made, at + 16 + 4 * dim * _CENTROIDS


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

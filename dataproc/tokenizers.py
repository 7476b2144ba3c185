"""Tokenizers: a Hugging Face tokenizer.json, or a byte-level BPE trained from versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from dataproc.versions import Version
from store import files
from store.digests import bytes_digest
from store.errors import ConfigError

END_OF_TEXT = "<|endoftext|>"
# Names under which known tokenizers hold their end-of-document token.
_END_NAMES = (END_OF_TEXT, "<|end_of_text|>", "</s>", "<eos>", "<|eot_id|>", "[SEP]")
_TRAINING_BYTES = 200_000_000  # more text changes a vocabulary little


@dataclass(frozen=True)
class LoadedTokenizer:
    """A tokenizer with its file's bytes and the id that ends a document."""

    tokenizer: Tokenizer
    content: bytes
    end_id: int

    @property
    def digest(self) -> str:
        """xxh3-128 of tokenizer.json."""
        return bytes_digest(self.content)

    @property
    def vocabulary(self) -> int:
        """One more than the largest id."""
        return max(self.tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.uint16 if self.vocabulary <= 1 << 16 else np.uint32)


def from_bytes(content: bytes, where: str, end: str | None = None) -> LoadedTokenizer:
    """A tokenizer from the bytes of a tokenizer.json. Raises ConfigError when it is none, or names no end-of-document token."""
    try:
        tokenizer = Tokenizer.from_str(content.decode("utf-8"))
    except Exception as error:  # the library raises bare Exception
        raise ConfigError(f"{where} is no tokenizer.json: {str(error).splitlines()[0]}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    names = (end,) if end else _END_NAMES
    found = next((tokenizer.token_to_id(name) for name in names if tokenizer.token_to_id(name) is not None), None)
    if found is None:
        raise ConfigError(f"{where} has none of the tokens {', '.join(names)}: name its end-of-document token with --end-token")
    return LoadedTokenizer(tokenizer, content, found)


def load(place: str, versions: list[Version], end: str | None = None) -> LoadedTokenizer:
    """`train:SIZE` trains a byte-level BPE with SIZE tokens from the versions; anything else names a tokenizer.json."""
    if place == "train" or place.startswith("train:"):
        size = place.partition(":")[2] or "32768"
        if not size.isdigit() or not 300 <= int(size) <= 1 << 20:
            raise ConfigError(f"--tokenizer {place}: write train:SIZE with a vocabulary from 300 to 1048576, for example train:32768")
        return train(versions, int(size))
    if not files.exists(place):
        raise ConfigError(f"--tokenizer {place}: no such file (write train:SIZE to train one)")
    return from_bytes(files.read_bytes(place), place, end)


def train(versions: list[Version], size: int) -> LoadedTokenizer:
    """A byte-level BPE over the first 200 MB of the versions' texts, in their order: the same texts give the same tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[END_OF_TEXT], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(_first_texts(versions), trainer)
    return from_bytes(tokenizer.to_str(pretty=True).encode(), "the trained tokenizer")


def _first_texts(versions: Iterable[Version]) -> Iterator[str]:
    left = _TRAINING_BYTES
    for version in versions:
        for batch in version.batches(["text"]):
            for text in batch.column("text").to_pylist():
                if left <= 0:
                    return
                left -= len(text)
                yield text

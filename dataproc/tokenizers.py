"""Tokenizers: a Hugging Face tokenizer.json, or a byte-level BPE trained from versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xxhash
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from dataproc.versions import Version
from store import files
from store.digests import bytes_digest
from store.errors import ConfigError

END_OF_TEXT = "<|endoftext|>"
# Names under which known tokenizers hold their end-of-document token.
_END_NAMES = (END_OF_TEXT, "<|end_of_text|>", "</s>", "<eos>", "<|eot_id|>", "[SEP]")
TRAINING_BYTES = 200_000_000  # more text changes a vocabulary little


@dataclass(frozen=True)
class LoadedTokenizer:
    """A tokenizer with its file's bytes and the id that ends a document."""

    tokenizer: Tokenizer
    content: bytes
    end_id: int

    @cached_property
    def digest(self) -> str:
        """xxh3-128 of tokenizer.json."""
        return bytes_digest(self.content)

    @cached_property
    def vocabulary(self) -> int:
        """One more than the largest id."""
        return max(self.tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    @cached_property
    def dtype(self) -> np.dtype:
        """Of token ids in a shard."""
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


def load(place: str, versions: list[Version], usable: Callable[[str], bool], end: str | None = None) -> LoadedTokenizer:
    """`train:SIZE` trains a byte-level BPE with SIZE tokens from the versions' documents whose id is `usable`; anything else names
    a tokenizer.json. Raises ConfigError."""
    if place == "train" or place.startswith("train:"):
        size = place.partition(":")[2] or "32768"
        if not size.isdigit() or not 300 <= int(size) <= 1 << 20:
            raise ConfigError(f"--tokenizer {place}: write train:SIZE with a vocabulary from 300 to 1048576, for example train:32768")
        return train(versions, int(size), usable)
    if not files.exists(place):
        raise ConfigError(f"--tokenizer {place}: no such file (write train:SIZE to train one)")
    return from_bytes(files.read_bytes(place), place, end)


def train(versions: list[Version], size: int, usable: Callable[[str], bool]) -> LoadedTokenizer:
    """A byte-level BPE from about TRAINING_BYTES of text: the documents whose hash is small enough, so that every source has its
    share. The same documents give the same tokenizer, whatever their order: merges go by counts, ties by the pair."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[END_OF_TEXT], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(_sample(versions, usable), trainer)
    return from_bytes(tokenizer.to_str(pretty=True).encode(), "the trained tokenizer")


def _sample(versions: list[Version], usable: Callable[[str], bool]) -> Iterator[str]:
    share = TRAINING_BYTES / max(1, sum(text_size(version) for version in versions))
    for version in versions:
        for batch in version.batches(["id", "text"], 1024):
            names = batch.column("id").to_pylist()
            for row, name in enumerate(names):
                if usable(name) and xxhash.xxh3_64_intdigest(f"sample\0{name}".encode()) < share * 2**64:
                    yield batch.column("text")[row].as_py()


def text_size(version: Version) -> int:
    """UTF-8 bytes of all texts of a documents version."""
    return version.manifest["stats"]["bytes"]

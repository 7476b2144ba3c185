"""Bits per byte on held-out documents: sum of nats over their tokens / (ln 2 x sum of their UTF-8 bytes).

Comparable across tokenizers, since bytes do not depend on them. Every token of a document is scored, the first given the
end-of-document token; the end-of-document token itself has no bytes and is not scored. A document longer than the model's context is
scored in windows, each given the last token of the one before. Sums are divided at the end: a mean of ratios would weigh bytes unevenly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dataproc.parquet import iterate_batches
from dataproc.tokens import heldout_paths
from dataproc.versions import Version
from mixtures.mixture import Mixture
from trainer.model import Decoder, token_losses

LOGITS_AT_ONCE = 1 << 24  # 64 MiB of float32


@dataclass
class Sums:
    """What has been scored: nats, bytes, tokens, documents."""

    nats: float = 0.0
    bytes: int = 0
    tokens: int = 0
    documents: int = 0

    def add(self, other: Sums) -> None:
        self.nats += other.nats
        self.bytes += other.bytes
        self.tokens += other.tokens
        self.documents += other.documents

    def to_json(self) -> dict[str, Any]:
        """With `bits_per_byte`; null where there was nothing to score."""
        ratio = self.nats / (math.log(2) * self.bytes) if self.bytes else None
        return {"bits_per_byte": ratio, "documents": self.documents, "tokens": self.tokens, "bytes": self.bytes}


def heldout_documents(version: Version, most: int) -> Iterator[tuple[str | None, int, np.ndarray]]:
    """(language, bytes, tokens with the end-of-document token) of the first `most` held-out documents."""
    left = most
    for url in heldout_paths(version):
        for batch in iterate_batches(url, ["language", "bytes", "tokens"], 64):
            lists = batch.column("tokens")
            tokens, edges = lists.values.to_numpy(), lists.offsets.to_numpy()
            for row in range(batch.num_rows):
                if left == 0:
                    return
                left -= 1
                yield batch.column("language")[row].as_py(), batch.column("bytes")[row].as_py(), tokens[edges[row] : edges[row + 1]]


@torch.no_grad()
def score_document(model: Decoder, tokens: np.ndarray, context: int) -> tuple[float, int]:
    """(nats, tokens scored) of one document. tokens: (n,) ending with the end-of-document token, which also begins it."""
    ids = torch.from_numpy(np.concatenate([tokens[-1:], tokens[:-1]]).astype(np.int64))
    scored = len(ids) - 1
    whole = scored // context
    at_once = max(1, LOGITS_AT_ONCE // (context * model.head.out_features))
    parts = list(ids.unfold(0, context + 1, context).split(at_once)) if whole else []  # (windows, context + 1) each
    if whole * context < scored:
        parts.append(ids[None, whole * context :])
    return sum(float(token_losses(model, part).double().sum()) for part in parts), scored


def score(mixture: Mixture, model: Decoder, documents: int) -> dict[str, Any]:
    """Bits per byte of a model over the held-out documents of a mixture's sources, by source, by language and in all."""
    total, sources, languages = Sums(), {}, {}
    for source in mixture.sources:
        for language, size, tokens in heldout_documents(source.version, documents):
            nats, count = score_document(model, tokens, mixture.sequence_length)
            one = Sums(nats, size, count, 1)
            for sums in (total, sources.setdefault(source.name, Sums()), languages.setdefault(language or "unknown", Sums())):
                sums.add(one)
    return {
        "total": total.to_json(),
        "by_source": {name: sums.to_json() for name, sums in sources.items()},
        "by_language": {name: sums.to_json() for name, sums in sorted(languages.items())},
    }


def training_hook(recipe: Any, mixture: Mixture, model: Decoder, steps: int) -> dict[str, Any]:
    """For the training loop: bits per byte after every `eval.every` steps. The loop knows nothing of evaluation."""
    if not recipe.eval.every or steps % recipe.eval.every:
        return {}
    return {"heldout_bits_per_byte": score(mixture, model, recipe.eval.documents)["total"]["bits_per_byte"]}

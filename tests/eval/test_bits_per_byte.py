"""Bits per byte against the definition, computed token by token."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from eval.bits_per_byte import Sums, heldout_documents, score, score_document
from eval.run import archive, evaluate
from mixtures.mixture import load_mixture
from store.errors import ConfigError
from tests.trainer.made import recipe, world
from trainer import checkpoint
from trainer.model import Decoder
from trainer.recipe import ModelSpec, load_recipe
from trainer.runs import RunFolder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("eval")
    world(made)
    return made


def test_the_vector_of_sums_not_the_mean_of_ratios():
    """3000 nats over 5000 bytes and 2000 over 2500: 5000 / (ln 2 x 7500)."""
    total = Sums(3000.0, 5000, 1000, 1)
    total.add(Sums(2000.0, 2500, 1000, 1))
    assert total.to_json()["bits_per_byte"] == pytest.approx(0.96179, abs=1e-5)


def test_a_document_is_scored_token_by_token():
    model = Decoder(ModelSpec(layers=1, width=16, heads=2), 20)
    model.initialise(1)
    tokens = np.array([3, 4, 5, 6, 7, 8, 9, 0], np.uint16)  # 0 ends the document
    context = 3
    expected, ids = 0.0, [0, *tokens[:-1].tolist()]
    for start in range(0, 7, context):
        window = ids[start : start + context + 1]
        for i in range(1, len(window)):
            logits = model(torch.tensor([window[:i]]))[0, -1].detach().double()
            expected -= float(torch.log_softmax(logits, -1)[window[i]])
    nats, count = score_document(model, tokens, context)
    assert count == 7 and nats == pytest.approx(expected, rel=1e-5)


def test_a_uniform_model_needs_log2_of_the_vocabulary_a_token(folder):
    mixture = load_mixture(str(folder / "mix.yaml"), str(folder / "store"))
    vocabulary = mixture.tokenizer["vocabulary"]
    model = Decoder(ModelSpec(layers=1, width=16, heads=2), vocabulary)
    torch.nn.init.zeros_(model.embedding.weight)
    scores = score(mixture, model, 1000)["total"]
    assert scores["bits_per_byte"] == pytest.approx(math.log2(vocabulary) * scores["tokens"] / scores["bytes"], rel=1e-5)
    held = sum(1 for source in mixture.sources for _ in heldout_documents(source.version, 1000))
    assert scores["documents"] == held > 0


def test_a_score_is_archived_with_what_it_came_from(folder):
    store = str(folder / "store")
    spec = load_recipe(recipe(folder, "scored"))
    mixture = load_mixture(spec.mixture, store)
    run = RunFolder.of(store, "scored")
    run.write(spec, mixture)
    with pytest.raises(ConfigError, match="no sound checkpoint"):
        evaluate("scored", store)
    model = Decoder(spec.model, mixture.tokenizer["vocabulary"])
    model.initialise(5)
    checkpoint.save(run.checkpoints, 4, {"model": model.state_dict()}, {"reader": {}}, 2)
    row = evaluate("scored", store)
    assert archive(store)[-1]["scores"] == row["scores"]
    assert row["step"] == 4 and row["mixture_digest"] == mixture.digest and set(row["versions"]) == {"one", "two"}
    assert evaluate(f"{run.checkpoints}/step-00000004", store)["scores"] == row["scores"]

"""Mixture files: what they refuse, what they resolve to, how long they last."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.tokens import tokenize
from mixtures.mixture import Mixture, load_mixture
from store.errors import ConfigError
from tests.trainer.made import documents, world


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("mixtures")
    world(made)
    return made


@pytest.fixture(scope="module")
def mixture(folder) -> Mixture:
    return load_mixture(str(folder / "mix.yaml"), str(folder / "store"))


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("weight: 0.25", "weight: 0.2", r"weights sum to 0.95, not to 1"),
        ("weight: 0.25", "weigth: 0.25", r'unknown key "weigth" in sources.1: did you mean "weight"\?'),
        ("name: two", "name: one", r'two sources are named "one"'),
        ("two_tokens@v1", "three_tokens@v1", r"no version three_tokens@v1"),
        ("two_tokens@v1", "two@v1", r"two@v1 is a documents version; this needs a tokens version"),
        ("sequence_length: 16", "sequence_length: 10000000", r"fewer than one sample of 10000000"),
        ("weight: 0.25", "weight: 0", r"greater than 0"),
    ],
)
def test_a_mixture_that_does_not_hold_is_refused(folder, before, after, says):
    text = (folder / "mix.yaml").read_text()
    assert before in text
    (folder / "wrong.yaml").write_text(text.replace(before, after))
    with pytest.raises(ConfigError, match=says):
        load_mixture(str(folder / "wrong.yaml"), str(folder / "store"))


def test_sources_of_unlike_tokenizers_are_refused(folder):
    store = str(folder / "store")
    documents(folder, "three", 100, 3, store)
    tokenize(store, ["three@v1"], "train:310", "three_tokens", "v1")
    (folder / "unlike.yaml").write_text((folder / "mix.yaml").read_text().replace("two_tokens", "three_tokens"))
    with pytest.raises(ConfigError, match="sources one and two were tokenized with different tokenizers"):
        load_mixture(str(folder / "unlike.yaml"), store)


def test_weights_are_the_decimals_that_were_written(folder):
    """0.6 + 0.3 + 0.1 is not 1 in binary fractions."""
    text = (folder / "mix.yaml").read_text().split("sources:")[0]
    weights = {"a": 0.6, "b": 0.3, "c": 0.1}
    assert 0.6 + 0.3 + 0.1 != 1
    rows = "".join(f"  - {{name: {name}, from: one_tokens@v1, weight: {weight}}}\n" for name, weight in weights.items())
    (folder / "thirds.yaml").write_text(f"{text}sources:\n{rows}")
    assert load_mixture(str(folder / "thirds.yaml"), str(folder / "store")).plan().quotas.tolist() == [6, 3, 1]


def test_the_digest_is_that_of_what_decides_the_samples(folder, mixture):
    def digest(before: str, after: str) -> str:
        (folder / "changed.yaml").write_text((folder / "mix.yaml").read_text().replace(before, after))
        return load_mixture(str(folder / "changed.yaml"), str(folder / "store")).digest

    assert digest("me@example.org", "you@example.org") == digest("mixture: both", "mixture: other") == mixture.digest
    changed = {digest("seed: 3", "seed: 4"), digest("length: 16", "length: 8"), digest("two_tokens@v1", "one_tokens@v1")}
    assert len(changed | {mixture.digest}) == 4


@given(epochs=st.floats(0.01, 20), sizes=st.tuples(st.integers(1, 10**9), st.integers(1, 10**9)))
def test_the_longest_plan_is_allowed_and_one_sample_more_is_not(mixture, epochs, sizes):
    sources = tuple(replace(s, samples=n, max_epochs=epochs) for s, n in zip(mixture.sources, sizes, strict=True))
    made = replace(mixture, sources=sources)
    most = made.longest()
    made.require(most)
    assert all(row["epochs"] <= epochs * (1 + 1e-12) for row in made.composition(most))
    with pytest.raises(ConfigError, match=f"the mixture lasts for {most:,} samples"):
        made.require(most + 1)

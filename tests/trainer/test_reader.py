"""The reader against plain concatenation: every window once an epoch, any rank, any step, any skip set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.parquet import read_table
from mixtures.mixture import Mixture, load_mixture
from store import files
from store.errors import ConfigError
from tests.trainer.made import world
from trainer.reader import Reader, ReaderState, sample_index


@pytest.fixture(scope="module")
def mixture(tmp_path_factory) -> Mixture:
    folder = tmp_path_factory.mktemp("world")
    return load_mixture(str(folder / "mix.yaml"), world(folder))


def stream_of(version) -> np.ndarray:
    tables = [read_table(files.join(version.url, s["path"])) for s in version.manifest["shards"]]
    return np.concatenate([np.array(t, np.int64) for table in tables for t in table.column("tokens").to_pylist()])


def test_every_window_of_a_source_comes_once_an_epoch(mixture):
    reader = Reader(mixture)
    length = mixture.sequence_length
    streams = [stream_of(source.version) for source in mixture.sources]
    wanted = [{tuple(s[i * length : (i + 1) * length + 1]) for i in range((len(s) - 1) // length)} for s in streams]
    samples = [source.samples for source in mixture.sources]
    seen: list[list[int]] = [[], []]
    position = 0
    while len(seen[0]) < samples[0] or len(seen[1]) < samples[1]:
        source, epoch, window = reader.locate(position)
        if epoch == 0:
            seen[source].append(window)
            assert tuple(reader.batch(position, 1)[0]) in wanted[source]
        position += 1
    for source in (0, 1):
        assert sorted(seen[source]) == list(range(samples[source]))
        assert seen[source] != list(range(samples[source]))


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 6, 12])
def test_ranks_slice_the_same_global_batch(mixture, world_size):
    whole = Reader(mixture).batch(24, 12)
    share = 12 // world_size
    parts = [Reader(mixture).batch(24 + rank * share, share) for rank in range(world_size)]
    assert (np.concatenate(parts) == whole).all()


def test_any_step_can_be_read_first(mixture):
    forward = Reader(mixture)
    batches = [forward.batch(i * 4, 4) for i in range(20)]
    for step in (19, 7, 0, 13):
        assert (Reader(mixture).batch(step * 4, 4) == batches[step]).all()


def test_documents_of_a_step_hold_its_tokens(mixture):
    reader = Reader(mixture)
    texts = {}
    for source in mixture.sources:
        for shard in source.version.manifest["shards"]:
            for row in read_table(files.join(source.version.url, shard["path"])).to_pylist():
                texts[row["id"]] = row["tokens"]
    for sample, tokens in zip(reader.documents(40, 6), reader.batch(40, 6), strict=True):
        found = [t for d in sample["documents"] for t in texts[d["id"]][slice(*d["tokens"])]]
        assert found == tokens.tolist()


@given(position=st.integers(0, 60), skip=st.lists(st.integers(0, 70), max_size=30, unique=True))
def test_skipped_samples_are_passed_over_and_no_other_is_lost(position, skip):
    left = [i for i in range(200) if i not in set(skip)]
    assert sample_index(position, sorted(skip)) == left[position]


def test_a_skip_set_moves_later_samples_up(mixture):
    plain, skipping = Reader(mixture), Reader(mixture, skip=[5, 2])
    assert (skipping.batch(0, 2) == plain.batch(0, 2)).all()
    assert (skipping.batch(2, 2) == plain.batch(3, 2)).all()
    assert (skipping.batch(4, 3) == plain.batch(6, 3)).all()


def test_state_is_one_number_and_a_skip_set():
    state = ReaderState("digest", 12, (3,))
    assert ReaderState.from_json(state.to_json()) == state


def test_a_mixture_that_does_not_last_is_refused_with_the_numbers(mixture):
    with pytest.raises(ConfigError, match=r"source one .* epochs of it, max_epochs is 4"):
        mixture.require(10**6)

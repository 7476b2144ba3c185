"""The reader against plain concatenation: every window once an epoch, any rank, any step, any skip set."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc import tokens
from dataproc.parquet import read_table
from mixtures.mixture import Mixture, load_mixture
from store import files
from store.errors import ConfigError, StoreError
from tests.trainer.made import world
from trainer import reader as reader_module
from trainer.reader import Reader, ReaderState, sample_index


@pytest.fixture(scope="module")
def mixture(tmp_path_factory) -> Mixture:
    folder = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "SHARD_TEXT_BYTES", 15_000)
        made = load_mixture(str(folder / "mix.yaml"), world(folder))
    assert all(len(source.version.manifest["shards"]) > 1 for source in made.sources)
    return made


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
        source, epoch, window = (int(array[0]) for array in reader.locate(position, 1))
        if epoch == 0:
            seen[source].append(window)
            assert tuple(reader.batch(position, 1)[0]) in wanted[source]
        position += 1
    for source in (0, 1):
        assert sorted(seen[source]) == list(range(samples[source]))
        assert seen[source] != list(range(samples[source]))


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 6, 8, 64])
def test_ranks_slice_the_same_global_batch(mixture, world_size):
    whole = Reader(mixture).batch(192, 192)
    share = 192 // world_size
    parts = [Reader(mixture).batch(192 + rank * share, share) for rank in range(world_size)]
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
    for sample, row in zip(reader.documents(40, 6), reader.batch(40, 6), strict=True):
        found = [t for d in sample["documents"] for t in texts[d["id"]][slice(*d["tokens"])]]
        assert found == row.tolist()


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


def test_a_small_cache_and_few_open_files_change_nothing(mixture, monkeypatch):
    wanted = Reader(mixture).batch(0, 60)
    monkeypatch.setattr(reader_module, "CACHE_BYTES", 1)
    monkeypatch.setattr(reader_module, "OPEN_SHARDS", 1)
    reader = Reader(mixture)
    assert (reader.batch(0, 60) == wanted).all()
    assert len(reader._shards._groups) == 1 and len(reader._shards._open) == 1
    reader.close()
    assert (reader.batch(0, 60) == wanted).all()


def test_a_flipped_bit_never_becomes_a_wrong_token(tmp_path):
    mixture = load_mixture(str(tmp_path / "mix.yaml"), world(tmp_path))
    source = mixture.sources[0]
    path = Path(source.version.url) / source.version.manifest["shards"][0]["path"]
    data, wanted = path.read_bytes(), stream_of(source.version)
    generator = random.Random(7)
    found = 0
    for place in generator.sample(range(len(data)), 300):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << generator.randrange(8)]) + data[place + 1 :])
        try:
            assert (Reader(mixture)._streams[0].window(0, len(wanted)) == wanted).all()
        except StoreError as error:
            assert str(path) in str(error)
            found += 1
    assert found > 150  # the rest lies in columns that are not read
    path.unlink()
    with pytest.raises(StoreError, match=r"part-00000.parquet cannot be read"):
        Reader(mixture).batch(0, 1)

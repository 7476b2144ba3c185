"""A checkpoint is whole or it is passed over."""

from __future__ import annotations

import resource

import pytest
import torch

from store.errors import StoreError
from trainer import checkpoint


def write(folder: str, step: int, keep: int = 5):
    return checkpoint.save(folder, step, {"model": {"w": torch.full((100,), float(step))}}, {"reader": {}}, keep)


def test_the_newest_sound_one_is_found(tmp_path):
    for step in (1, 2, 3):
        write(str(tmp_path), step)
    found, damaged = checkpoint.latest(str(tmp_path))
    assert found.step == 3 and damaged == [] and found.load("model")["w"][0] == 3.0


@pytest.mark.parametrize("damage", ["flip", "cut", "no manifest", "no file"])
def test_a_damaged_one_falls_back_to_the_one_before(tmp_path, damage):
    write(str(tmp_path), 1)
    path = write(str(tmp_path), 2)
    data = (path / "model.pt").read_bytes()
    if damage == "flip":
        middle = len(data) // 2
        (path / "model.pt").write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    elif damage == "cut":
        (path / "model.pt").write_bytes(data[:-10])
    else:
        (path / ("manifest.json" if damage == "no manifest" else "model.pt")).unlink()
    found, damaged = checkpoint.latest(str(tmp_path))
    assert found.step == 1 and damaged == ["step-00000002"]
    write(str(tmp_path), 2)
    assert checkpoint.latest(str(tmp_path))[0].step == 2


def test_only_the_newest_stay(tmp_path):
    for step in range(1, 6):
        write(str(tmp_path), step, keep=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-00000004", "step-00000005"]
    assert checkpoint.latest(str(tmp_path), at_step=4)[0].step == 4
    assert checkpoint.latest(str(tmp_path), at_step=1) == (None, [])


def test_a_write_that_fails_says_why_and_leaves_nothing(tmp_path):
    write(str(tmp_path), 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StoreError, match=r"cannot write .*step-00000002: .*File too large"):
            checkpoint.save(str(tmp_path), 2, {"model": {"w": torch.zeros(1_000_000)}}, {"reader": {}}, 5)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001"]
    assert checkpoint.latest(str(tmp_path))[0].step == 1


def test_what_a_killed_writer_left_is_cleared_away(tmp_path):
    write(str(tmp_path), 1)
    (tmp_path / ".tmp-00000002-77").mkdir()
    (tmp_path / ".tmp-00000002-77" / "model.pt").write_bytes(b"half")
    assert checkpoint.latest(str(tmp_path))[0].step == 1
    checkpoint.clear_unfinished(str(tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001"]
    checkpoint.clear_unfinished(str(tmp_path / "none yet"))


def test_parts_come_back_as_they_were_saved(tmp_path):
    parts = {
        "model": {"a.weight": torch.randn(3, 4)},
        "random": torch.get_rng_state(),
        "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}},
    }
    checkpoint.save(str(tmp_path), 7, parts, {"reader": {"next_sample": 28}, "run": "r"}, 2)
    found, _ = checkpoint.latest(str(tmp_path))
    assert torch.equal(found.load("model")["a.weight"], parts["model"]["a.weight"]) and torch.equal(found.load("random"), parts["random"])
    assert found.load("optimizer")["state"][0]["step"] == 3.0
    assert found.manifest["reader"] == {"next_sample": 28} and found.step == 7
    other = checkpoint.save(str(tmp_path), 8, {**parts, "model": {"a.weight": torch.zeros(3, 4)}}, {"reader": {}}, 2)
    assert checkpoint.read(other).digest != found.digest

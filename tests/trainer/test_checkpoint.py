"""A checkpoint is whole or it is passed over."""

from __future__ import annotations

import pytest
import torch

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

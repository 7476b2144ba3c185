"""Kernels are compiled once on a machine, and run also where nothing can be kept."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from dataproc.kernels import compiling
from dataproc.kernels.compiling import CACHE_VARIABLE, kept_arrays

FEW = """
import pyarrow as pa
from dataproc.text_hash import content_hashes
print(len(content_hashes(pa.array(["a  b a b"], pa.large_string()))))
"""
MANY = """
import pyarrow as pa
from dataproc.rules.signals import compute
print(compute(pa.array(["a b a b"]), ["words", "top_2gram_character_fraction"])["words"][0])
"""


def start(cache: str, program: str = FEW) -> subprocess.Popen:
    """A process that needs kernels and says, last, what they gave."""
    environment = {**os.environ, CACHE_VARIABLE: cache, "NUMBA_DEBUG_CACHE": "1"}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_at_once_compile_once_and_later_ones_not_at_all(tmp_path):
    both = [start(str(tmp_path)) for _ in range(2)]
    told = [process.communicate(timeout=250)[0] for process in both]
    assert all(process.returncode == 0 for process in both) and all(text.endswith("1\n") for text in told)
    saved = [line.split("'")[1] for text in told for line in text.splitlines() if "data saved" in line]
    assert saved and len(saved) == len(set(saved))
    later = start(str(tmp_path)).communicate(timeout=60)[0]
    assert "data loaded" in later and "data saved" not in later


@pytest.mark.parametrize("place", ["/proc/nowhere", "file/below"])
def test_where_nothing_can_be_kept_kernels_run_all_the_same(tmp_path, place):
    (tmp_path / "file").write_text("a file where the folder should be")
    process = start(str(tmp_path / place) if not place.startswith("/") else place)
    out, _ = process.communicate(timeout=250)
    assert process.returncode == 0 and out.endswith("1\n") and "data saved" not in out


def test_a_folder_that_others_may_write_is_not_trusted(tmp_path):
    """What lies in it is run as code."""
    folder = tmp_path / "open"
    folder.mkdir()
    program = "from dataproc.kernels.compiling import _usable; from pathlib import Path; import sys; print(_usable(Path(sys.argv[1])))"
    folder.chmod(0o777)
    assert subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True).stdout == "False\n"
    folder.chmod(0o700)
    assert subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True).stdout == "True\n"


@pytest.mark.slow
def test_the_first_use_takes_less_than_half_a_minute(tmp_path):
    begun = time.monotonic()
    assert start(str(tmp_path), MANY).wait(timeout=250) == 0
    assert time.monotonic() - begun < 30


def test_tables_are_read_from_the_disk_and_made_again_when_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "cache_folder", lambda: tmp_path)
    made = []

    def make():
        made.append(1)
        return np.arange(5, dtype=np.uint16), np.zeros((2, 3))

    def read():
        first, second = kept_arrays("some", make)
        assert first.dtype == np.uint16 and first.tolist() == [0, 1, 2, 3, 4] and second.shape == (2, 3)
        return len(made)

    assert read() == 1 and read() == 1  # read, not made
    kept = tmp_path / "some.npz"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "some.npz"]
    whole = kept.read_bytes()
    at = whole.index(np.arange(5, dtype=np.uint16).tobytes()) + 2
    for damaged in (b"", whole[: len(whole) // 2], whole[:at] + b"\x07" + whole[at + 1 :]):
        before = len(made)
        kept.write_bytes(damaged)
        assert read() == before + 1 and read() == before + 1
    monkeypatch.setattr(compiling, "cache_folder", lambda: None)
    assert read() == len(made)

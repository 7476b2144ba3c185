"""Documents of odd shape cost time in proportion to their bytes, and memory that is bounded by the largest of them.

Each shape runs in a process of its own, whose peak of resident memory is read before and after. The default run has documents of
16 MB; `slow` has the full ones.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

SHAPES = {
    "one word": "'x' * size",
    "one repeated character": "'a ' * (size // 2)",
    "words of a few letters": "' '.join('abcdefghij'[k % 10] * (1 + k % 3) for k in range(size // 3))",
    "empty lines": "'\\n' * size",
    "lines all alike": "'the same line again\\n' * (size // 20)",
    "lines all different": "'\\n'.join(map(str, range(size // 8)))",
    "prose": "(' '.join(f'{w}{k // 50}' if k % 9 == 0 else w for k, w in zip(range(size // 5), __import__('itertools').cycle("
    "'the mill and its wheel turn to grind corn that people of the town have brought'.split()))) + '.')[:size]",
    "words drawn at random": "' '.join(map('w{:04d}'.format, np.random.default_rng(1).integers(0, 9000, size // 6)))",
    "ideographs drawn at random": "''.join(map(chr, np.random.default_rng(1).integers(0x4E00, 0x9000, size // 3)))",
    "letters drawn at random": "short_words(size)",
    "ideographs": "''.join(chr(0x4E00 + (k * 7919) % 20000) for k in range(size // 3))",
}
PROGRAM = """
import gc, sys, time
import numpy as np
import pyarrow as pa
from dataproc.kernels.minhash import MinHasher
from dataproc.rules.signals import SIGNALS, compute
size = int(sys.argv[1])
def short_words(size):  # of one or two letters
    draw = np.random.default_rng(1)
    text = draw.integers(97, 123, size, dtype=np.uint8)
    spaces = draw.integers(2, 4, size // 2, dtype=np.int8).cumsum()
    text[spaces[spaces < size]] = 32
    return text.tobytes().decode()
def status(name): return int(next(l for l in open("/proc/self/status") if l.startswith(name)).split()[1]) * 1024
compute(pa.array(["a b"]), SIGNALS); MinHasher().signatures(pa.array(["a b"]))
seconds = []
for size in (size // 4, size):
    text = {shape}
    column = pa.array([text], pa.large_string())
    bytes_ = column.get_total_buffer_size()
    del text
    gc.collect()
    open("/proc/self/clear_refs", "w").write("5")  # the peak counts anew from here
    before = status("VmRSS")
    start = time.process_time()
    compute(column, SIGNALS); MinHasher().signatures(column)
    seconds.append(time.process_time() - start)
print(seconds[0], seconds[1], status("VmHWM") - before, bytes_)
"""


def measure(shape: str, size: int) -> tuple[float, float, float]:
    """(seconds for a quarter, seconds for all, extra memory over 64 MiB in units of the document's bytes)."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{shape}", SHAPES[shape]), str(size)], capture_output=True, text=True, check=True
    )
    quarter, whole, extra, size = map(float, done.stdout.split())
    return quarter, whole, (extra - (64 << 20)) / size


@pytest.mark.parametrize("shape", list(SHAPES))
def test_time_is_linear_and_memory_bounded(shape):
    quarter, whole, times = measure(shape, 16_000_000)
    assert whole < 8 * quarter + 0.2  # four times the bytes
    assert times < 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [
        "one word",
        "one repeated character",
        "prose",
        "empty lines",
        "words drawn at random",
        "letters drawn at random",
        "ideographs drawn at random",
    ],
)
def test_documents_of_200_megabytes(shape):
    quarter, whole, times = measure(shape, 200_000_000)
    assert whole < 8 * quarter + 0.2
    assert times < 4


def test_a_million_documents_of_one_word():
    """What is counted of a document is held for some thousand documents at a time, not for the column."""
    program = PROGRAM.replace("{shape}", "None").replace(
        "pa.array([text], pa.large_string())", "pa.array([f'w{k}' for k in range(size)], pa.string())"
    )
    program = program.replace("SIGNALS); MinHasher().signatures(column)", "list(SIGNALS)[:10])")
    done = subprocess.run([sys.executable, "-c", program, "1000000"], capture_output=True, text=True, check=True)
    quarter, whole, extra, _ = map(float, done.stdout.split())
    assert whole < 8 * quarter + 0.2
    assert extra < (64 << 20) + 3 * 10 * 8 * 1_000_000  # the result itself, while it is put together

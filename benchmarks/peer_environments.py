"""Environments of the peers: each has its own, because their pins exclude each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PEERS = {
    "datatrove": ["datatrove[io,processing]==0.10.1", "spacy"],
    "dolma": ["dolma==1.2.1"],
    "nemo": ["torch==2.13.0", "nemo-curator[text_cpu]==1.4.0"],
    "sketches": ["datasketch>=2,<3", "xxhash", "rensa"],
    "textdedup": ["text-dedup==0.4.0"],
}


def environment(folder: Path, peer: str) -> Path:
    """The Python of a peer's environment, made when it is not there."""
    python = folder / peer / "bin" / "python"
    if not (folder / peer / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / peer)], check=True)
        for requirement in ["--upgrade pip", *PEERS[peer]]:  # an old pip tries dolma's versions for more than ten minutes
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *requirement.split()], check=True)
        (folder / peer / ".installed").touch()
    return python

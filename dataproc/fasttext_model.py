"""fastText models (.bin, .ftz), as every stage that uses one loads and asks them."""

from __future__ import annotations

import tempfile
from typing import Any

from store import files
from store.errors import ConfigError

LABEL = "__label__"  # how the file spells a label; never shown to a user
_END = "</s>"  # fastText reads no further than a word that is this
EVERY_LABEL = -1


def load_model(path: str, scratch: str | None, who: str) -> Any:
    """The model in a file on any filesystem. scratch: a local folder for the copy of a remote one, or None; who: what the error names
    ("stage language"). Raises ConfigError when the file is not a fastText model."""
    if files.is_local(path):
        return _load(files.local_path(path), path, who)
    with tempfile.NamedTemporaryFile(dir=scratch) as copy:  # fastText opens local files only
        copy.write(files.read_bytes(path))
        copy.flush()
        return _load(copy.name, path, who)


def _load(path: str, name: str, who: str) -> Any:
    import fasttext

    try:
        return fasttext.load_model(path)
    except ValueError as error:
        raise ConfigError(f"{who}: {name} is not a fastText model: {error}") from error


def one_line(text: str) -> str:
    """A text as fastText wants it: it reads one line, up to the first NUL or the first word that is its own mark of an end."""
    return text.replace("\n", " ").replace("\0", " ").replace(_END, " ").strip()


def label_scores(model: Any, text: str, least: float = 0.0) -> dict[str, float]:
    """Label (without `__label__`) -> score from 0 to 1, best first, for every label that scores `least` or more. Empty for a text without
    a word."""
    line = one_line(text)
    found = model.f.predict(f"{line}\n", EVERY_LABEL, least, "strict") if line else []
    return {label.removeprefix(LABEL): min(1.0, float(score)) for score, label in found}  # a score may be 1.00001

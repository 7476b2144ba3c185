"""Mistakes in a configuration become one sentence with the line, the key and the nearest valid key."""

from __future__ import annotations

import pytest

from store.errors import ConfigError
from store.strict_yaml import DataFile, ExistingFile, StrictModel, data_files, load_strict


class Inner(StrictModel):
    min_score: float = 0.5
    model: ExistingFile | None = None


class Outer(StrictModel):
    name: str
    parts: list[Inner] = []
    inner: Inner = Inner()


def load(tmp_path, text: str) -> Outer:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return load_strict(str(path), Outer)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: a\ninner:\n  min_scor: 1\n", r'config.yaml, line 3: unknown key "min_scor" in inner: did you mean "min_score"\?'),
        ("name: a\nparts:\n- {}\n- {zzz: 1}\n", r'line 4: unknown key "zzz" in parts.1: valid keys: min_score, model'),
        ("nam: a\n", r'line 1: unknown key "nam": did you mean "name"\?'),
        ("inner: {}\n", r'key "name" is missing'),
        ("name: a\ninner: {min_score: high}\n", r"line 2: inner.min_score: .*number"),
        ("name: a\nname: b\n", r'line 2: key "name" stands twice \(lines 1 and 2\)'),
        ("name: [a\n", r"config.yaml, line 2"),
        ("- a\n", r"expected a mapping"),
        ("", r"expected a mapping of keys, found nothing"),
        ("name: a\ninner: {model: no/such.bin}\n", r"line 2: inner.model: file not found: no/such.bin"),
    ],
)
def test_one_sentence_says_where_and_what(tmp_path, text, sentence):
    with pytest.raises(ConfigError, match=sentence) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_text_that_is_not_utf8_are_said(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        load_strict(str(tmp_path / "none.yaml"), Outer)
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_strict(str(tmp_path / "latin.yaml"), Outer)


def test_files_are_found_beside_the_configuration(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"m")
    outer = load(tmp_path, "name: a\nparts: [{model: model.bin}]\n")
    assert data_files(outer) == [DataFile(tmp_path / "model.bin")]

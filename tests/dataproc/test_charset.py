"""Character sets: real files in 45 encodings, and what declares what."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.charset import decode, python_encoding

# uchardet takes this short Dutch text for another Western set; Python has no EUC-TW codec.
KNOWN_MISSES = {"encoding/windows-1252___ude_2.txt", "encoding/EUC-TW___ude_euc-tw1.txt"}
REGIONS = ("arabic", "bulgarian", "russian", "hebrew", "hungarian", "croatian", "slovak", "czech", "greek", "turkish", "polish", "slovene", "sig")


def test_real_files_are_decoded_as_they_were_meant(shared_data):
    missed = set()
    for line in (shared_data / "nasty" / "manifest.jsonl").open():
        case = json.loads(line)
        if case["category"] != "encoding" or not case["expect"].startswith("decode as "):
            continue
        data = (shared_data / "nasty" / case["file"]).read_bytes()
        label = case["expect"].split()[2].lower()
        for region in REGIONS:
            label = label.removesuffix(f"-{region}")
        encoding = python_encoding(label)
        meant = data.decode("utf-8-sig" if encoding == "utf-8" else encoding, "replace").lstrip("\ufeff") if encoding else None
        if decode(data, html=not case["file"].endswith(".txt")).text != meant:
            missed.add(case["file"])
    assert missed <= KNOWN_MISSES


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        ("\ufeffmark".encode("utf-16-le"), "latin-1", "mark"),
        ("Mühle".encode(), "latin-1", "Mühle"),
        ("Mühle “so”".encode("cp1252"), "iso-8859-1", "Mühle “so”"),
        ("<meta charset=windows-1251>вода".encode("cp1251"), None, "<meta charset=windows-1251>вода"),
        ("плохо <b>".encode("koi8-r"), "utf-8", None),
        (b"", None, ""),
        (b"ascii", "no-such-set", "ascii"),
        ("水車".encode("shift_jis"), "x-sjis", "水車"),
    ],
)
def test_marks_then_declarations_then_detection(data, declared, text):
    decoded = decode(data, declared)
    assert decoded.text == text if text is not None else decoded.replaced == 0


@given(st.binary(max_size=200), st.sampled_from([None, "utf-8", "latin-1", "shift_jis", "utf-16", "nonsense"]))
def test_any_bytes_give_a_text(data, declared):
    assert isinstance(decode(data, declared).text, str)


@given(st.text(max_size=100))
def test_utf8_is_read_back(text):
    assert decode(text.encode(), html=False).text == text.removeprefix("\ufeff") or "\x00" in text or "\x1b" in text

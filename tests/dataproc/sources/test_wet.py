"""WET: the texts that Common Crawl extracted."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dataproc.sources.reading import member, read_input, warc_record


def conversion(name: str, text: bytes, *headers: str) -> bytes:
    return warc_record(name, text, "conversion", "text/plain", headers)


def test_a_text_and_the_language_that_was_guessed(tmp_path):
    records = [
        warc_record("info", b"software: x\r\n", "warcinfo", "application/warc-fields"),
        conversion("a", "Mühlrad\n水車\n".encode(), "WARC-Identified-Content-Language: deu,jpn"),
        conversion("b", b"", "WARC-Identified-Content-Language:  "),
    ]
    (tmp_path / "x.warc.wet.gz").write_bytes(b"".join(map(member, records)))
    reading = read_input("wet", tmp_path / "x.warc.wet.gz")
    first, second = reading.items
    assert (first.key, first.url, first.text, first.language) == ("urn:test:a", "https://example.org/a", "Mühlrad\n水車\n", None)
    assert (first.meta, first.payload) == ({"identified_language": "deu"}, None)
    assert (second.text, second.meta) == ("", {})
    assert reading.not_documents == {"warcinfo": 1}


def test_a_text_that_is_not_utf8_is_one_entry(tmp_path):
    (tmp_path / "x.wet").write_bytes(conversion("a", b"ab\xe9") + conversion("b", b"fine"))
    bad, fine = read_input("wet", tmp_path / "x.wet").items
    assert (bad.reason, bad.key, fine.text) == ("bad_encoding", "urn:test:a", "fine")
    assert "byte 2 of the text" in bad.error


@given(texts=st.lists(st.text(st.characters(blacklist_categories=["Cs"]), max_size=200), max_size=12), unit_bytes=st.integers(1, 3000))
@settings(max_examples=40)
def test_slices_give_the_same_as_the_whole_file(tmp_path_factory, texts, unit_bytes):
    path = tmp_path_factory.mktemp("cut") / "x.warc.wet.gz"
    path.write_bytes(b"".join(member(conversion(str(i), text.encode())) for i, text in enumerate(texts)))
    whole = read_input("wet", path)
    assert [r.text for r in whole.items] == texts
    assert read_input("wet", path, unit_bytes).items == whole.items


def test_records_that_lack_their_first_line_cost_no_neighbour(shared_data):
    """A real sample in which the line WARC/1.0 is missing from some records."""
    reading = read_input("wet", shared_data / "warc_samples" / "cc_net-sample.warc.wet")
    assert [r.url for r in reading.records] == ["http://sample_chinese.zh", "http://sample_russian.ru"]
    assert set(reading.reasons) == {"bad_record"}

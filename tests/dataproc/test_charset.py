"""Character sets: real files in 45 encodings, and what declares what."""

from __future__ import annotations

import encodings.aliases
import gzip
import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.charset import decode
from dataproc.charset_declared import declared_inside, python_encoding
from dataproc.sources.base import InputSpec, ReadReport
from dataproc.sources.registry import make_source, plan_input

RUSSIAN = "Вода крутит колесо мельницы, а мельник следит, чтобы в канале не было камней."

# Python has no EUC-TW codec: each of its bytes becomes U+FFFD.
KNOWN_MISSES = {"encoding/EUC-TW___ude_euc-tw1.txt"}
REGIONS = "arabic bulgarian russian hebrew hungarian croatian slovak czech greek turkish polish slovene sig".split()


@pytest.mark.parametrize("html", [True, False], ids=["with declarations", "by detection alone"])
def test_real_files_are_decoded_as_they_were_meant(shared_data, html):
    missed, seen = set(), 0
    for line in (shared_data / "nasty" / "manifest.jsonl").open():
        case = json.loads(line)
        if case["category"] != "encoding" or not case["expect"].startswith("decode as "):
            continue
        data = (shared_data / "nasty" / case["file"]).read_bytes()
        label = case["expect"].split()[2].lower()
        for region in REGIONS:
            label = label.removesuffix(f"-{region}")
        encoding = python_encoding(label)
        meant = data.decode(encoding, "replace").lstrip("\ufeff") if encoding else None
        seen += 1
        if decode(data, html=html).text != meant:
            missed.add(case["file"])
    assert seen == 107 and missed == KNOWN_MISSES


def test_real_pages_that_are_not_utf8(shared_data):
    """14 pages: 12 in Western sets, and two in UTF-8 with a few bytes of another set in a banner."""
    pages, gold = {}, {}
    with gzip.open(shared_data / "web" / "gold.jsonl.gz", "rt") as stream:
        gold = {row["url"]: row for row in map(json.loads, stream) if not row["utf8_valid"]}
    spec = InputSpec(name="pages", format="warc", path=str(shared_data / "web" / "pages.warc.gz"))
    for unit in plan_input(spec, 1 << 30):
        for part in unit:
            pages |= {r.url: decode(r.payload, r.charset) for r in make_source(spec).read(part, ReadReport()) if r.url in gold}
    assert sorted((page.encoding, page.replaced) for page in pages.values()) == [("cp1252", 0)] * 12 + [("utf-8", 3), ("utf-8", 4)]


# The sets that text of a language was in before UTF-8.
LEGACY_SETS = {
    "ru": ["cp1251", "koi8_r", "iso8859_5", "cp866", "mac_cyrillic"], "uk": ["cp1251", "koi8_u"], "de": ["cp1252", "cp850", "mac_roman"],
    "fr": ["cp1252", "iso8859_15", "cp850", "mac_roman"], "es": ["cp1252", "mac_roman"], "it": ["cp1252"], "ca": ["cp1252"],
    "pt": ["cp1252"], "nl": ["cp1252"], "sv": ["cp1252"], "da": ["cp1252"], "fi": ["cp1252"], "pl": ["cp1250", "iso8859_2", "cp852"],
    "cs": ["cp1250", "iso8859_2", "cp852"], "hu": ["cp1250", "iso8859_2"], "sl": ["cp1250"], "hr": ["cp1250"], "el": ["cp1253", "iso8859_7"],
    "tr": ["cp1254"], "ar": ["cp1256"], "lt": ["cp1257"], "lv": ["cp1257", "iso8859_13"], "et": ["cp1257"], "vi": ["cp1258"],
    "ja": ["cp932", "euc_jp", "iso2022_jp"], "ko": ["cp949", "iso2022_kr"], "zh_CN": ["gb18030", "hz"], "zh_TW": ["big5hkscs"],
}  # fmt: skip


def test_real_texts_in_the_sets_of_their_languages_are_detected(shared_data):
    tried, right = 0, 0
    with gzip.open(shared_data / "lid" / "docs.jsonl.gz", "rt") as stream:
        rows = [row for row in map(json.loads, stream) if not row["mixed_with_english"]]
    for language, sets in LEGACY_SETS.items():
        for row in [row for row in rows if row["lang"].replace("-", "_") == language][:6]:
            for encoding in sets:
                data = row["text"][200:1700].encode(encoding, "ignore")
                if not data.isascii() or encoding in ("hz", "iso2022_jp", "iso2022_kr"):
                    tried += 1
                    right += decode(data, html=False).text == data.decode(encoding)
    assert tried > 200 and right >= 0.98 * tried


# Damaged quoting, where we read the declaration that was meant and a browser reads none.
LENIENT = {
    b'<!DOCTYPE HTML>\n<meta http-equiv="Content-Type content="text/html; charset=iso8859-2">',
    b'<!DOCTYPE HTML>\n<meta charset=iso8859-2">\n<p>"</p>',
}


def test_declarations_inside_a_page_are_found_as_the_html_standard_says(shared_data):
    """The sniffing tests of html5lib; windows-1252 there is what a browser takes where nothing is declared."""
    seen = 0
    for name in ("html5lib-tests1.dat", "html5lib-test-yahoo-jp.dat"):
        for case in re.split(rb"(?:^|\n)#data\n", (shared_data / "nasty" / "encoding" / name).read_bytes())[1:]:
            page, _, answer = case.partition(b"\n#encoding\n")
            if page not in LENIENT and not page.startswith(b"\xef\xbb\xbf"):
                seen += 1
                assert (declared_inside(page) or "cp1252") == python_encoding(answer.split()[0].decode()), page[:200]
    assert seen == 56


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        ("\ufeffmark".encode("utf-16-le"), "latin-1", "mark"),
        ("Mühle".encode(), "latin-1", "Mühle"),
        ("Mühle “so”".encode("cp1252"), "iso-8859-1", "Mühle “so”"),
        ("<meta charset=windows-1251>вода".encode("cp1251"), None, "<meta charset=windows-1251>вода"),
        (RUSSIAN.encode("koi8-r"), "utf-8", RUSSIAN),
        (RUSSIAN.encode("cp1251"), "iso-8859-1", RUSSIAN),  # a set of Latin script is plainly wrong for it
        (b"<meta charset=latin-1>" + RUSSIAN.encode("koi8-r"), None, "<meta charset=latin-1>" + RUSSIAN),
        (RUSSIAN.encode("utf-16-le"), None, RUSSIAN),
        (RUSSIAN.encode("utf-16-be"), "windows-1251", RUSSIAN),
        ("plain words".encode("utf-32-be"), None, "plain words"),
        (b"<meta charset=utf-16>plain", None, "<meta charset=utf-16>plain"),
        ("Mühle ".encode() * 50 + b"M\xfchle", "utf-8", "Mühle " * 50 + "M\ufffdhle"),
        ("①水車の力で石臼を回す".encode("euc_jis_2004"), "euc-jp", "①水車の力で石臼を回す"),
        ("水力磨坊 abc 水力".encode("hz"), "hz-gb-2312", "水力磨坊 abc 水力"),
        (b"x", "utf-7", "x"),
        ("水力磨坊的水渠里没有石头".encode(), "gb2312", "水力磨坊的水渠里没有石头"),
        ("联通".encode("gbk"), "gb2312", "联通"),  # valid UTF-8 as well, by chance
        (RUSSIAN.encode(), "windows-1251", RUSSIAN),
        (b"", None, ""),
        (b"ascii", "no-such-set", "ascii"),
        ("水車".encode("shift_jis"), "x-sjis", "水車"),
    ],
)
def test_marks_then_declarations_then_detection(data, declared, text):
    decoded = decode(data, declared)
    assert decoded.text == text if text is not None else decoded.replaced == 0


LABELS = st.one_of(st.none(), st.text(max_size=12), st.sampled_from(sorted({*encodings.aliases.aliases, "idna", "undefined", "a\0b"})))


@given(
    st.one_of(st.binary(max_size=200), st.text(max_size=60).map(lambda t: t.encode("utf-16-le", "replace"))), LABELS, LABELS, st.booleans()
)
def test_any_bytes_under_any_label_give_a_text_that_utf8_can_hold(data, declared, inside, html):
    page = b'<meta charset="' + (inside or "").encode("utf-8", "replace") + b'">' + data
    for each in (data, page):
        decoded = decode(each, declared, html)
        decoded.text.encode()
        assert 0 <= decoded.replaced <= len(decoded.text)


@given(
    st.sampled_from(["<meta ", "<!--", "<a x='", '="', "charset=", "<?xml ", ">", "/", "utf-8", "\n"]),
    st.integers(1, 6000),
    st.binary(max_size=9),
)
def test_a_hostile_head_is_searched_in_bounded_time(piece, times, end):
    start = time.process_time()
    declared_inside(piece.encode() * times + end)
    assert time.process_time() - start < 1


@given(st.text(max_size=100))
def test_utf8_is_read_back(text):
    assert decode(text.encode(), html=False).text == text.removeprefix("\ufeff") or "\x00" in text or "\x1b" in text

"""Markup: any text comes back as the same text, and nothing but the elements that were made."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from dataproc.report.markup import Markup, escape, h


class Seen(HTMLParser):
    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text = ""
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


PLAIN = st.text(st.characters(blacklist_categories=("Cc", "Cs")) | st.sampled_from("<>&\"'`=/"))


@given(PLAIN, PLAIN)
def test_text_and_attributes_stay_text(text, value):
    seen = Seen(h("p", text, title=value))
    assert seen.tags == ["p"] and seen.text == text and seen.attributes == [("title", value)]


@given(st.text())
def test_whatever_comes_can_be_written(text):
    made = escape(text)
    made.encode()
    assert not any(ord(c) < 32 and c not in "\t\n" or 127 <= ord(c) < 160 for c in made)


def test_elements_nest_and_attributes_are_named():
    made = h("div", [h("b", 1), None, ("x", Markup("<br>"))], class_="a", aria_hidden="true", hidden=True, id=None, open=False)
    assert made == '<div class="a" aria-hidden="true" hidden><b>1</b>x<br></div>'
    assert h("input", type="search") == '<input type="search">'

"""Structure that is asked for stands in the text as Markdown; what is not asked for leaves its words."""

from __future__ import annotations

import pytest

from dataproc.stages.extract_engines import Options, trafilatura_text

PROSE = "The water that turns the wheel comes down a channel which the miller keeps free of leaves and stones all year round."
PAGE = f"""<html><body><nav><a href="/">Home</a></nav><article><h1>The mill</h1><p>{PROSE}</p><h2>Parts <b>of</b> it</h2>
<p>{PROSE} See <code>x = 1</code> and <b>bold</b>.</p>
<ul><li>first thing<ul><li>inner one</li><li>inner two</li></ul></li><li>second <i>thing</i></li></ul><ol><li>one</li><li>two</li></ol>
<table><tr><th>Name</th><th>Size</th></tr><tr><td>wheel</td><td>4 | m</td></tr></table>
<pre><code class="language-python">def f(x):
    if x:
        return "```"

    return None
</code></pre><p>{PROSE}</p><h3>Last</h3><p>{PROSE}<br>next line</p></article></body></html>"""
ALL = ("headings", "lists", "tables", "code")


def text(page: str = PAGE, **settings) -> str:
    return trafilatura_text(page, Options(**settings))


def test_the_whole_page_as_markdown():
    wanted = f"""# The mill

{PROSE}

## Parts of it

{PROSE} See `x = 1` and bold.

- first thing
  - inner one
  - inner two
- second thing

1. one
2. two

| Name | Size |
| --- | --- |
| wheel | 4 \\| m |

````python
def f(x):
    if x:
        return "```"

    return None
````

{PROSE}

### Last

{PROSE}
next line"""
    assert text(structure=ALL) == wanted


@pytest.mark.parametrize(
    ("kind", "mark"), [("headings", "## Parts of it"), ("lists", "- first thing"), ("tables", "| --- | --- |"), ("code", "````python")]
)
def test_each_structure_is_there_only_where_it_is_asked_for(kind, mark):
    assert mark in text(structure=(kind,)).split("\n")
    assert mark not in text(structure=tuple(set(ALL) - {kind})).split("\n")


def test_no_word_is_lost_with_or_without_structure():
    for structure in (("code",), ("tables",), ALL):
        words = text(structure=structure).replace("\\|", "|").split()
        assert [w for w in ("first", "inner", "second", "wheel", "return", "next") if w not in words] == []


def test_code_keeps_its_lines_and_blank_lines():
    assert 'def f(x):\n    if x:\n        return "```"\n\n    return None' in text(structure=("code",))


def test_an_empty_page_has_no_structure():
    assert text("<html><body></body></html>", structure=ALL) == ""

"""Formulas keep their TeX, by construction; a page without formulas, or with broken ones, is left as it is."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.stages.extract import Extract
from dataproc.stages.math_html import math_to_tex
from tests.dataproc.stages.helpers import pages, run

TEX = r"\frac{a}{b} &lt; x_1"
INLINE = f'<math display="inline"><semantics><mi>a</mi><annotation encoding="application/x-tex">{TEX}</annotation></semantics></math>'
BLOCK = INLINE.replace('"inline"', '"block"')
KATEX = (
    f'<span class="katex"><span class="katex-mathml">{INLINE}</span>'
    '<span class="katex-html" aria-hidden="true"><span class="base">a<span>b</span></span></span></span>'
)


@pytest.mark.parametrize(
    ("html", "wanted"),
    [
        (r'<script type="math/tex">a < b</script>', "$a &lt; b$"),
        (r'<script type="math/tex; mode=display">\sum_i x</script>', r"$$\sum_i x$$"),
        (INLINE, f"${TEX}$"),
        (BLOCK, f"$${TEX}$$"),
        (r'<math alttext="{\displaystyle E=mc^{2}}"><mi>E</mi></math>', "$E=mc^{2}$"),
        (KATEX, f'<span class="katex"><span class="katex-mathml">${TEX}$</span></span>'),
        (r'<span class="MathJax"><span>x</span></span><script type="math/tex">x^2</script>', "$x^2$"),
        (r'<span class="math notranslate">\(a^2\)</span>', "$a^2$"),
        (r'<div class="math">\[a^2\]</div>', "$$a^2$$"),
        (r'<span class="math inline">e^{i\pi}</span>', r"$e^{i\pi}$"),
        (r'<img class="mwe-math-fallback-image-inline" src="x" alt="{\displaystyle x}">', "$x$"),
        (r'<img class="tex" alt="a&lt;b" />', "$a&lt;b$"),
    ],
)
def test_known_forms(html, wanted):
    assert math_to_tex(f"<p>so {html} holds</p>") == f"<p>so {wanted} holds</p>"


@pytest.mark.parametrize(
    "html",
    [
        "<math><mi>a</mi></math>",
        '<span class="math">plain words</span>',
        '<span class="math"><i>x</i></span>',
        '<span class="mathematics">x^2</span>',
        '<span class="MathJax">drawn, and no source beside it</span>',
        "<math><mi>a",
        '<script type="math/tex">never closed',
        '<img src="texture.png" alt="a wall">',
        "",
    ],
)
def test_what_holds_no_tex_stays(html):
    assert math_to_tex(html) == html


@pytest.mark.parametrize("engine", ["trafilatura", "resiliparse"])
def test_formulas_come_out_as_text_where_it_is_asked_for(engine):
    prose = "<p>The water that turns the wheel comes down a channel which the miller keeps free of leaves and stones.</p>" * 5
    page = (
        f"<html><body><article><h1>Mills</h1>{prose}<p>Its force is {KATEX} at most, as everybody knows.</p>{prose}</article></body></html>"
    )
    texts = [run(Extract, pages(page.encode()), engine=engine, math=math).batch.column("text")[0].as_py() for math in (True, False)]
    assert r"$\frac{a}{b} < x_1$ at most" in texts[0] and r"$\frac{a}{b} < x_1$" not in texts[1]


@given(
    st.lists(
        st.sampled_from(["<math>", "</math>", "<script type=math/tex>", "</script>", '<span class="math">', "</span>", "x^2", ">", "<"])
    )
)
def test_any_mixture_is_read(parts):
    assert isinstance(math_to_tex("".join(parts)), str)


@pytest.mark.parametrize("piece", ["<math>", '<span class="math">', "<script type=math/tex>", '<div class="math" ', "<img tex "])
def test_hostile_pages_take_bounded_time(piece):
    start = time.process_time()
    math_to_tex(piece * (3_000_000 // len(piece)))
    assert time.process_time() - start < 4

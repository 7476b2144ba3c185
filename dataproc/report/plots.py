"""Plots as SVG. Colours come from the page's style sheet, so that they follow its theme."""

from __future__ import annotations

import math
from typing import Any

from dataproc.report.markup import Markup, h
from dataproc.report.numbers import compact, number, share, whole

# The river of the funnel, in SVG units (one is one pixel at full width).
RIVER_WIDTH, RIVER_DEPTH, RIVER_TOP, RIVER_EDGE = 1110, 150, 50, 4
LEAST_STEP, NAME_CHARACTERS = 104, 15

# A histogram.
WIDTH, HEIGHT, LEFT, BASE_GAP = 360, 128, 8, 20
ZERO_WIDTH, ZERO_GAP = 14, 10
LABEL_ROW = 13
TALLEST = 3.0  # a bar higher than this many times the next is cut, and labelled: else a spike would flatten all others
LABEL_CHARACTER = 5.6  # average width of a character of the labels


def river(stages: list[dict[str, Any]], records: int) -> Markup:
    """The funnel as a river: its depth is the share of all input records that is left, and what falls off is drawn under it.

    stages: entries of report `stats.stages`.
    """
    step = max(LEAST_STEP, (RIVER_WIDTH - 2 * RIVER_EDGE) // max(len(stages), 1))
    width = 2 * RIVER_EDGE + step * len(stages)
    height = RIVER_TOP + RIVER_DEPTH + 34
    drawn = [_reach(RIVER_EDGE + i * step, step, stage, records) for i, stage in enumerate(stages)]
    left = stages[-1]["left"] if stages else records
    title = f"{whole(records)} records entered, {whole(left)} are kept"
    spoken = "; ".join(f"{stage['name']}: {whole(stage['entered'])} to {whole(stage['left'])}" for stage in stages)
    return h(
        "svg",
        h("title", title),
        h("desc", spoken),
        drawn,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=f"{title}. {spoken}",
        class_="river",
    )


def _reach(x0: int, step: int, stage: dict[str, Any], records: int) -> list[Markup]:
    """One stage of the river: the water that goes on, what falls off, and the words above and below."""
    x1, middle = x0 + step, x0 + step / 2
    before, after = (RIVER_DEPTH * stage[key] / records if records else 0 for key in ("entered", "left"))
    y0, y1, top = RIVER_TOP + before, RIVER_TOP + after, RIVER_TOP
    edge = f"M{x0} {y0:.1f}C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1} {y1:.1f}"
    name = stage["name"] if len(stage["name"]) <= NAME_CHARACTERS else stage["name"][: NAME_CHARACTERS - 1] + "…"
    lost = stage["dropped"] + stage["quarantined"]
    words = f"{stage['name']}: {whole(stage['entered'])} entered, {whole(lost)} taken, {whole(stage['left'])} left"
    fall = "quarantined" if stage["quarantined"] > stage["dropped"] else "dropped"
    shapes = [h("path", d=f"{edge}L{x1} {top}L{x0} {top}Z", class_="water")]
    if lost:
        shapes.insert(0, h("path", d=f"{edge}L{x1} {y0:.1f}Z", class_=f"fall {fall}"))
    return [
        h("g", h("title", words), shapes),
        h("line", x1=x1, x2=x1, y1=top - 6, y2=top + RIVER_DEPTH, class_="gate"),
        h("text", name, x=middle, y=top - 31, text_anchor="middle", class_="name"),
        h("text", f"−{whole(lost)}" if lost else "0", x=middle, y=top - 13, text_anchor="middle", class_="small"),
        h("text", share(stage["left"], records), x=x1 - 4, y=top + RIVER_DEPTH + 16, text_anchor="end", class_="small"),
    ]


class _Axis:
    """Where a number lies on a histogram's axis, in SVG units."""

    def __init__(self, bars: dict[str, Any]):
        edges = bars["edges"]
        self.log = bars["axis"] == "log"
        self.low, self.high = self._scaled(edges[0]), self._scaled(edges[-1])
        self.zeros = bool(bars["zeros_all"] or bars["zeros_kept"])
        self.start = LEFT + (ZERO_WIDTH + ZERO_GAP if self.zeros else 0)
        self.end = WIDTH - LEFT

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def place(self, value: float) -> float | None:
        """None when the axis does not reach that far."""
        if self.log and value <= 0:
            return LEFT + ZERO_WIDTH + ZERO_GAP / 2 if value == 0 and self.zeros else None
        x = self._scaled(value)
        slack = 1e-9 * max(abs(self.low), abs(self.high))
        if not self.low - slack <= x <= self.high + slack:
            return None
        return self.start + (self.end - self.start) * (x - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Two to seven round numbers inside the axis."""
        if self.log:
            first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
            every = max(1, math.ceil((last - first + 1) / 6))
            decades = [10.0**k for k in range(first, last + 1, every)]
            if len(decades) > 1:
                return decades
            return [10**self.low, 10**self.high]
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
        step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        return [round(k * step, 12) + 0.0 for k in range(first, first + 8) if k * step <= self.high + 1e-9 * step]


def signal_plot(signal: str, bars: dict[str, Any], thresholds: list[dict[str, Any]]) -> Markup:
    """A signal's histogram: all documents that were evaluated behind, kept documents before, thresholds as labelled lines.

    The area of a bar is its share of the documents, also where bars are of different width.
    """
    axis = _Axis(bars)
    limits = _limits(thresholds)
    top = 6 + LABEL_ROW * len(limits)
    base = top + HEIGHT
    scale = _scale(axis, bars)
    words = f"Histogram of {signal}, {'logarithmic' if axis.log else 'linear'} axis"
    return h(
        "svg",
        h("title", words),
        [_refused(axis, limit, value, top, base) for _, limit, value in limits],
        [_bars(axis, bars, series, scale, base) for series in ("all", "kept") if bars[series]],
        [_cut_mark(axis, bars, series, scale, base) for series in ("all" if bars["all"] else "kept",)],
        h("line", x1=LEFT, x2=WIDTH - LEFT, y1=base, y2=base, class_="axis"),
        _tick_marks(axis, base),
        [_limit_line(axis, value, 6 + LABEL_ROW * row, base) for row, (_, _, value) in enumerate(limits)],
        [_limit_label(axis, rule, limit, value, 6 + LABEL_ROW * row) for row, (rule, limit, value) in enumerate(limits)],
        viewBox=f"0 0 {WIDTH} {base + BASE_GAP}",
        role="img",
        aria_label=words,
        class_="plot",
    )


def _limits(thresholds: list[dict[str, Any]]) -> list[tuple[str, str, float]]:
    """(rule, min|max, value), lowest value first."""
    found = [(t["rule"], kind, t[kind]) for t in thresholds for kind in ("min", "max") if t[kind] is not None]
    return sorted(found, key=lambda limit: (limit[2], limit[0]))


def _spans(axis: _Axis, bars: dict[str, Any]) -> list[tuple[float, float]]:
    """(left, width) of each bar, in SVG units; the zeros of a logarithmic axis first."""
    places = [axis.place(edge) for edge in bars["edges"]]
    spans = [(a, b - a) for a, b in zip(places, places[1:], strict=False)]
    return [(LEFT, ZERO_WIDTH), *spans]


def _heights(axis: _Axis, bars: dict[str, Any], series: str) -> list[float]:
    """Documents per SVG unit of width, zeros first; the bar of the zeros counts as one of average width."""
    counts = [bars[f"zeros_{series}"], *(bars[series] or [])]
    spans = _spans(axis, bars)
    average = (axis.end - axis.start) / (len(spans) - 1)
    widths = [average, *(width for _, width in spans[1:])]
    return [count / width if width else 0.0 for count, width in zip(counts, widths, strict=False)]


def _scale(axis: _Axis, bars: dict[str, Any]) -> float:
    """SVG units of height for one unit of density."""
    heights = sorted((x for series in ("all", "kept") if bars[series] for x in _heights(axis, bars, series)), reverse=True)
    behind = sorted(_heights(axis, bars, "all" if bars["all"] else "kept"), reverse=True)
    tallest = heights[0]
    if len(behind) > 1 and behind[1]:
        tallest = min(tallest, TALLEST * behind[1])
    return (HEIGHT - 4) / tallest if tallest else 0.0


def _bars(axis: _Axis, bars: dict[str, Any], series: str, scale: float, base: float) -> Markup:
    """One series as a single path; one element for each bar would be most of the page."""
    path = []
    behind = _heights(axis, bars, "all" if bars["all"] else "kept")
    for (left, width), height, all_height in zip(_spans(axis, bars), _heights(axis, bars, series), behind, strict=True):
        if height:
            fitting = min(scale, (HEIGHT - 4) / max(height, all_height))  # in a bar that is cut, kept stays in proportion to all
            tall = max(height * fitting, 0.7)  # what is there can be seen
            path.append(f"M{left:.1f} {base:g}v{-tall:.1f}h{max(width - 0.6, 0.5):.1f}v{tall:.1f}z")
    return h("path", d="".join(path), class_=f"bars {series}")


def _cut_mark(axis: _Axis, bars: dict[str, Any], series: str, scale: float, base: float) -> list[Markup]:
    """A gap in a bar that is too tall to be drawn, with its share of the documents beside it."""
    marks: list[Markup] = []
    counts = [bars[f"zeros_{series}"], *bars[series]]
    for (left, width), height, count in zip(_spans(axis, bars), _heights(axis, bars, series), counts, strict=True):
        if height * scale <= HEIGHT - 3:
            continue
        y, right = base - HEIGHT + 18, left + width
        marks.append(h("path", d=f"M{left - 2:.1f} {y + 3:g}L{right + 2:.1f} {y - 3:g}", class_="cut"))
        near_end = right > WIDTH - 50
        place, anchor = (left - 4, "end") if near_end else (right + (ZERO_GAP if right < axis.start else 4), "start")
        marks.append(h("text", share(count, sum(counts)), x=f"{place:.1f}", y=y - 4, text_anchor=anchor, class_="tick"))
    return marks


def _tick_marks(axis: _Axis, base: float) -> list[Markup]:
    marks = []
    if axis.zeros:
        marks.append(h("text", "0", x=LEFT + ZERO_WIDTH / 2, y=base + 13, text_anchor="middle", class_="tick"))
    for value in axis.ticks():
        x = axis.place(value)
        if x is None:
            continue
        anchor = "start" if x < LEFT + 16 else "end" if x > WIDTH - LEFT - 16 else "middle"
        marks.append(h("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=base, y2=base + 3, class_="axis"))
        marks.append(h("text", compact(value), x=f"{x:.1f}", y=base + 14, text_anchor=anchor, class_="tick"))
    return marks


def _edge(axis: _Axis, value: float) -> float:
    """The place of a threshold, or the end of the axis beyond which it lies."""
    x = axis.place(value)
    if x is not None:
        return x
    scaled = axis._scaled(value) if not axis.log or value > 0 else -math.inf
    return axis.start if scaled < axis.low else axis.end


def _refused(axis: _Axis, kind: str, value: float, top: float, base: float) -> Markup | None:
    """The side of a threshold on which documents are dropped."""
    x = _edge(axis, value)
    left, right = (LEFT, x) if kind == "min" else (x, WIDTH - LEFT)
    if right - left < 0.5 or axis.place(value) is None:
        return None
    return h("rect", x=f"{left:.1f}", y=top, width=f"{right - left:.1f}", height=base - top, class_="refused")


def _limit_line(axis: _Axis, value: float, y: float, base: float) -> Markup | None:
    """The line of a threshold from its label down to the axis; none where it lies beyond the axis."""
    x = axis.place(value)
    return None if x is None else h("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=y, y2=base, class_="limit")


def _limit_label(axis: _Axis, rule: str, kind: str, value: float, y: float) -> Markup:
    """The rule and its threshold beside the line, with an arrow where it lies beyond the axis."""
    x, inside = _edge(axis, value), axis.place(value) is not None
    short = rule.rpartition(".")[2] or rule
    words = f"{short} {'≥' if kind == 'min' else '≤'} {number(value)}"
    room = int((WIDTH - 2 * LEFT) / LABEL_CHARACTER)
    words = words if len(words) <= room else words[: room - 1] + "…"
    before = x + 4 + len(words) * LABEL_CHARACTER > WIDTH - 2
    if not inside:
        words = f"{words} →" if x > WIDTH / 2 else f"← {words}"
    anchor = "end" if before else "start"
    place = x - 4 if before else x + 4
    if before and place < len(words) * LABEL_CHARACTER:
        anchor, place = "middle", WIDTH / 2
    return h("text", h("title", rule), words, x=f"{place:.1f}", y=y + 9, text_anchor=anchor, class_="limit-name")

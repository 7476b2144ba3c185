"""Pass 2: paragraphs are cut from documents, and what a cut changes is measured and judged again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dataproc.dedup.earlier import Earlier
from dataproc.dedup.owners import hexadecimal
from dataproc.dedup.paragraphs import read_items
from dataproc.documents import BASE_SIGNALS, SIGNAL_PREFIX
from dataproc.kernels.paragraphs import measured, paragraphs_of, without
from dataproc.rules.signals import compute
from dataproc.stages.base import Stage, Verdict
from dataproc.stages.paragraph_dedup import ParagraphDedupConfig
from dataproc.stages.rules import Rules, judge
from dataproc.text_hash import content_hashes

STAGE = "paragraph_dedup"
WINNERS_SHOWN = 5


@dataclass
class Cutting:
    """A table after the cut. verdicts: of rows that are not kept now, with the stage that says so; facts: what was cut, by row; bytes: how
    many of text were cut from the rows that are kept."""

    table: pa.Table
    verdicts: dict[int, tuple[str, Verdict]] = field(default_factory=dict)
    facts: dict[int, dict[str, Any]] = field(default_factory=dict)
    bytes: int = 0


class UnitCuts:
    """The cuts of one unit, by document."""

    def __init__(self, work: str, unit: int, cuts: np.ndarray, versions: list[Earlier]):
        """cuts: (n,) of CUT, of this unit."""
        self._numbers: dict[int, list[tuple[int, str, str | None]]] = {}
        if not len(cuts):
            return
        _, items = read_items(work, unit)
        places = (cuts["node"] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        winners = hexadecimal(cuts["high"], cuts["low"])
        for item, winner, earlier in zip(items[places], winners, cuts["earlier"].tolist(), strict=True):
            version = versions[earlier].reference if earlier >= 0 else None
            self._numbers.setdefault(int(item["place"]), []).append((int(item["number"]), winner, version))

    def of(self, place: int) -> list[tuple[int, str, str | None]]:
        """(number of the paragraph, id of the document that keeps it, the earlier version that holds that)."""
        return self._numbers.get(place, [])


class Cutter:
    """Cuts the documents of a pipeline."""

    def __init__(self, config: ParagraphDedupConfig, stages: list[Stage]):
        self.config = config
        self.rules = next((stage for stage in stages if isinstance(stage, Rules)), None)

    def cut(self, table: pa.Table, places: list[int], cuts: UnitCuts) -> Cutting:
        """table: survivors, with the columns of a shard; places: of each among the survivors of its unit."""
        found = [cuts.of(place) for place in places]
        rows = [row for row, some in enumerate(found) if some]
        if not rows:
            return Cutting(table)
        result = Cutting(table)
        texts = pa.array(table.column("text").take(pa.array(rows)).to_pylist(), pa.large_string())
        held = paragraphs_of(texts, self.config.unit == "line")
        words, _, _ = measured(held)
        made = []
        for k, row in enumerate(rows):
            numbers = {number for number, _, _ in found[row]}
            first, after = np.searchsorted(held.rows, (k, k + 1))
            all_words, cut_words = int(words[first:after].sum()), int(words[first:after][sorted(numbers)].sum())
            made.append(without(held, k, numbers))
            winners = list(dict.fromkeys((winner, version) for _, winner, version in found[row]))
            result.facts[row] = {
                "paragraphs": len(numbers),
                "words": cut_words,
                "held_by": [{"winner": w, **({"version": v} if v else {})} for w, v in winners[:WINNERS_SHOWN]],
            }
            if all_words - cut_words < self.config.min_words_left:
                verdict = Verdict(row, "too_short", float(all_words - cut_words), float(self.config.min_words_left))
                result.verdicts[row] = STAGE, verdict
            elif cut_words > self.config.max_cut * all_words:
                result.verdicts[row] = STAGE, Verdict(row, "too_different", cut_words / all_words, self.config.max_cut)
        before = table.column("text")
        result.table = self._replaced(table, rows, pa.array(made, pa.large_string()))
        self._judge_again(result, rows)
        for row, text in zip(rows, made, strict=True):
            if row not in result.verdicts:
                result.bytes += len(before[row].as_py().encode()) - len(text.encode())
        return result

    def _replaced(self, table: pa.Table, rows: list[int], texts: pa.Array) -> pa.Table:
        """The table with other texts in some rows, and with what is measured of a text measured of those."""
        whole = table.column("text").to_pylist()
        hashes = table.column("content_hash").to_pylist()
        for row, text, digest in zip(rows, texts.to_pylist(), content_hashes(texts).to_pylist(), strict=True):
            whole[row], hashes[row] = text, digest
        signals = table.column("signals").combine_chunks()
        names = [one.name for one in signals.type]
        languages = table.column("language").take(pa.array(rows)).to_pylist()
        again = [name for name in dict.fromkeys([*BASE_SIGNALS, *(self.rules.signals() if self.rules else ())]) if name in names]
        columns = {name: signals.field(name) for name in names}
        for name, values in compute(texts, again, languages).items():
            old = columns[name].to_numpy(zero_copy_only=False).copy()
            missing = columns[name].is_null().to_numpy(zero_copy_only=False).copy()
            missing[rows] = values.is_null().to_numpy(zero_copy_only=False)
            old[rows] = values.to_numpy(zero_copy_only=False)
            columns[name] = pa.array(old, pa.float64(), mask=missing)
        made = {
            "text": pa.array(whole, pa.large_string()),
            "content_hash": pa.array(hashes, pa.string()),
            "signals": pa.StructArray.from_arrays(list(columns.values()), fields=list(signals.type)),
        }
        for name, column in made.items():
            table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)
        return table

    def _judge_again(self, result: Cutting, rows: list[int]) -> None:
        """The rules, for texts that have changed."""
        if self.rules is None:
            return
        some = result.table.take(pa.array(rows))
        signals = some.column("signals").combine_chunks()
        flat = pa.table({SIGNAL_PREFIX + one.name: signals.field(one.name) for one in signals.type})
        for verdict in judge(self.rules.rules, some.column("language").to_pylist(), some.column("domain").to_pylist(), flat):
            row = rows[verdict.row]
            detail = {**verdict.detail, "after": STAGE}
            result.verdicts.setdefault(row, (Rules.name, Verdict(row, verdict.rule, verdict.value, verdict.threshold, detail)))

"""Paragraphs: the copies that stay and what is cut equal a plain search, however the work is cut; text that may repeat stays."""

from __future__ import annotations

import json
import random
import unicodedata
from collections import defaultdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.decisions import why
from dataproc.dedup import near, shuffle
from dataproc.execution import PlainLoop
from dataproc.kernels.paragraphs import measured, paragraphs_of, without
from dataproc.refilter import refilter
from store.errors import ConfigError
from tests.dataproc.dedup.running import decisions, kept, reasons, run_rows


def plain_paragraphs(text: str, by_line: bool) -> list[str]:
    """As the docs define them."""
    lines = text.split("\n")
    runs, held = [], []
    for line in [*lines, ""]:
        if line.strip():
            held.append(line)
        elif held:
            runs.append("\n".join(held))
            held = []
    if by_line or len(runs) < 2:
        return [line for line in lines if line.strip()]
    return runs


def normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


LETTERS = st.sampled_from(["a", "b", " ", " ", "\n", "\n\n", "\t", "é", "e\u0301", "語", "\u3000", "\r", "𝒳"])


@given(st.lists(st.lists(LETTERS, max_size=25).map("".join), max_size=6), st.booleans())
def test_paragraphs_equal_the_plain_definition(texts, by_line):
    found = paragraphs_of(pa.array(texts, pa.large_string()), by_line)
    expected = [(row, text) for row, whole in enumerate(texts) for text in plain_paragraphs(whole, by_line)]
    chosen = range(len(found.rows))
    assert list(zip(found.rows.tolist(), found.texts(list(chosen)), strict=True)) == expected
    words, high, low = measured(found)
    hashes = defaultdict(set)
    for (_, text), count, one, other in zip(expected, words.tolist(), high.tolist(), low.tolist(), strict=True):
        hashes[normal(text)].add((one, other))
        spaced = "".join(f" {c} " if c == "語" else c for c in normal(text))
        assert count == len(spaced.split())
    assert all(len(values) == 1 for values in hashes.values())
    assert len(set.union(set(), *hashes.values())) == len(hashes)
    numbers = found.numbers.tolist()
    for row, text in enumerate(texts):
        parts = plain_paragraphs(text, by_line)
        assert [n for n, r in zip(numbers, found.rows.tolist(), strict=True) if r == row] == list(range(len(parts)))
        assert without(found, row, set()) == text
        odd = set(range(0, len(parts), 2))
        assert plain_paragraphs(without(found, row, odd), True) == [
            line for k, part in enumerate(parts) if k not in odd for line in part.split("\n") if line.strip()
        ]


def sentence(draw: random.Random, words: int = 12) -> str:
    return " ".join(f"w{draw.randrange(5000)}" for _ in range(words))


def corpus(seed: int, count: int = 60) -> list[dict]:
    """Documents that share paragraphs from a pool, short ones, and ones with the same paragraph twice."""
    draw = random.Random(seed)
    pool = [sentence(draw) for _ in range(12)] + ["Read more", "1."]
    rows = []
    for number in range(count):
        parts = [sentence(draw) for _ in range(draw.randrange(2, 5))] + draw.choices(pool, k=draw.randrange(4))
        draw.shuffle(parts)
        rows.append({"id": f"{number}", "name": f"{number}", "text": "\n\n".join(parts)})
    return rows


def expected_texts(rows: list[dict], ids: dict[str, str], max_copies: int, min_words: int) -> dict[str, str]:
    """By a plain dictionary: copies of the documents with the smallest ids stay."""
    holders = defaultdict(list)
    for row in rows:
        for number, part in enumerate(row["text"].split("\n\n")):
            holders[part].append((ids[row["name"]], row["name"], number))
    cut = {
        (name, number)
        for part, found in holders.items()
        if len(part.split()) >= min_words
        for _, name, number in sorted(found)[max_copies:]
    }
    return {
        row["name"]: "\n\n".join(part for number, part in enumerate(row["text"].split("\n\n")) if (row["name"], number) not in cut)
        for row in rows
    }


@pytest.mark.parametrize("max_copies", [1, 3])
def test_copies_are_cut_but_for_some(tmp_path, max_copies):
    rows = corpus(1)
    stages = f"[paragraph_dedup: {{max_copies: {max_copies}, min_words_left: 0, max_cut: 1}}]"
    version = run_rows(tmp_path, {"a": rows}, stages)
    found = kept(version)
    ids = {}
    for batch in version.batches(["id", "meta"]):
        for row in batch.to_pylist():
            ids[json.loads(row["meta"])["name"]] = row["id"]
    assert found == expected_texts(rows, ids, max_copies, 8)
    said = version.manifest["dedup"]["paragraph_dedup"]
    assert said["removed_bytes"] == sum(len(row["text"]) - len(found[row["name"]]) for row in rows) > 0
    cut = [row for row in decisions(version) if "cut" in row["detail"]]
    assert sum(row["detail"]["cut"]["paragraphs"] for row in cut) == said["cuts"] > 10
    answer = why(version, cut[0]["id"])[0]
    assert answer["verdict"] == "kept" and f"held by document {cut[0]['detail']['cut']['held_by'][0]['winner']}" in answer["explanation"]


def test_how_the_work_is_cut_and_the_order_of_inputs_change_nothing(tmp_path, monkeypatch, ray_pool):
    rows = corpus(2, 80)
    stages = "[exact_dedup, near_dedup: {}, paragraph_dedup: {near: {threshold: 0.7, ngram: 2}}]"
    inputs = {"a": rows[:30], "b": rows[30:]}
    whole = run_rows(tmp_path, inputs, stages, unit_mb=0.004)
    assert whole.manifest["dedup"]["paragraph_dedup"]["near"]["edges"] >= 0
    texts = kept(whole)
    files_of = [part["xxh3_128"] for part in whole.manifest["shards"]]
    with monkeypatch.context() as patched:
        patched.setattr("dataproc.pipeline.MEGABYTE", 47)
        patched.setattr(shuffle, "READS_AT_MOST", 4)
        patched.setattr(near, "PAIRS_AT_ONCE", 3)
        cut = run_rows(tmp_path, inputs, stages, unit_mb=0.004, limits=", dedup_memory_mb: 1000", store="cut")
        assert [part["xxh3_128"] for part in cut.manifest["shards"]] == files_of and cut.manifest["dedup"] == whole.manifest["dedup"]
    turned = run_rows(tmp_path, {"b": rows[30:], "a": rows[:30]}, stages, unit_mb=0.004, store="turned")
    assert kept(turned) == texts
    monkeypatch.setattr("dataproc.pipeline.KEYS_COMPARED_HERE", 0)
    monkeypatch.setattr("dataproc.pipeline.SIGNATURES_COMPARED_HERE", 0)
    pooled = run_rows(tmp_path, inputs, stages, unit_mb=0.004, store="pooled", executor=ray_pool)
    assert pooled.manifest["digest"] == whole.manifest["digest"]


def test_what_is_left_is_measured_and_judged_again(tmp_path):
    draw = random.Random(3)
    shared = "\n\n".join(sentence(draw, 40) for _ in range(3))
    rows = [{"id": "0", "name": "0", "text": shared + "\n\n" + sentence(draw, 60), "when": "2000-01-01T00:00:00Z"}]
    for number, own in ((1, 300), (2, 30), (3, 10), (4, 3), (5, 0)):
        text = shared + ("\n\n" + sentence(draw, own) if own else "")
        rows.append({"id": f"{number}", "name": f"{number}", "text": text, "when": "2001-01-01T00:00:00Z"})
    stages = "[rules: {use: [gopher_quality], set: {gopher_quality.min_stop_words: null}}, paragraph_dedup: {keep: earliest}]"
    version = run_rows(tmp_path, {"a": rows}, stages)
    assert set(kept(version)) == {"0", "1"}
    assert reasons(version) == {
        "rules.gopher_quality.min_words": 1,  # 30 words are left
        "paragraph_dedup.too_different": 1,  # 10 of 130
        "paragraph_dedup.too_short": 2,  # 3, and none
    }
    by_rule = {row["rule"]: row for row in decisions(version)}
    judged = by_rule["gopher_quality.min_words"]
    assert (judged["stage"], judged["value"], judged["detail"]["after"]) == ("rules", 30, "paragraph_dedup")
    assert by_rule["too_different"]["value"] == pytest.approx(120 / 130) and by_rule["too_short"]["threshold"] == 5
    assert "after 3 paragraphs of 120 words, held by document" in why(version, judged["id"])[0]["explanation"]
    for batch in version.batches(["text", "signals", "content_hash"]):
        for row in batch.to_pylist():
            assert row["signals"]["words"] == len(row["text"].split()) and row["signals"]["bytes"] == len(row["text"])
    (tmp_path / "rules.yaml").write_text(
        "use: [gopher_quality]\nset: {gopher_quality.min_words: 70, gopher_quality.min_stop_words: null}\n"
    )
    with pytest.raises(ConfigError, match="paragraphs were cut"):
        refilter("corpus@v1", str(tmp_path / "rules.yaml"), "v2", str(tmp_path / "store"), PlainLoop, quiet=True)


def test_lines_short_ones_and_scripts_without_spaces(tmp_path):
    draw = random.Random(4)
    rule = sentence(draw, 9)
    japanese = "これは段落の複製を調べるための文です。"
    rows = [
        {"id": f"{k}", "name": f"{k}", "text": "\n".join(["Contents", "*", rule, sentence(draw, 20), japanese, "Yes."])} for k in range(4)
    ]
    for unit in ("paragraph", "line"):  # without a blank line a line is a paragraph
        version = run_rows(tmp_path, {"a": rows}, f"[paragraph_dedup: {{unit: {unit}}}]", store=unit)
        texts = sorted(kept(version).values(), key=len)
        assert len(texts) == 4
        assert [rule in text for text in texts] == [japanese in text for text in texts] == [False, False, False, True]
        assert all(text.startswith("Contents\n*\n") and text.endswith("\nYes.") for text in texts)
        assert "\ufffd" not in "".join(texts)


def test_near_copies_of_paragraphs(tmp_path):
    draw = random.Random(5)
    words = sentence(draw, 60).split()
    rows = []
    for k in range(6):
        rows.append({"id": f"{k}", "name": f"{k}", "text": sentence(draw, 30) + "\n\n" + " ".join(words)})
        words[k * 7] = f"n{k}"
    exact = run_rows(tmp_path, {"a": rows}, "[paragraph_dedup: {}]", store="exact")
    assert exact.manifest["dedup"]["paragraph_dedup"]["cuts"] == 0
    for by in ("signatures", "shingles"):
        stages = f"[paragraph_dedup: {{near: {{threshold: 0.5, ngram: 3, verify: 0.5, verify_by: {by}}}}}]"
        version = run_rows(tmp_path, {"a": rows}, stages, store=by)
        assert len(version.manifest["dedup"]["paragraph_dedup"]["near"]["clusters"]) == 1
        assert sorted(len(text.split("\n\n")) for text in kept(version).values()) == [1, 1, 1, 1, 1, 2]
    two = run_rows(tmp_path, {"a": rows}, stages.replace("near:", "max_copies: 2, near:"), store="two")
    assert sorted(len(text.split("\n\n")) for text in kept(two).values()) == [1, 1, 1, 1, 2, 2]


def test_documents_that_are_dropped_hold_no_copy(tmp_path):
    draw = random.Random(6)
    shared, own = sentence(draw), sentence(draw)
    twin = shared + "\n\n" + own
    rows = [{"id": f"{k}", "name": f"{k}", "text": twin} for k in range(3)] + [
        {"id": "x", "name": "x", "text": shared + "\n\n" + sentence(draw)}
    ]
    version = run_rows(tmp_path, {"a": rows}, "[exact_dedup: {}, paragraph_dedup: {}]")
    assert version.manifest["dedup"]["paragraph_dedup"]["copies"] == {"2": 1}
    assert reasons(version) == {"exact_dedup.duplicate": 2}
    for texts in (" ", ""):
        empty = run_rows(tmp_path, {"a": [{"id": "0", "text": texts}]}, "[paragraph_dedup: {near: {}}]", store=f"empty{len(texts)}")
        assert empty.manifest["counts"]["kept"] == 1

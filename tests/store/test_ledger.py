"""A ledger keeps what was appended, whoever wrote it and however a writer ended."""

from __future__ import annotations

from store.ledger import Ledger, read_ledger


def test_writers_are_merged_and_a_torn_line_is_left_out(tmp_path):
    one, two = Ledger(str(tmp_path)), Ledger(str(tmp_path))
    one.append({"step": 1})
    two.append({"step": 2})
    one.append({"step": 3})
    with open(tmp_path / f"{two.writer}.jsonl", "ab") as stream:
        stream.write(b'{"step": 4, "ti')
    records = read_ledger(str(tmp_path))
    assert [r["step"] for r in records] == [1, 2, 3]
    assert {r["writer"] for r in records} == {one.writer, two.writer}


def test_an_absent_ledger_is_empty(tmp_path):
    assert read_ledger(str(tmp_path / "none")) == []

"""Token versions: every document once, in an order that depends on ids alone, with exact ids."""

from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer

from dataproc import tokens
from dataproc.execution import PlainLoop
from dataproc.parquet import read_table
from dataproc.pipeline import run_pipeline
from dataproc.tokens import heldout_paths, is_held_out, place, tokenize
from dataproc.versions import open_version, verify
from store import files
from store.errors import ConfigError
from tests.trainer.made import documents


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tokens")
    documents(made, "one", 400, 1, str(made / "store"))
    return made


def rows(version) -> list[dict]:
    return [row for s in version.manifest["shards"] for row in read_table(files.join(version.url, s["path"])).to_pylist()]


def test_every_document_is_there_once_with_the_tokenizers_own_ids(folder):
    store = str(folder / "store")
    version = tokenize(store, ["one@v1"], "train:400", "t", "v1", 0.1)
    tokenizer = Tokenizer.from_file(f"{version.url}/tokenizer.json")
    held = [row for url in heldout_paths(version) for row in read_table(url).to_pylist()]
    texts = {row["id"]: row["text"] for b in open_version(store, "one@v1").batches(["id", "text"]) for row in b.to_pylist()}
    found = rows(version) + held
    assert {row["id"] for row in found} == set(texts) and len(found) == len(texts)
    for row in found:
        assert row["tokens"] == [*tokenizer.encode(texts[row["id"]]).ids, version.manifest["tokenizer"]["end_id"]]
        assert row["bytes"] == len(texts[row["id"]].encode())
    assert {row["id"] for row in held} == {name for name in texts if is_held_out(name, 0.1)} and held
    order = [place(row["id"]) for row in rows(version)]
    assert order == sorted(order)
    assert verify(version) == []
    sizes = [size for s in version.manifest["shards"] for size in s["group_tokens"]]
    assert sum(sizes) == version.manifest["counts"]["tokens"] == sum(len(row["tokens"]) for row in rows(version))


def test_a_repetition_is_the_same_version_and_training_repeats(folder):
    store = str(folder / "store")
    first = tokenize(store, ["one@v1"], "train:350", "again", "v1")
    second = tokenize(store, ["one@v1"], "train:350", "again", "v1")
    assert first.url == second.url and first.manifest["created_at"] == second.manifest["created_at"]


def test_many_shards_hold_the_same_documents_in_the_same_order(folder, monkeypatch):
    store = str(folder / "store")
    one = tokenize(store, ["one@v1"], "train:400", "single", "v1")
    monkeypatch.setattr(tokens, "SHARD_TEXT_BYTES", 9000)
    many = tokenize(store, ["one@v1"], f"{one.url}/tokenizer.json", "many", "v1")
    assert len(many.manifest["shards"]) > 3 and rows(many) == rows(one)


@pytest.mark.parametrize(
    ("tokenizer", "says"), [("none.json", "no such file"), ("train:x", "write train:SIZE"), (__file__, "is no tokenizer.json")]
)
def test_a_tokenizer_that_is_none_is_refused(folder, tokenizer, says):
    with pytest.raises(ConfigError, match=says):
        tokenize(str(folder / "store"), ["one@v1"], tokenizer, "t", "v9")


def numbered(folder, name: str, numbers) -> None:
    """A documents version `name@v1` with a document for each number, in that order, with the number as its id."""
    lines = [json.dumps({"id": str(i), "text": f"document {i} says {'x' * (i % 7)}"}) for i in numbers]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / f"{name}.yaml").write_text(
        f"dataset: {name}\nversion: v1\nowner: o\ninputs: [{{name: n, format: jsonl, path: {name}.jsonl, id_field: id}}]\n"
    )
    run_pipeline(str(folder / f"{name}.yaml"), str(folder / "store"), PlainLoop, quiet=True)


def test_a_trained_tokenizer_and_the_shards_do_not_depend_on_the_order_of_documents(folder):
    numbered(folder, "up", range(200))
    numbered(folder, "down", range(199, -1, -1))
    made = [tokenize(str(folder / "store"), [f"{name}@v1"], "train:300", f"{name}_tokens", "v1", 0.1) for name in ("up", "down")]
    stamps = [[entry["xxh3_128"] for entry in [*v.manifest["shards"], *v.manifest["files"]]] for v in made]
    assert stamps[0] == stamps[1]


def test_versions_may_be_named_in_any_order_but_share_no_document(folder):
    store = str(folder / "store")
    numbered(folder, "low", range(100))
    numbered(folder, "high", range(100, 150))
    numbered(folder, "over", range(90, 110))
    one = tokenize(store, ["low@v1", "high@v1"], "train:300", "both", "v1")
    other = tokenize(store, ["high@v1", "low@v1"], f"{one.url}/tokenizer.json", "other", "v1")
    assert [s["xxh3_128"] for s in one.manifest["shards"]] == [s["xxh3_128"] for s in other.manifest["shards"]]
    with pytest.raises(ConfigError, match=r"in more than one of the versions \(\d+ such here\)"):
        tokenize(store, ["low@v1", "over@v1"], f"{one.url}/tokenizer.json", "twice", "v1")


@pytest.mark.parametrize("most", [1, 40, 10**9])
def test_how_much_is_encoded_at_once_changes_nothing(folder, monkeypatch, most):
    store = str(folder / "store")
    one = tokenize(store, ["one@v1"], "train:400", "whole", "v1")
    monkeypatch.setattr(tokens, "_ENCODE_BYTES", most)
    assert tokenize(store, ["one@v1"], f"{one.url}/tokenizer.json", f"parts{most}", "v1").manifest["shards"] == one.manifest["shards"]

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


def test_the_order_of_the_input_changes_no_token_byte(folder):
    """The same documents in another order of lines, with ids of their own: the same shards."""
    lines = [json.dumps({"id": str(i), "text": f"document {i} says {'x' * (i % 7)}"}) for i in range(200)]
    digests = []
    for name, order in (("forward", lines), ("backward", lines[::-1])):
        (folder / f"{name}.jsonl").write_text("\n".join(order) + "\n")
        (folder / "order.yaml").write_text(
            f"dataset: {name}\nversion: v1\nowner: o\ninputs: [{{name: n, format: jsonl, path: {name}.jsonl, id_field: id}}]\n"
        )
        run_pipeline(str(folder / "order.yaml"), str(folder / "store"), PlainLoop, quiet=True)
        first = digests[0] if digests else None
        tokenizer = f"{first.url}/tokenizer.json" if first else "train:300"
        digests.append(tokenize(str(folder / "store"), [f"{name}@v1"], tokenizer, f"{name}_tokens", "v1"))
    one, two = ([s["xxh3_128"] for s in version.manifest["shards"]] for version in digests)
    assert one == two


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

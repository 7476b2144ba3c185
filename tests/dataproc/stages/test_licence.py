"""The licence stage: labels in `meta`, kinds that stay, and where a licence is believed from."""

from __future__ import annotations

import json

import pytest

from dataproc.sources.base import Record
from dataproc.stages.extract import Extract
from dataproc.stages.licence import Licence, LicenceConfig
from store.errors import ConfigError
from store.strict_yaml import validate
from tests.dataproc.stages.helpers import batch_of, pages, run, texts


def labels(result) -> list[tuple]:
    found = map(json.loads, result.batch.column("meta").to_pylist())
    return [(meta.get("licence"), meta["licence_kind"]) for meta in found]


def test_documents_are_labelled_and_without_keep_none_is_dropped():
    result = run(Licence, texts("SPDX-License-Identifier: GPL-3.0-only", "no word of it", "", "CC BY-NC 4.0 漢字"))
    assert labels(result) == [("GPL-3.0-only", "copyleft"), (None, "unknown"), (None, "unknown"), ("CC-BY-NC-4.0", "noncommercial")]
    assert not result.verdicts


def test_kinds_that_are_not_kept_go_with_what_was_found_and_where():
    batch = texts("// a\n// SPDX-License-Identifier: GPL-3.0-only", "SPDX-License-Identifier: MIT", "nothing")
    first, last = run(Licence, batch, keep=["permissive"]).verdicts
    assert (first.row, first.rule) == (0, "licence_not_kept")
    assert first.detail == {"licence": "GPL-3.0-only", "licence_kind": "copyleft", "found": "tag", "line": 2}
    assert (last.row, last.detail) == (2, {"licence_kind": "unknown"})
    assert [v.row for v in run(Licence, batch, keep=["permissive", "unknown"]).verdicts] == [0]


def test_a_null_text_states_nothing():
    assert labels(run(Licence, batch_of(Record(key="0", locator="made", payload=b"x")))) == [(None, "unknown")]


@pytest.mark.parametrize(
    ("value", "licence", "kind"),
    [
        ("MIT", "MIT", "permissive"),
        (["MIT", "GPL-2.0-only"], "MIT AND GPL-2.0-only", "copyleft"),
        ("https://creativecommons.org/licenses/by-nc-sa/4.0/", "CC-BY-NC-SA-4.0", "noncommercial"),
        ([], "ISC", "permissive"),
        (7, "ISC", "permissive"),
    ],
)
def test_what_the_record_says_is_believed_first(value, licence, kind):
    batch = batch_of(Record(key="0", locator="made", text="SPDX-License-Identifier: ISC", meta={"license": value}))
    assert labels(run(Licence, batch, meta_field="license")) == [(licence, kind)]


PAGE = (
    "<html><head><title>Wheels</title>{head}</head><body><p>"
    + "The wheel of the mill turns all day in the water. " * 12
    + "</p>{foot}</body></html>"
)
CC = "https://creativecommons.org/licenses/{}/4.0/"


@pytest.mark.parametrize(
    ("head", "foot", "licence"),
    [
        ('<script type="application/ld+json">{"@type": "ImageObject", "license": "' + CC.format("by-nd") + '"}</script>', f'<a href="{CC.format("by")}">1</a>', None),
        ("", f'<footer><a rel="license" href="{CC.format("by-nc")}">terms</a></footer>', "CC-BY-NC-4.0"),
        (f'<link href={CC.format("by")} rel="license">', "", "CC-BY-4.0"),
        (f'<meta name="dcterms.license" content="{CC.format("by-sa")}">', "", "CC-BY-SA-4.0"),
        ('<script type="application/ld+json">{"@type": "Article", "license": "' + CC.format("by-nd") + '"}</script>', "", "CC-BY-ND-4.0"),
        ("", f'<footer>Text: <a href="{CC.format("by")}">free</a></footer>', "CC-BY-4.0"),
        ("", f'<img><a href="{CC.format("by")}">1</a><img><a href="{CC.format("by-nc")}">2</a>', None),
        ("", "", None),
    ],
)  # fmt: skip
def test_what_a_page_says_is_read_where_the_page_still_is(head, foot, licence):
    page = PAGE.replace("{head}", head).replace("{foot}", foot).encode()
    assert labels(run(Licence, run(Extract, pages(page)).batch))[0][0] == licence


def test_kinds_that_there_are_not_are_refused():
    with pytest.raises(ConfigError, match="keep"):
        validate({"keep": ["free"]}, LicenceConfig, "p.yaml")

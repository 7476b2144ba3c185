"""URLs are refused whatever their dress: case, port, user, www., final dot, punycode, subdomain."""

from __future__ import annotations

import gzip

import pytest

from dataproc.sources.base import Record
from dataproc.stages.url_filter import UrlFilter, UrlFilterConfig, host_of
from store.errors import ConfigError
from store.strict_yaml import DataFile, data_files, validate
from tests.dataproc.stages.helpers import batch_of, rules, run


def urls(*values: str | None):
    return batch_of(*(Record(key=str(i), locator=str(i), text="t", url=value) for i, value in enumerate(values)))


@pytest.mark.parametrize(
    "url",
    [
        "http://bad.example/x",
        "HTTPS://BAD.EXAMPLE",
        "http://www.bad.example:8080/x",
        "http://user:pw@deep.sub.bad.example./x?q",
        "//bad.example/x",
        "bad.example/path",
    ],
)
def test_a_listed_domain_does_not_slip_through(url):
    result = run(UrlFilter, urls(url), block_domains=["bad.example"])
    assert rules(result) == {0: "blocked_domain"} and result.verdicts[0].detail == {"matched": "bad.example"}


@pytest.mark.parametrize(
    "url", ["http://notbad.example/", "http://good.example/bad.example", "http://bad.example.org/", None, "", "http://[broken"]
)
def test_others_pass(url):
    assert rules(run(UrlFilter, urls(url), block_domains=["bad.example"])) == {}


def test_unicode_names_equal_their_punycode():
    assert host_of("http://BÜCHER.example/") == host_of("http://xn--bcher-kva.example") == "xn--bcher-kva.example"
    assert rules(run(UrlFilter, urls("http://xn--bcher-kva.example/"), block_domains=["bücher.example"])) == {0: "blocked_domain"}


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://x.example/PORN/a", True),
        ("http://free-porn.example/", True),
        ("http://x.example/?q=%70orn", True),
        ("http://x.example/popcorn", False),
        ("http://x.example/pornography", False),
    ],
)
def test_words_are_found_whole_in_any_case_and_encoding(url, found):
    assert bool(rules(run(UrlFilter, urls(url), block_url_words=["porn"]))) is found


def test_only_allowed_domains_pass_when_some_are_named():
    result = run(UrlFilter, urls("http://a.example", "http://b.a.example", "http://c.example"), allow_domains=["a.example"])
    assert rules(result) == {2: "not_allowed_domain"}


def test_lists_are_files_in_plain_or_hosts_form_and_part_of_the_version(tmp_path):
    (tmp_path / "a.txt").write_text("# comment\nbad.example\n\n0.0.0.0 ads.example # tracker\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"WORSE.example\n"))
    config = validate({"block_domains": ["a.txt", "b.txt.gz", "c.example"]}, UrlFilterConfig, str(tmp_path / "p.yaml"))
    assert [type(entry) is DataFile for entry in config.block_domains] == [True, True, False] and len(data_files(config)) == 2
    result = run(
        UrlFilter, urls("http://ads.example", "http://x.worse.example", "http://c.example", "http://d.example"), **config.model_dump()
    )
    assert rules(result) == {0: "blocked_domain", 1: "blocked_domain", 2: "blocked_domain"}
    with pytest.raises(ConfigError, match="file not found: none.txt"):
        validate({"block_domains": ["none.txt"]}, UrlFilterConfig, str(tmp_path / "p.yaml"))

"""URLs are refused whatever their dress: case, port, user, www., final dot, punycode, subdomain."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.sources.base import Record
from dataproc.stages.url_filter import UrlFilter, UrlFilterConfig
from dataproc.urls import split_url
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
        "bad.example:443",
        "http:\\\\bad.example\\x",
        "https:/bad.example",
        "http://ba%64.example/",
        "  http://a@b@bad.example#x",
        "http://bad。example/",
        "ftp://bad.example",
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
    assert split_url("http://BÜCHER.example/")[0] == split_url("http://xn--bcher-kva.example")[0] == "xn--bcher-kva.example"
    assert rules(run(UrlFilter, urls("http://xn--bcher-kva.example/"), block_domains=["bücher.example"])) == {0: "blocked_domain"}


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://x.example/PORN/a", True),
        ("http://free-porn.example/", True),
        ("http://x.example/?q=%70orn", True),
        ("http://x.example/popcorn", False),
        ("http://x.example/pornography", False),
        ("http://x.example/порно/porn_ü", True),
        ("http://x.example/porn2", False),
        ("http://x.example/pörn", False),
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


@pytest.mark.parametrize(
    ("word", "url", "found"),
    [
        ("/adult/", "http://x.example/adult/page", True),
        ("/adult/", "http://x.example/adults/page", False),
        ("hot girls", "http://x.example/?q=Hot%20Girls!", True),
        ("hot girls", "http://x.example/?q=shot%20girls", False),
        ("порно", "http://x.example/%D0%9F%D0%BE%D1%80%D0%BD%D0%BE/1", True),
    ],
)
def test_words_with_other_characters_end_where_letters_and_digits_do(word, url, found):
    assert bool(rules(run(UrlFilter, urls(url), block_url_words=[word]))) is found


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://host.example/~bad", True),
        ("http://www.host.example/~bad/page?x", True),
        ("http://host.example/~badge", False),
        ("http://host.example/", False),
    ],
)
def test_an_entry_with_a_path_means_what_lies_under_it(url, found, tmp_path):
    (tmp_path / "urls.txt").write_text("host.example/~bad/\nhttps://other.example/x\n")
    for entry in (str(tmp_path / "urls.txt"), "host.example/~bad"):
        assert bool(rules(run(UrlFilter, urls(url), block_domains=[entry]))) is found


@pytest.mark.parametrize(
    "line", ["*.bad.example", "||bad.example^", "bad.example,porn,2024", "127.0.0.1 localhost bad.example", "https://bad.example/"]
)
def test_the_usual_forms_of_lists_are_read(line, tmp_path):
    (tmp_path / "l.list").write_text(f"\ufeff{line}\n")
    result = run(UrlFilter, urls("http://bad.example/", "http://good.example"), block_domains=[str(tmp_path / "l.list")])
    assert rules(result) == {0: "blocked_domain"}


@pytest.mark.parametrize("entry", ["lists/none", "none.list", "s3x", "", "lists", "/no/such/file"])
def test_an_entry_that_is_neither_a_domain_nor_a_file_is_refused(entry, tmp_path):
    (tmp_path / "lists").mkdir()
    with pytest.raises(ConfigError, match="neither a file nor a domain|file not found"):
        validate({"block_domains": [entry]}, UrlFilterConfig, str(tmp_path / "p.yaml"))


def test_an_empty_word_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="block_url_words.*a word is empty"):
        validate({"block_url_words": [" "]}, UrlFilterConfig, str(tmp_path / "p.yaml"))


def test_a_damaged_list_is_named(tmp_path):
    (tmp_path / "l.gz").write_bytes(gzip.compress(b"bad.example\n" * 1000)[:-20])
    with pytest.raises(ConfigError, match=r"l\.gz is not a list of domains"):
        run(UrlFilter, urls("http://x.example"), block_domains=[str(tmp_path / "l.gz")])


@given(st.text("abZ0.:/@?#%[]\\\\ \t-_ü。ß", max_size=40))
def test_any_text_has_a_host_that_can_be_listed(url):
    host, path = split_url(url)
    assert "/" not in host and host == host.lower()
    if "." in host.strip(".") and not any(c in host for c in "%[]:# \\"):
        assert rules(run(UrlFilter, urls(url), block_domains=[host])) == {0: "blocked_domain"}
    assert set(rules(run(UrlFilter, urls(url), block_domains=["a.b"], block_url_words=["a", "b a"]))) <= {0}


def test_a_page_given_as_a_domain_is_not_fetched(tmp_path):
    config = validate({"block_domains": ["https://bad.invalid/"]}, UrlFilterConfig, str(tmp_path / "p.yaml"))
    assert rules(run(UrlFilter, urls("http://x.bad.invalid/y"), **config.model_dump())) == {0: "blocked_domain"}


LABEL = st.text("abcxyz0189-", min_size=1, max_size=6).filter(lambda t: t.strip("-") == t and t != "www")


@given(st.lists(LABEL, min_size=1, max_size=3), st.lists(LABEL, min_size=2, max_size=3), st.sampled_from(["", "/", "/x/y?q#f", ":80/"]))
def test_a_domain_means_all_names_below_it(below, domain, rest):
    listed = ".".join([*domain, "example"])
    assert rules(run(UrlFilter, urls(f"http://{'.'.join(below)}.{listed}{rest}"), block_domains=[listed])) == {0: "blocked_domain"}
    assert rules(run(UrlFilter, urls(f"http://{below[0]}{listed}{rest}"), block_domains=[listed])) == {}

"""URLs are refused whatever their dress: case, port, user, www., final dot, punycode, subdomain."""

from __future__ import annotations

import gzip
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.execution import PlainLoop
from dataproc.pipeline import run_pipeline
from dataproc.sources.base import Record
from dataproc.stages import url_filter, url_index
from dataproc.stages.base import StageContext
from dataproc.stages.url_filter import UrlFilter, UrlFilterConfig
from dataproc.stages.url_lists import UrlList
from dataproc.urls import parse, split_url
from dataproc.versions import open_version
from store.digests import bytes_digest
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


def category_folder(folder):
    """A folder in the form of the UT1 lists."""
    for name, files in {
        "adult": {"domains": b"bad.example\n", "urls": b"host.example/~bad\n"},
        "games": {"domains": b"play.example\n"},
    }.items():
        (folder / "lists" / name).mkdir(parents=True)
        for file, content in files.items():
            (folder / "lists" / name / file).write_bytes(content)
    (folder / "lists" / "packed").mkdir()
    (folder / "lists" / "packed" / "domains.gz").write_bytes(gzip.compress(b"packed.example\n"))


def test_categories_are_folders_of_domains_and_urls(tmp_path):
    category_folder(tmp_path)
    config = validate({"categories": {"folder": "lists", "use": ["adult", "packed"]}}, UrlFilterConfig, str(tmp_path / "p.yaml"))
    assert len(data_files(config)) == 3
    assert UrlFilterConfig.model_validate(config.model_dump(mode="json"), context={"base": None}) == config  # as workers read it
    names = ["http://x.bad.example", "http://host.example/%7Ebad/1", "http://host.example/", "http://play.example", "http://packed.example"]
    result = run(UrlFilter, urls(*names), **config.model_dump())
    assert rules(result) == {0: "blocked_category", 1: "blocked_category", 4: "blocked_category"}
    assert [verdict.detail for verdict in result.verdicts] == [
        {"matched": "bad.example", "list": "adult/domains"},
        {"matched": "host.example/~bad", "list": "adult/urls"},
        {"matched": "packed.example", "list": "packed/domains.gz"},
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"folder": "lists", "use": ["adlut"]}, "category adlut: neither domains nor urls in"),
        ({"folder": "lists", "use": []}, "name the categories that are used"),
        ({"folder": "lists"}, "name the categories that are used"),
        ({"folder": "lists", "uses": ["adult"]}, 'did you mean "use"'),
    ],
)
def test_a_category_that_is_not_there_is_refused(value, message, tmp_path):
    category_folder(tmp_path)
    with pytest.raises(ConfigError, match=message):
        validate({"categories": value}, UrlFilterConfig, str(tmp_path / "p.yaml"))


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://a.example/x?b=1", True),
        ("HTTPS://WWW.A.example:443/X/?b=%31#top", True),
        ("http://a.example/x", False),
        ("http://a.example/x/y?b=1", False),
        ("http://sub.a.example/x?b=1", False),
        ("http://c.example", True),
        ("http://c.example/y", False),
    ],
)
def test_a_listed_page_is_that_page_alone(url, found, tmp_path):
    (tmp_path / "pages.txt").write_text("# pages\nhttps://a.example/x?b=1\nc.example/\n")
    for entries in ([str(tmp_path / "pages.txt")], ["https://a.example/x?b=1", "http://c.example/"]):
        assert rules(run(UrlFilter, urls(url), block_urls=entries)) == ({0: "blocked_url"} if found else {})


def test_soft_words_count_once_each_and_hard_ones_at_once(tmp_path):
    (tmp_path / "soft.txt").write_text("# soft\nSex\nhot girls\n")
    names = ["http://x.example/sex/sex/SEX", "http://x.example/sex/toy", "http://x.example/hot%20girls/sex/toy", "http://x.example/viagra"]
    settings = {"block_url_words": ["viagra"], "soft_url_words": [str(tmp_path / "soft.txt"), "toy"]}
    result = run(UrlFilter, urls(*names), **settings)
    assert rules(result) == {1: "soft_words", 2: "soft_words", 3: "blocked_word"}
    assert [(v.value, v.threshold) for v in result.verdicts] == [(2.0, 2.0), (3.0, 2.0), (None, None)]
    assert result.verdicts[1].detail == {"matched": ["hot girls", "sex", "toy"]}
    assert rules(run(UrlFilter, urls(*names), **settings, soft_words_needed=3)) == {2: "soft_words", 3: "blocked_word"}


def test_a_registry_in_a_list_does_not_take_all_its_customers(tmp_path):
    (tmp_path / "l.txt").write_text("co.uk\ncom\nblogs.example\n")
    names = ["http://co.uk/", "http://www.co.uk", "http://shop.co.uk", "http://x.com", "http://a.blogs.example"]
    assert rules(run(UrlFilter, urls(*names), block_domains=[str(tmp_path / "l.txt")])) == dict.fromkeys((0, 1, 4), "blocked_domain")
    assert rules(run(UrlFilter, urls("http://shop.co.uk"), block_domains=["co.uk"])) == {0: "blocked_domain"}  # written on purpose


@pytest.mark.parametrize(
    ("url", "listed"),
    [
        ("http://2130706433/", "127.0.0.1"),
        ("http://0x7f.1/", "127.0.0.1"),
        ("http://127.0.0.1:80/", "0177.0.0.1"),
        ("http://[::ffff:7f00:1]/", "127.0.0.1"),
        ("http://[2001:db8:0::1]/", "[2001:db8::1]"),
        ("http://faß.example", "xn--fa-hia.example"),
        ("http://пример.рф/x", "пример.рф"),
        ("http://XN--E1AFMKFD.xn--p1ai/x", "ПРИМЕР.рф"),
        ("http://例え.jp", "xn--r8jz45g.jp"),
        ("http://تجربة.example", "تجربة.example"),
    ],
)
def test_addresses_and_scripts_in_a_list_and_in_urls(url, listed, tmp_path):
    (tmp_path / "l.txt").write_text(f"{listed}\n")
    for entry in (listed, str(tmp_path / "l.txt")):
        assert rules(run(UrlFilter, urls(url), block_domains=[entry])) == {0: "blocked_domain"}


def test_the_first_look_and_the_second_agree(tmp_path):
    """Each URL alone, in a batch, in a slice and as the only one that is judged: the same verdicts as by the exact look at every row."""
    (tmp_path / "l.txt").write_text("bad.example\nhost.example/x\n1.2.3.4\n")
    names = [
        f"{scheme}{user}{host}{rest}"
        for scheme in ("http://", "HTTPS://", "//", "", "http:\\\\", " http://", "ftp://")
        for user in ("", "u:80@", "bad.example@")
        for host in (
            "bad.example",
            "a.BAD.example.",
            "badd.example",
            "host.example",
            "1.2.3.4",
            "0x01020304",
            "bad.exampl\te",
            "bad.example..",
        )
        for rest in ("", "/x", ":8080/x", ":bad/x", "?x", "#x", "\\x")
    ]
    batch = urls(*names, None, "")
    stage = UrlFilter(UrlFilterConfig.model_validate({"block_domains": [str(tmp_path / "l.txt")]}, context={"base": None}))
    stage.open(StageContext())
    exact = [row for row, name in enumerate(names) if stage._judge(row, name)]
    assert 0 < len(exact) < len(names)
    assert [v.row for v in stage.process(batch).verdicts] == exact
    assert [v.row for v in stage.process(batch.slice(7)).verdicts] == [row - 7 for row in exact if row >= 7]


def test_hostile_urls_take_bounded_time(tmp_path):
    (tmp_path / "l.txt").write_text("bad.example\nhost.example/x\n")
    names = [
        "http://" + "a." * 500_000 + "bad.example",
        "http://host.example" + "/y" * 200_000,
        "http://" + "%2e" * 100_000,
        "http://" + "@" * 100_000,
    ]
    start = time.process_time()
    found = rules(run(UrlFilter, urls(*names), block_domains=[str(tmp_path / "l.txt")], block_url_words=["z"]))
    assert found == {0: "blocked_domain"} and time.process_time() - start < 5


def test_a_shared_hash_drops_nothing(monkeypatch, tmp_path):
    """All texts are given one hash: what is listed is found, nothing else is."""
    one = lambda texts: np.full(len(texts), 7, np.uint64)  # noqa: E731
    monkeypatch.setattr(url_index, "hashes", one)
    monkeypatch.setattr(url_index, "places", lambda text, table: range(len(table.keys)))
    (tmp_path / "l.txt").write_text("bad.example\nworse.example\n")
    index = url_index.open_index((UrlList("r", "l", DataFile(tmp_path / "l.txt")),), tmp_path)
    assert [bool(index.match(parse(host))) for host in ("bad.example", "x.worse.example", "good.example")] == [True, True, False]


def test_an_index_is_made_once_and_again_when_it_is_damaged_or_the_list_changes(tmp_path):
    (tmp_path / "l.txt").write_text("bad.example\n")
    lists = (UrlList("r", "l", DataFile(tmp_path / "l.txt")),)
    url_index.open_index(lists, tmp_path)
    (made,) = tmp_path.glob("urls-*")
    before = made.stat().st_mtime_ns
    assert url_index.open_index(lists, tmp_path).match(parse("bad.example")) and made.stat().st_mtime_ns == before
    made.write_bytes(made.read_bytes()[:-8] + b"damaged!")
    assert url_index.open_index(lists, tmp_path).match(parse("bad.example")) and made.stat().st_mtime_ns != before
    (tmp_path / "l.txt").write_text("other.example\n")
    assert url_index.open_index(lists, tmp_path).match(parse("bad.example")) is None and len(list(tmp_path.glob("urls-*"))) == 2


def test_adblock_rules_for_whole_pages(tmp_path):
    pytest.importorskip("adblock")
    (tmp_path / "a.txt").write_text(
        "[Adblock Plus 2.0]\n! list\n||bad.example^\n@@||bad.example/ok\n||third.example^$third-party\n/ads/*\nx.example##.ad\n"
    )
    names = [
        "http://sub.BAD.example/x",
        "http://bad.example/ok",
        "http://third.example",
        "http://x.example/ads/1",
        "http://bad.example.org",
        "x",
        None,
    ]
    result = run(UrlFilter, urls(*names), adblock_lists=[str(tmp_path / "a.txt")])
    assert rules(result) == {0: "adblock"} and result.verdicts[0].detail == {"matched": "||bad.example^", "list": "a.txt"}


def test_without_the_extra_adblock_lists_are_refused(monkeypatch, tmp_path):
    (tmp_path / "a.txt").write_text("||bad.example^\n")
    monkeypatch.setattr(url_filter, "installed", lambda: False)
    with pytest.raises(ConfigError, match=r"need the extra adblock"):
        validate({"adblock_lists": ["a.txt"]}, UrlFilterConfig, str(tmp_path / "p.yaml"))


def test_a_changed_list_changes_the_version_and_its_place_does_not(tmp_path):
    category_folder(tmp_path)
    (tmp_path / "lines.jsonl").write_text('{"text": "a page of text", "url": "http://good.example"}\n')
    pipeline = (
        "dataset: d\nversion: v1\nowner: o@example.org\ninputs: [{name: i, format: jsonl, path: lines.jsonl, url_field: url}]\n"
        "stages: [{url_filter: {categories: {folder: FOLDER, use: [adult]}}}]\n"
    )

    def made(folder: str):
        (tmp_path / "p.yaml").write_text(pipeline.replace("FOLDER", folder))
        result = run_pipeline(str(tmp_path / "p.yaml"), str(tmp_path / "store"), PlainLoop, quiet=True)
        return open_version(str(tmp_path / "store"), result["version"]).manifest

    first = made("lists")
    files = [tmp_path / "lists" / "adult" / name for name in ("domains", "urls")]
    assert first["artefacts"] == {str(path): bytes_digest(path.read_bytes()) for path in files}
    (tmp_path / "lists").rename(tmp_path / "moved")
    assert made("moved")["digest"] == first["digest"]
    (tmp_path / "moved" / "adult" / "domains").write_bytes(b"bad.example\nnew.example\n")
    assert made("moved")["digest"] != first["digest"]

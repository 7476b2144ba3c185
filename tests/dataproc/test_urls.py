"""One normal form of URLs: every spelling of a host or page that a browser takes for the same ends in the same text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.urls import is_registry, normal_host, parse, registered_domain


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://bad.example/x", "bad.example"),
        ("HtTpS://BAD.EXAMPLE", "bad.example"),
        ("http://www.bad.example:8080/", "bad.example"),
        ("http://user:pw@bad.example./", "bad.example"),
        ("http://good.example@bad.example", "bad.example"),
        ("http://bad.example\\@good.example/", "bad.example"),
        ("http:\\\\bad.example\\x", "bad.example"),
        ("\\\\bad.example/", "bad.example"),
        ("http:////bad.example", "bad.example"),
        ("https:bad.example", "bad.example"),
        ("//bad.example", "bad.example"),
        ("bad.example:443/x", "bad.example"),
        ("ftp://bad.example", "bad.example"),
        ("\x00 http://bad.example\n", "bad.example"),
        ("ht\ntp://b\tad.example", "bad.example"),
        ("http://b%61d.ex%41mple/", "bad.example"),
        ("http://bad%2eexample/", "bad.example"),
        ("http://bad。example/", "bad.example"),
        ("http://ｂａｄ.example/", "bad.example"),
        ("http://ba\u00add.example/", "bad.example"),
        ("http://%EF%BD%82ad.example/", "bad.example"),
        ("http://BÜCHER.example/", "xn--bcher-kva.example"),
        ("http://bu\u0308cher.example/", "xn--bcher-kva.example"),
        ("http://XN--BCHER-KVA.example/", "xn--bcher-kva.example"),
        ("http://faß.example", "xn--fa-hia.example"),
        ("http://пример.рф/", "xn--e1afmkfd.xn--p1ai"),
        ("http://例え.jp", "xn--r8jz45g.jp"),
        ("http://127.1/", "127.0.0.1"),
        ("http://0x7f.0.0.1/", "127.0.0.1"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://017700000001/", "127.0.0.1"),
        ("http://0X7F000001./", "127.0.0.1"),
        ("http://１２７.0.0.1/", "127.0.0.1"),
        ("http://1.2.3.4.5/", "1.2.3.4.5"),
        ("http://256.1.1.1/", "256.1.1.1"),
        ("http://08.1.1.1/", "08.1.1.1"),
        ("http://[::FFFF:127.0.0.1]:80/", "127.0.0.1"),
        ("http://[2001:DB8:0:0::1]/", "[2001:db8::1]"),
        ("http://[broken", "[broken"),
        ("http://\ud800.example/", "\ud800.example"),
        ("", ""),
        ("/only/a/path", ""),
        ("mailto:", "mailto"),
    ],
)
def test_hosts(url, host):
    assert parse(url).host == host


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("http://A.example", "a.example"),
        ("http://a.example/", "a.example"),
        ("https://a.example/X/y/#top", "a.example/x/y"),
        ("http://a.example/%7Ebad/", "a.example/~bad"),
        ("http://a.example/good/../bad//x/./y", "a.example/bad/x/y"),
        ("http://a.example/good/%2e%2e/bad", "a.example/bad"),
        ("http://a.example\\x\\y", "a.example/x/y"),
        ("http://a.example//x", "a.example/x"),
        ("http://a.example/../..", "a.example"),
        ("http://a.example/x?B=%31#c", "a.example/x?b=1"),
        ("http://a.example?q", "a.example?q"),
    ],
)
def test_pages(url, page):
    assert parse(url).page == page


@pytest.mark.parametrize(
    ("host", "registered"),
    [
        ("a.b.co.uk", "b.co.uk"),
        ("co.uk", None),
        ("x.y.github.io", "y.github.io"),
        ("a.b.example", "b.example"),
        ("foo.city.kawasaki.jp", "city.kawasaki.jp"),  # the list's exception to *.kawasaki.jp
        ("a.b.c.kawasaki.jp", "b.c.kawasaki.jp"),
        ("shop.xn--85x722f.com.cn", "xn--85x722f.com.cn"),
        ("127.0.0.1", None),
        ("[::1]", None),
        ("", None),
    ],
)
def test_registered_domains(host, registered):
    assert registered_domain(host) == registered


def test_a_registry_sells_names_and_a_host_of_blogs_does_not():
    assert [is_registry(host) for host in ("com", "co.uk", "github.io", "bad.example", "unheard-of")] == [True, True, False, False, False]


@given(st.text("aB0x.:/@?#%[]\\ \t-_üß。１2\ud800", max_size=30))
def test_the_normal_form_of_a_normal_host_is_itself(url):
    address = parse(url)
    assert "/" not in address.host and address.path == address.path.lower()
    if "%" not in address.host and not address.host.startswith(("www.", "[")):
        assert normal_host(address.host) == address.host

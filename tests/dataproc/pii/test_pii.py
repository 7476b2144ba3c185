"""The stage pii: what is found and what is not, on samples made by hand, and what becomes of it. All data here is made up."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataproc.pii import national, presidio
from dataproc.stages.pii import Pii, PiiConfig
from tests.dataproc.stages.helpers import rules, run, texts

IDS = ["us_ssn", "gb_nino", "de_steuerid", "fr_nir", "es_dni", "es_nie", "it_codicefiscale", "nl_bsn", "br_cpf", "in_aadhaar", "cn_ric"]
FOUND = {
    "email": ["ana.b+news@firma.de", "O'Neil@mail.example.co.uk", "x_1@sub.domain.museum", "info@bücher.de", "me@xn--bcher-kva.ch"],
    "phone": ["+49 30 901820", "+1 (212) 555-0123", "0044 20 7946 0958", "+86 138 0013 8000", "+33 1 42 68 53 00", "+91-98765-43210"],
    "iban": ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819", "FR14 2004 1010 0505 0001 3M02 606", "NL91ABNA0417164300"],
    "card": ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005", "6011111111111117"],
    "ip": ["91.198.174.192", "2a02:6b8:0:1::1", "91.198.44.7"],
    "secret": [
        "AKIAQ3EGLRT7HXW2KZMD",
        "ghp_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2",
        "AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
        "xoxb-123456789012-ABCdef456ghiJKL789",
        "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    ],
    "national_id": [
        "SSN: 536-90-4399",
        "National Insurance number AB 12 34 56 C",
        "Steuer-ID 36574261809",
        "NIR 1 84 12 76 451 089 46",
        "DNI 12345678Z",
        "NIE X-1234567-L",
        "codice fiscale RSSMRA85T10A562S",
        "BSN 111222333",
        "CPF 390.533.447-05",
        "Aadhaar 2345 6789 0124",
        "身份证 11010519491231002X",
    ],
}
# What looks like personal data and is none.
OTHER = [
    "version 1.2.3.4567 and 10.0.19041.1", "ISBN 978-3-16-148410-0", "ISBN 0-306-40615-2", "it costs 1,234,567.89 euros", "on 2024-11-05 at 12:30:45",
    "05.11.2024", "sha1 da39a3ee5e6b4b0d3255bfef95601890afd80709", "uuid 123e4567-e89b-12d3-a456-426614174000", "at 52.520008, 13.404954",
    "doi 10.1000/182", "12:34:56:78:9a:bc", "std::vector<int>::iterator", "a@b", "@user on the web", "git@github", "x = y@z", "1234 5678 9012 3456",
    "4111 1111 1111 1112", "DE89 3704 0044 0532 0130 01", "order 20241105123456", "1699188000", "AKIA is a prefix", "sk_live_xxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp_000000000000000000000000000000000000", "192.168.0.1", "127.0.0.1", "255.255.255.0", "::1", "123456789", "BSN 111222334", "12345678A",
    "CPF 390.533.447-06", "Steuer-ID 36574261808", "pages 212-555", "3.14159265358979", "2 + 2 = 4", "c. 1900-1950", "0x7fffffff", "5.000.000.000",
    "someone@example.com", "write to name@example.org", "<your-key-here>", "00 30 00 00 00 00 07 00 00", "Telephone hours 9-17",
]  # fmt: skip
AROUND = [
    "Please use {} for that.", "{}", "Siehe {}, wie besprochen!", "Позвоните: {} (днём).", "「{}」と書いた。", "اتصل بنا {} الآن", "🙂 {} 🙂",
    "line before\n{}\nline after", "x={};", "सम्पर्क: {} धन्यवाद",
]  # fmt: skip


def found_in(text: str, **settings) -> dict[str, int]:
    result = run(Pii, texts(text), **{"national_ids": IDS, **settings})
    signals = {
        name.removeprefix("signals.pii_"): result.batch.column(name)[0].as_py() for name in result.batch.schema.names if "pii_" in name
    }
    return {kind: int(count) for kind, count in signals.items() if count}


def cleaned(text: str, **settings) -> str:
    return run(Pii, texts(text), **{"national_ids": IDS, **settings}).batch.column("text")[0].as_py()


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in FOUND.items() for value in values])
def test_each_kind_is_found(kind, value):
    assert found_in(f"See {value} there.") == {kind: 1}


def test_recall_and_precision_on_samples_of_many_scripts():
    """Every value in every surrounding: by construction each positive holds one of its kind, each negative none of any kind."""
    positives = [(kind, around.format(value)) for kind, values in FOUND.items() for value in values for around in AROUND]
    negatives = [around.format(value) for value in OTHER for around in AROUND]
    batch = texts(*(text for _, text in positives), *negatives)
    result = run(Pii, batch, national_ids=IDS)
    counts = {kind: result.batch.column(f"signals.pii_{kind}").to_pylist() for kind in FOUND}
    wrong = [text for row, (kind, text) in enumerate(positives) if [k for k in counts if counts[k][row]] != [kind]]
    false = [text for row, text in enumerate(negatives, len(positives)) if any(counts[k][row] for k in counts)]
    recall = 1 - len(wrong) / len(positives)
    precision = len(positives) / (len(positives) + len(false))
    assert recall >= 0.98, wrong[:10]
    assert precision >= 0.98, false[:10]


def test_what_is_found_is_replaced_and_nothing_else_changes():
    text = "🙂Mail ana@firma.de، или +49 30 901820.\n\n東京 91.198.44.7\u200f!"
    assert cleaned(text) == "🙂Mail <EMAIL>، или <PHONE>.\n\n東京 <IP>\u200f!"
    assert (
        cleaned(text, actions={"ip": "count"}, placeholders={"email": "[mail]"}) == "🙂Mail [mail]، или <PHONE>.\n\n東京 91.198.44.7\u200f!"
    )
    assert cleaned(text, find=["ip"]) == text.replace("91.198.44.7", "<IP>")


@pytest.mark.parametrize("digits", ["٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹", "०१२३४५६७८९", "０１２３４５６７８９"])
def test_digits_of_other_scripts_are_read(digits):
    number = "+49 30 901820".translate({ord(str(k)): digits[k] for k in range(10)})
    assert cleaned(f"({number})") == "(<PHONE>)"


def test_national_forms_of_numbers_need_their_country():
    text = "Tel. 030 901 820 44"
    assert cleaned(text, phone_countries=["DE"]) == "Tel. <PHONE>" and cleaned(text) == text
    assert cleaned("da 10 80 95 47 0f 01 07 75 01 81 21 80 01 09 00", phone_countries=["DE"]).startswith("da 10 80")


def test_a_private_key_goes_as_a_whole():
    rng = random.Random(4)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    body = "\n".join("".join(rng.choice(letters) for _ in range(64)) for _ in range(6))
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
    assert cleaned(f"key:\n{key}\nend") == "key:\n<SECRET>\nend"
    assert cleaned("-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----").startswith("-----BEGIN")


def test_passwords_are_found_on_demand():
    text = 'db_password = "hV7q-zR2m9"\npassword: required'
    assert cleaned(text) == text
    assert cleaned(text, find=["password"]) == 'db_password = "<PASSWORD>"\npassword: required'


def test_a_document_with_more_than_the_limit_is_dropped_with_counts_and_places():
    result = run(Pii, texts("a@firma.de", "a@firma.de b@firma.de"), max_matches={"email": 1})
    assert rules(result) == {1: "email"}
    (verdict,) = result.verdicts
    assert (verdict.value, verdict.threshold) == (2.0, 1.0)
    assert verdict.detail == {"counts": {"email": 2}, "offsets": {"email": [[0, 10], [11, 21]]}}
    assert result.batch.column("text").to_pylist() == ["<EMAIL>", "<EMAIL> <EMAIL>"]  # a report quotes dropped texts, too
    assert rules(run(Pii, texts("a@firma.de"), action="drop")) == {0: "email"}


def test_what_is_allowed_stays():
    text = "a@firma.de b@other.org 91.198.174.192"
    settings = {"allow": ["b@other.org"], "allow_domains": ["firma.de"], "allow_networks": ["91.198.0.0/16"]}
    assert cleaned(text, **settings) == text
    assert cleaned("192.168.0.1") == "192.168.0.1" and cleaned("192.168.0.1", public_ips_only=False) == "<IP>"


class TicketNumber:
    """A plug-in: TICKET- and six digits that add up to ten."""

    pattern = r"TICKET-\d{6}"

    def valid(self, text: str) -> bool:
        return sum(int(c) for c in text if c.isdigit()) == 10


def test_a_plug_in_finds_its_own_numbers():
    name = f"{__name__}:TicketNumber"
    assert cleaned("TICKET-123400 TICKET-123500", national_ids=[name]) == "<NATIONAL_ID> TICKET-123500"
    assert PiiConfig(national_ids=(name,)).plugin_files == (__file__,)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"national_ids": ["us_snn"]}, 'did you mean "us_ssn"'),
        ({"national_ids": ["nowhere:Class"]}, "cannot be loaded"),
        ({"phone_countries": ["XX"]}, "numbering plan"),
        ({"placeholders": {"email": "hidden"}}, "cannot be a placeholder"),
        ({"find": ["email"], "actions": {"ip": "count"}}, "not looked for"),
        ({"find": ["person"]}, "only found by Presidio"),
        ({"allow_networks": ["1.2.3"]}, "1.2.3"),
        ({"presidio": {"models": {}}}, ""),
    ],
)
def test_mistakes_are_told(settings, told):
    with pytest.raises(ValueError, match=told):
        PiiConfig.model_validate(settings)


def test_presidio_is_asked_for_by_its_extra(monkeypatch):
    def missing(name):
        raise presidio.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(presidio.importlib.metadata, "version", missing)
    with pytest.raises(ValueError, match=r"install headrace\[presidio\]"):
        PiiConfig.model_validate({"engine": "presidio"})


def test_all_national_numbers_can_be_loaded_and_refuse_nonsense():
    for name in national.STANDARD:
        assert not national.load(name).valid("0") or not national.STANDARD[name].module


@given(st.text(alphabet=st.sampled_from("a1 .@:-+/(){}é東٣\n🙂_%"), max_size=60))
def test_any_text_is_left_whole_where_nothing_is_found_and_a_second_run_finds_nothing(text):
    once = cleaned(text, phone_countries=["US", "DE"])
    assert cleaned(once, phone_countries=["US", "DE"]) == once
    if not found_in(text, phone_countries=["US", "DE"]):
        assert once == text


def test_null_and_empty_texts_pass():
    batch = texts("", "a@firma.de")
    batch = batch.set_column(batch.schema.get_field_index("text"), "text", pa.array([None, "a@firma.de"], pa.large_string()))
    assert run(Pii, batch).batch.column("text").to_pylist() == [None, "<EMAIL>"]

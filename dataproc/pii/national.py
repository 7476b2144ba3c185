"""Numbers that states give to people, each found by its form and checked by python-stdnum; others come in as plug-ins."""

from __future__ import annotations

import importlib
import importlib.util
import re
from dataclasses import dataclass
from typing import Any, Protocol

from dataproc.pii.reading import Find, joined_after, joined_before, named_before, text_before
from store.strict_yaml import unknown_key

_WINDOW = 12  # bytes before and after a run of digits that may belong to the number
# Digits of the scripts that the kernel knows, and typographic spaces and hyphens, as patterns have them: one character each.
_PLAIN = {zero + n: str(n) for zero in (0x660, 0x6F0, 0x966, 0x9E6, 0xFF10) for n in range(10)}
_PLAIN |= dict.fromkeys((0xA0, 0x2007, 0x2009, 0x202F), " ") | dict.fromkeys((0x2010, 0x2011, 0x2013), "-")


class NationalId(Protocol):
    """A plug-in, named `package.module:Class` in the pipeline file and made without arguments. pattern: a regular expression over ASCII
    of at most 24 characters, with six digits in a run of digits (spaces and marks between them) or four in a word of letters and digits;
    valid: whether what it matched is such a number. Digits and typographic marks of other scripts are handed to both as ASCII. May have
    `bare` and `words`, as StandardId."""

    pattern: str

    def valid(self, text: str) -> bool: ...


@dataclass(frozen=True)
class StandardId:
    """A number by its module in python-stdnum (none: its form is all there is to check). words: alternatives for the word before it;
    `bare`: a pattern that is only believed after such a word, because chance gives such digits too often. With words and without
    `bare` this holds for `pattern`."""

    module: str
    pattern: str
    bare: str = ""
    words: str = ""

    def valid(self, text: str) -> bool:
        return not self.module or bool(importlib.import_module(f"stdnum.{self.module}").is_valid(text))


_D9, _D10, _D11, _D12, _D13 = (rf"\d{{{n}}}" for n in (9, 10, 11, 12, 13))
# HMRC's manual NIM39110: letters and pairs that are not given out.
_NINO = r"(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]"
STANDARD = {
    "us_ssn": StandardId("us.ssn", r"\d{3}-\d{2}-\d{4}", r"\d{3} ?\d{2} ?\d{4}", r"ssn|social security(?: number)?|sozialversicherung"),
    "us_itin": StandardId("us.itin", r"9\d{2}-\d{2}-\d{4}", _D9, r"itin|taxpayer(?: identification)?(?: number)?"),
    "ca_sin": StandardId("ca.sin", r"\d{3}[ -]?\d{3}[ -]?\d{3}", words=r"sin|nas|social insurance(?: number)?"),
    "mx_curp": StandardId("mx.curp", r"[A-Z]{4}\d{6}[HM][A-Z]{5}[A-Z0-9]\d"),
    "br_cpf": StandardId("br.cpf", r"\d{3}\.\d{3}\.\d{3}-\d{2}", _D11, r"cpf"),
    "ar_dni": StandardId("ar.dni", r"\d{2}\.?\d{3}\.?\d{3}", words=r"dni|d\.n\.i"),
    "cl_rut": StandardId("cl.rut", r"\d{1,2}\.\d{3}\.\d{3}-[\dKk]", r"\d{7,8}-[\dKk]", r"rut|run"),
    "de_steuerid": StandardId("de.idnr", r"\d{2} \d{3} \d{3} \d{3}", _D11, r"steuer-?id\w*|steueridentifikationsnummer|idnr|tin|tax id"),
    "at_svnr": StandardId("at.vnr", r"\d{4} ?\d{6}", words=r"svnr|sv-?nr|sozialversicherungs(?:nummer|nr)?|versicherungsnummer"),
    "ch_ahv": StandardId("ch.ssn", r"756\.\d{4}\.\d{4}\.\d{2}", r"756\d{10}", r"ahv|avs|ahv-?n(?:umme)?r"),
    "fr_nir": StandardId("fr.nir", r"[12] ?\d{2} ?\d{2} ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}"),
    "be_nn": StandardId("be.nn", r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}", _D11, r"nn|rijksregister\w*|registre national"),
    "nl_bsn": StandardId("nl.bsn", r"\d{4}\.?\d{2}\.?\d{3}", words=r"bsn|burgerservice\w*|sofi\w*"),
    "es_dni": StandardId("es.dni", r"\d{8}-?[A-HJ-NP-TV-Z]"),
    "es_nie": StandardId("es.nie", r"[XYZ]-?\d{7}-?[A-HJ-NP-TV-Z]"),
    "pt_cc": StandardId("pt.cc", r"\d{8} ?\d ?[A-Z]{2}\d"),
    "it_codicefiscale": StandardId("it.codicefiscale", r"[A-Z]{6}\d{2}[ABCDEHLMPRST]\d{2}[A-Z]\d{3}[A-Z]"),
    "gb_nino": StandardId("", _NINO + r"(?: \d{2}){3} [A-D]", _NINO + r" ?\d{6} ?[A-D]", r"nino?|national insurance(?: number)?"),
    "gb_nhs": StandardId("gb.nhs", r"\d{3} ?\d{3} ?\d{4}", words=r"nhs"),
    "ie_pps": StandardId("ie.pps", r"\d{7}[A-W][A-IW]?", words=r"pps"),
    "dk_cpr": StandardId("dk.cpr", r"\d{6}-\d{4}", _D10, r"cpr"),
    "se_personnummer": StandardId("se.personnummer", r"(?:19|20)?\d{6}[-+]\d{4}", r"\d{10}|\d{12}", r"personnummer|personnr|pnr"),
    "no_fodselsnummer": StandardId("no.fodselsnummer", r"\d{6} \d{5}", _D11, r"fødselsnummer|fnr|personnummer"),
    "fi_hetu": StandardId("fi.hetu", r"\d{6}[-+A]\d{3}[0-9A-FHJ-NPR-Y]"),
    "pl_pesel": StandardId("pl.pesel", _D11, words=r"pesel"),
    "cz_rc": StandardId("cz.rc", r"\d{6}/\d{3,4}"),
    "ro_cnp": StandardId("ro.cnp", _D13),
    "bg_egn": StandardId("bg.egn", _D10, words=r"егн|egn"),
    "hr_oib": StandardId("hr.oib", _D11, words=r"oib"),
    "gr_amka": StandardId("gr.amka", _D11, words=r"αμκα|amka"),
    "lt_asmens": StandardId("lt.asmens", _D11, words=r"asmens kod\w+|a\.k"),
    "ee_ik": StandardId("ee.ik", _D11, words=r"isikukood|ik"),
    "tr_tckimlik": StandardId("tr.tckimlik", _D11, words=r"t\.?c\.?|kimlik|tckn"),
    "il_idnr": StandardId("il.idnr", _D9, words=r"ת\.?ז\.?|תעודת זהות|teudat zehut"),
    "za_idnr": StandardId("za.idnr", _D13, words=r"id|identity"),
    "in_aadhaar": StandardId("in_.aadhaar", r"[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}", words=r"aadhaa?r(?: card)?|uid(?:ai)?|आधार(?: संख्या)?"),
    "in_pan": StandardId("in_.pan", r"[A-Z]{3}[ABCFGHLJPTK][A-Z]\d{4}[A-Z]"),
    "cn_ric": StandardId("cn.ric", r"\d{17}[\dXx]"),
    "kr_rrn": StandardId("kr.rrn", r"\d{6}-[1-8]\d{6}", _D13, r"주민등록번호|주민번호|rrn"),
    "my_nric": StandardId("my.nric", r"\d{6}-\d{2}-\d{4}", _D12, r"nric|mykad|kad pengenalan"),
    "th_pin": StandardId("th.pin", r"\d-\d{4}-\d{5}-\d{2}-\d", _D13, r"บัตรประชาชน|เลขประจำตัวประชาชน"),
    "au_tfn": StandardId("au.tfn", r"\d{3} ?\d{3} ?\d{2,3}", words=r"tfn|tax file(?: number)?"),
}


def load(name: str) -> Any:
    """What finds the number of that name. Raises ValueError, one sentence, where there is none."""
    if ":" not in name:
        if name not in STANDARD:
            raise ValueError(unknown_key(name, list(STANDARD)).replace("key", "national id", 1).replace("valid keys", "national ids"))
        return STANDARD[name]
    module, _, attribute = name.partition(":")
    try:
        made = getattr(importlib.import_module(module), attribute)()
        re.compile(made.pattern)
    except (ImportError, AttributeError, TypeError, re.error) as error:
        raise ValueError(f"the national id {name} cannot be loaded: {error}") from error
    if not callable(getattr(made, "valid", None)):
        raise ValueError(f"the national id {name} has no method valid(text)")
    return made


def source_of(name: str) -> str | None:
    """The file that a plug-in's code is in; None for those that come with Headrace."""
    spec = importlib.util.find_spec(name.partition(":")[0]) if ":" in name else None
    return spec.origin if spec else None


class NationalIds:
    """All national numbers that are configured."""

    def __init__(self, names: tuple[str, ...]):
        self._kinds = []
        for kind in map(load, names):
            bare, words = getattr(kind, "bare", ""), getattr(kind, "words", "")
            patterns = [(_apart(kind.pattern), bool(words) and not bare)]
            if bare:
                patterns.append((_apart(bare), True))
            self._kinds.append((kind, patterns, named_before(words) if words else None))

    def finds(self, raw: bytes, start: int, end: int) -> list[Find]:
        """All numbers that touch a run of digits."""
        first, last = max(0, start - _WINDOW), min(len(raw), end + _WINDOW)
        while first < start and raw[first] & 0xC0 == 0x80:
            first += 1
        while last > end and last < len(raw) and raw[last] & 0xC0 == 0x80:
            last -= 1
        window = raw[first:last].decode()
        plain, found = window.translate(_PLAIN), []
        for kind, patterns, named in self._kinds:
            for pattern, needs_word in patterns:
                for match in pattern.finditer(plain):
                    begin = first + len(window[: match.start()].encode())
                    stop = begin + len(window[match.start() : match.end()].encode())
                    if begin >= end or stop <= start or joined_before(raw, begin) or joined_after(raw, stop):
                        continue
                    if needs_word and not named.search(text_before(raw, begin)):
                        continue
                    if kind.valid(match[0]):
                        found.append(Find("national_id", begin, stop))
        return found


def _apart(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![0-9A-Za-z_])(?:{pattern})(?![0-9A-Za-z_])", re.ASCII)

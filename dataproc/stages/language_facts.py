"""What is known of languages without looking at a text: the scripts they are written in, codes that mean the same, macrolanguages.

Scripts are those in which Unicode's CLDR (supplemental data, languageData) has a language in use today, primary or secondary. Codes are
those of fastText's and lingua's labels: ISO 639, but for the Wikipedia's own `als` (Alemannic), `eml` and `bh`.
"""

from __future__ import annotations

# A language in several lists is written in several scripts. Latin where a language is romanised by convenience alone is not counted.
_WRITTEN_IN: dict[tuple[str, ...], str] = {
    ("Latn",): """
        af als an ast az bar bcl br bs ca cbk ceb co crh cs cy da de diq dsb en eo es et eu ff fi fil fj fr frr fur fy ga gd gl gn
        gv ha haw hif hmn hr hsb ht hu ia id ie ig ilo io is it jbo jv kk ku kw la lad lb lg li lij lmo ln lt lv mg mi min ms mt
        mwl nah nap nb nds nl nn no ny nv oc om pam pap pfl pl pms pt qu rm rn ro rw sc scn sco se sg sh sk sl sm sn so sq sr ss
        st su sv sw szl tg tk tl tn to tpi tr ts tt ty ug uz ve vec vep vi vls vo wa war wo xh yo za zea zu eml gom azb aa ach ak
        bm ee ki ay bi ch kg kl lu lua na nr om pcm sat
    """,
    ("Cyrl",): """
        ab av az ba be bg bs bua bxr ce crh cv kk kv koi krc ku ky lez mhr mk mn mrj myv mdf os ro ru rue sah sh sr tg tk tt tyv
        udm ug uk uz xal azb cu inh kbd lbe ady
    """,
    ("Arab",): """
        ar ary arz az azb ckb fa glk ha kk kmr ks ku ky lrc ms mzn pa pnb prs ps sd skr so sw tg tk ug ur uz acm ajp apc ars aeb bal
    """,
    ("Hebr",): "he yi lad",
    ("Grek",): "el grc pnt",
    ("Armn",): "hy hyw ku",
    ("Geor",): "ka xmf ab os",
    ("Deva",): "anp awa bh bho brx doi dty gom hi hif hne kok ks mag mai mr ne new rn sa sat sd mwr bgc raj",
    ("Beng",): "as bn bpy mni sat",
    ("Guru",): "pa sd",
    ("Gujr",): "gu",
    ("Orya",): "or sat",
    ("Taml",): "ta",
    ("Telu",): "te",
    ("Knda",): "kn tcy gom",
    ("Mlym",): "ml gom",
    ("Sinh",): "si pi",
    ("Thai",): "th",
    ("Laoo",): "lo",
    ("Tibt",): "bo dz",
    ("Mymr",): "my mnw shn",
    ("Khmr",): "km",
    ("Ethi",): "am ti gez",
    ("Hani",): "zh wuu yue hak nan gan cdo lzh hsn",
    ("Hani", "Hrkt"): "ja",
    ("Hang", "Hani"): "ko",
    ("Thaa",): "dv",
    ("Mong",): "mn bxr bua",
    ("Syrc",): "arc syr aii",
    ("Cher",): "chr",
    ("Cans",): "iu cr",
    ("Tfng",): "zgh ber",
    ("Nkoo",): "nqo",
    ("Yiii",): "ii",
    ("Java",): "jv",
    ("Sund",): "su",
    ("Bali",): "ban",
    ("Olck",): "sat",
    ("Copt",): "cop",
    ("Goth",): "got",
    ("Vaii",): "vai",
}


def _scripts() -> dict[str, frozenset[str]]:
    made: dict[str, frozenset[str]] = {}
    for scripts, languages in _WRITTEN_IN.items():
        for language in languages.split():
            made[language] = made.get(language, frozenset()) | frozenset(scripts)
    return made


SCRIPTS_OF = _scripts()

# Codes for one language: the left one is asked for, the right one is what models answer. lid.176 learned `no` from the Wikipedia in
# Bokmål; the others are CLDR's aliases.
ALIASES = {"nb": "no", "iw": "he", "in": "id", "ji": "yi", "jw": "jv", "fil": "tl", "cmn": "zh", "mo": "ro"}

# Members of one macrolanguage of ISO 639-3. A text in one of them is not of two languages because some of its paragraphs look like another.
_MACROLANGUAGES = (
    "no nb nn", "sh sr hr bs", "ms id min zlm", "zh yue wuu", "ar arz ary", "az azb", "ku ckb kmr", "ne dty", "fa prs", "mn bxr", "gom kok",
    "lah pnb skr",
)  # fmt: skip
_FAMILY = {member: line.split()[0] for line in _MACROLANGUAGES for member in line.split()}


def canonical(code: str) -> str:
    """A code in lower case, with `_`, its first part by `ALIASES`."""
    base, mark, rest = code.strip().lower().replace("-", "_").partition("_")
    return ALIASES.get(base, base) + mark + rest


def base_of(code: str) -> str:
    """The first part of a canonical code: `en` of `en_gb`."""
    return canonical(code).partition("_")[0]


def macrolanguage(code: str) -> str:
    """One code for all members of a macrolanguage; the base code of any other language."""
    base = base_of(code)
    return _FAMILY.get(base, base)


def scripts_of(label: str) -> frozenset[str] | None:
    """The scripts that a model's label is written in: the one it names itself (`srp_Cyrl`), else those of the table; None: not known."""
    for part in label.replace("-", "_").split("_")[1:]:
        if len(part) == 4 and part.isalpha():
            return _JOINED.get(part.title(), frozenset({part.title()}))
    return SCRIPTS_OF.get(base_of(label)) or SCRIPTS_OF.get(label.lower().partition("_")[0])


# ISO 15924's codes for several scripts together.
_JOINED = {
    "Jpan": frozenset({"Hani", "Hrkt"}), "Kore": frozenset({"Hang", "Hani"}), "Hans": frozenset({"Hani"}), "Hant": frozenset({"Hani"}),
    "Hira": frozenset({"Hrkt"}), "Kana": frozenset({"Hrkt"}),
}  # fmt: skip

"""The characters, phrases and words that signals look for. What they mean is in docs/signals.md."""

from __future__ import annotations

# Rae et al. 2021 name no characters; these are the bullets in common use, the ones of datatrove, dolma and DCLM among them.
BULLETS = "•‣▶◀◦■□▪▫–-*●○"
ELLIPSIS = "…"
# Characters that end a sentence (Unicode property Sentence_Terminal, the ones in common use), and closing marks that may follow them.
TERMINALS = ".!?。！？．؟۔।॥…‽⁇⁈⁉"
CLOSERS = "\"'”’»）)]」』"
STRIPPED = ".,;:!?\"'()[]{}“”‘’«»"
SHORT_LINE_CHARACTERS = 30  # Penedo et al. 2024, section 3.5
LOREM_IPSUM = "lorem ipsum"
# Raffel et al. 2020, section 2.2, as in their code: lines with one of these go.
POLICY_PHRASES = ("javascript", "terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")

# For English the eight of Rae et al. 2021; for the others eight of the most frequent function words, chosen here in their spirit.
STOP_WORDS: dict[str, tuple[str, ...]] = {
    "en": ("the", "be", "to", "of", "and", "that", "have", "with"),
    "bg": ("и", "на", "в", "да", "се", "за", "от", "с"),
    "ca": ("de", "la", "que", "i", "el", "en", "un", "per"),
    "cs": ("a", "se", "v", "na", "je", "že", "s", "z"),
    "da": ("og", "i", "at", "det", "er", "en", "til", "af"),
    "de": ("der", "die", "und", "in", "den", "von", "zu", "mit"),
    "el": ("και", "το", "να", "του", "της", "με", "για", "που"),
    "es": ("de", "la", "que", "el", "en", "y", "los", "con"),
    "et": ("ja", "on", "ei", "et", "see", "kui", "oli", "ka"),
    "fi": ("ja", "on", "ei", "että", "se", "oli", "kun", "mutta"),
    "fr": ("de", "la", "le", "et", "les", "des", "en", "que"),
    "hi": ("के", "में", "की", "है", "और", "से", "का", "को"),
    "hr": ("i", "u", "je", "se", "na", "da", "za", "su"),
    "hu": ("a", "az", "és", "hogy", "nem", "is", "egy", "meg"),
    "id": ("yang", "dan", "di", "dengan", "untuk", "ini", "dari", "dalam"),
    "it": ("di", "che", "e", "la", "il", "un", "per", "in"),
    "lt": ("ir", "kad", "į", "su", "yra", "iš", "tai", "bet"),
    "lv": ("un", "ir", "ar", "no", "uz", "ka", "par", "kas"),
    "nl": ("de", "en", "van", "het", "een", "in", "is", "dat"),
    "no": ("og", "i", "det", "er", "på", "til", "som", "en"),
    "pl": ("i", "w", "na", "się", "z", "że", "do", "jest"),
    "pt": ("de", "que", "e", "a", "o", "do", "da", "em"),
    "ro": ("de", "și", "în", "la", "cu", "nu", "pe", "care"),
    "ru": ("и", "в", "не", "на", "что", "с", "по", "как"),
    "sk": ("a", "sa", "v", "na", "je", "že", "s", "z"),
    "sl": ("in", "je", "v", "na", "da", "se", "za", "so"),
    "sr": ("и", "у", "је", "се", "на", "да", "за", "су"),
    "sv": ("och", "i", "att", "det", "som", "en", "på", "är"),
    "tr": ("ve", "bir", "bu", "da", "de", "için", "ile", "çok"),
    "uk": ("і", "в", "не", "на", "що", "з", "до", "як"),
    "vi": ("và", "của", "là", "có", "cho", "không", "được", "các"),
}


def base_language(code: str) -> str:
    """`en` of `en_gb` or `en-GB`."""
    return code.lower().replace("-", "_").partition("_")[0]

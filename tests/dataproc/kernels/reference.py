"""The published definitions of docs/signals.md in plain Python, slow and readable: what the kernels must equal bit for bit."""

from __future__ import annotations

import math
import re
import statistics
import unicodedata
from collections import Counter

from dataproc.kernels import unicode as u
from dataproc.kernels.formulas import ENVIRONMENTS
from dataproc.kernels.lists import (
    BULLETS,
    CLOSERS,
    GENERATED_MARKS,
    LOREM_IPSUM,
    POLICY_PHRASES,
    SHORT_LINE_CHARACTERS,
    STARCODER_GENERATED_MARKS,
    STOP_WORDS,
    STRIPPED,
    TERMINALS,
)

_ASCII_LOWER = str.maketrans({chr(c): chr(c + 32) for c in range(65, 91)})


def split_words(text: str) -> list[str]:
    """Runs of characters that are not white space; a letter of a script without spaces begins a word, and marks and punctuation after
    it belong to that word, another letter or digit does not."""
    words: list[str] = []
    current = ""
    alone = False
    for character in text:
        bits = u.code_class(character)
        if bits & u.SPACE:
            if current:
                words.append(current)
            current, alone = "", False
            continue
        begins = bits & u.UNSPACED or (alone and bits & (u.ALPHA | u.DIGIT) and not bits & u.MARK)
        if begins and current:
            words.append(current)
            current, alone = "", False
        if bits & u.UNSPACED:
            alone = True
        current += character
    return words + ([current] if current else [])


def split_lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.split("\n")) if line]


def split_paragraphs(text: str) -> list[str]:
    return [p for p in map(str.strip, re.split(r"\n\s*\n", text)) if p]


def core(word: str) -> str:
    """Lower case, character by character, the marks around it left out."""
    return "".join(map(u.simple_lower, word)).strip(STRIPPED)


def copies(parts: list[str]) -> dict[str, int]:
    """Of lines or paragraphs: those that occurred earlier, and those that occur more than once, each by number and by characters."""
    seen: set[str] = set()
    counted = Counter(parts)
    duplicates = [part for part in parts if part in seen or seen.add(part)]
    copied = [part for part in parts if counted[part] > 1]
    return {"": len(parts), "duplicate": len(duplicates), "copied": len(copied)} | {
        "characters": sum(map(len, parts)),
        "duplicate_characters": sum(map(len, duplicates)),
        "copied_characters": sum(map(len, copied)),
    }


def compressed(data: bytes) -> int:
    """Greedy Lempel-Ziv as compression.py says it."""
    table: dict[int, int] = {}
    cost = i = 0
    while i + 4 <= len(data):
        slot = ((int.from_bytes(data[i : i + 4], "little") * 2654435761) & 0xFFFFFFFF) >> 19
        earlier, table[slot] = table.get(slot, -1), i
        if earlier >= 0 and data[earlier : earlier + 4] == data[i : i + 4]:
            size = 4
            while i + size < len(data) and data[i + size] == data[earlier + size]:
                size += 1
            i += size
            cost += 3
        else:
            i += 1
            cost += 1
    return cost + len(data) - i


def ngram_counts(words: list[str]) -> dict[str, int]:
    lengths = [len(word) for word in words]
    found: dict[str, int] = {}
    for n in range(2, 5):
        grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        counted = Counter(grams)
        most = max(counted.values(), default=0)
        first = next((gram for gram, count in counted.items() if count == most), ())
        longest = max((sum(map(len, gram)) for gram, count in counted.items() if count == most), default=0)
        found[f"TOP_{n}"] = longest * most if most > 1 else 0
        found[f"TOP_{n}_DOLMA"] = sum(map(len, first)) * most
        found[f"TOP_{n}_DATATROVE"] = len(" ".join(first)) * most
    for n in range(5, 11):
        grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        counted = Counter(grams)
        seen: set[tuple[str, ...]] = set()
        paper: set[int] = set()
        for i, gram in enumerate(grams):
            if gram in seen:
                paper.update(range(i, i + n))
            seen.add(gram)
        copied = {k for i, gram in enumerate(grams) if counted[gram] > 1 for k in range(i, i + n)}
        found[f"DUPLICATE_{n}"] = sum(lengths[k] for k in paper)
        found[f"DUPLICATE_{n}_DCLM"] = sum(lengths[k] for k in copied)
        found[f"DUPLICATE_{n}_DOLMA"] = sum(sum(map(len, gram)) for gram in grams if counted[gram] > 1)
        found[f"ALL_{n}_DOLMA"] = sum(sum(map(len, gram)) for gram in grams)
        visited: set[tuple[str, ...]] = set()
        i = repeated = 0
        while i < len(grams):
            if grams[i] in visited:
                repeated += sum(map(len, grams[i]))
                i += n
            else:
                visited.add(grams[i])
                i += 1
        found[f"DUPLICATE_{n}_DATATROVE"] = repeated
        if n == 5:
            run = best = 0
            for k in range(len(words)):
                # A word that begins a repeat right after another one goes on with its run: both are covered without a gap.
                run = run + 1 if k in paper else 0
                best = max(best, run)
            found["LONGEST_REPEAT"] = best
    return found


def count(text: str, language: str | None = None) -> dict[str, int]:
    """Every count of counts.py."""
    words, lines, paragraphs = split_words(text), split_lines(text), split_paragraphs(text)
    bits = [u.code_class(c) for c in text]
    lowered = text.translate(_ASCII_LOWER)
    plain = [word for word in words if any(unicodedata.category(c)[0] not in "PS" for c in word)]
    stop = STOP_WORDS["en"] if language is None else STOP_WORDS.get(language, ())
    found = dict.fromkeys((c.name for c in u_counts()), 0)
    found |= {
        "BYTES": len(text.encode()),
        "CHARACTERS": len(text),
        "SPACES": sum(c.isspace() for c in text),
        "NEWLINES": text.count("\n"),
        "ALPHAS": sum(c.isalpha() for c in text),
        "UPPERS": sum(c.isupper() for c in text),
        "DIGITS": sum(b & u.DIGIT > 0 for b in bits),
        "SYMBOLS": sum(b & u.SYMBOL > 0 for b in bits),
        "PUNCTUATIONS": sum(b & u.PUNCTUATION > 0 for b in bits),
        "WORDS": len(words),
        "WORD_CHARACTERS": sum(map(len, words)),
        "DISTINCT_WORDS": len(set(words)),
        "ALPHABETIC_WORDS": sum(any(map(str.isalpha, word)) for word in words),
        "NON_SYMBOL_WORDS": len(plain),
        "NON_SYMBOL_WORD_CHARACTERS": sum(map(len, plain)),
        "SYMBOL_WORDS": sum("#" in word or "…" in word for word in words),
        "TWICE_MEDIAN_WORD": int(2 * statistics.median(map(len, words))) if words else 0,
        "LONGEST_WORD": max(map(len, words), default=0),
        "STOP_WORDS": len({core(word) for word in words} & set(stop)),
        "STOP_WORD_OCCURRENCES": sum(core(word) in stop for word in words),
        "CASED_STOP_WORDS": len(set(words) & set(stop)),
        "CASED_STOP_WORD_OCCURRENCES": sum(word in stop for word in words),
        "HASHES": text.count("#"),
        "ELLIPSES": text.count("...") + text.count("…"),
        "CURLY_BRACKETS": text.count("{") + text.count("}"),
        "URLS": len(re.findall("https?://", lowered)) + sum(w.translate(_ASCII_LOWER).startswith("www.") and len(w) > 4 for w in words),
        "LOREM_IPSUM": lowered.count(LOREM_IPSUM),
        "POLICY_PHRASES": sum(lowered.count(phrase) for phrase in POLICY_PHRASES),
        "SENTENCES": len(re.findall(rf"[.!?](?=[{re.escape(CLOSERS)}]*(?:\s|$))|[。！？।؟۔]", text)),
        "BULLET_LINES": sum(line[0] in BULLETS for line in lines),
        "ASCII_BULLET_LINES": sum(line[0] in "-*" for line in lines),
        "ELLIPSIS_LINES": sum(line.endswith(("...", "…")) for line in lines),
        "ELLIPSIS_CHARACTER_LINES": sum(line.endswith("…") for line in lines),
        "TERMINAL_LINES": sum(line.rstrip(CLOSERS)[-1:] in set(TERMINALS) for line in lines),
        "SHORT_LINES": sum(len(line) <= SHORT_LINE_CHARACTERS for line in lines),
        "COMPRESSED": compressed(text.encode()),
    }
    for name, parts in (("LINE", lines), ("PARAGRAPH", paragraphs)):
        copied = copies(parts)
        found |= {f"{name}S": copied[""], f"{name}_CHARACTERS": copied["characters"]}
        found |= {f"DUPLICATE_{name}S": copied["duplicate"], f"DUPLICATE_{name}_CHARACTERS": copied["duplicate_characters"]}
        found |= {f"COPIED_{name}S": copied["copied"], f"COPIED_{name}_CHARACTERS": copied["copied_characters"]}
    scripts = Counter(u.code_script(c) for c, b in zip(text, bits, strict=True) if b & u.ALPHA)
    found |= {f"SCRIPT_{name.upper()}": scripts[number] for number, name in enumerate((*u.SCRIPTS, "other"))}
    return found | ngram_counts(words) | code_counts(text.encode()) | formula_counts(text.encode())


_HEX = rb"[0-9a-fA-F]"
_ITEM = rb"(?:\\x" + _HEX + rb"{2}|\\u" + _HEX + rb"{4}|(?<!\w)(?:0x)?" + _HEX + rb"{2}(?!\w))"
_ITEMS = re.compile(_ITEM + rb"(?:[\x00-\x20,]*" + _ITEM + rb"){7,}")
_RUN = re.compile(rb"[A-Za-z0-9+/=]+")
_COMMENT = re.compile(rb"""//|/\*|#(?!\w)|\*(?:[\x00-\x20/]|\Z)|--(?:[\x00-\x20-]|\Z)|%(?:[%\x00-\x20]|\Z)|<!-|\"{3}|'{3}|;""")


def _marks(data: bytes, lines: int, marks: tuple[str, ...]) -> int:
    ends = [m.start() for m in re.finditer(rb"\n", data)]
    first = min([10_000, len(data), *ends[lines - 1 : lines]])
    return sum(data[i : i + len(mark)].lower() == mark.encode() for i in range(first) for mark in marks)


def code_counts(data: bytes) -> dict[str, int]:
    lines = data.split(b"\n")
    lines = lines[:-1] if not lines[-1] else lines
    encoded = longest = piece = i = 0
    while i < len(data):
        if (found := _ITEMS.match(data, i)) is None and (found := _RUN.match(data, i)):
            run = found[0]
            mixed = re.search(rb"[a-z]", run) and re.search(rb"[A-Z]", run)
            if not (len(run) >= 64 and re.search(rb"\d", run) and (mixed or re.fullmatch(_HEX + rb"+", run))):
                piece = piece if run == b"+" else 0  # a + alone divides pieces no more than a blank does
                i = found.end()
                continue
        if found:
            piece += len(found[0])
            encoded += len(found[0])
            longest = max(longest, piece)
            i = found.end()
        else:
            piece = piece if data[i] in b" \t\r\n,\"'+\\" else 0
            i += 1
    return {
        "ALL_LINES": len(lines),
        "LONGEST_LINE": max((len(line.decode()) for line in lines), default=0),
        "COMMENT_LINES": sum(_COMMENT.match(line.lstrip(bytes(range(33)))) is not None for line in lines),
        "GENERATED_MARKS": _marks(data, 40, GENERATED_MARKS),
        "STARCODER_GENERATED_MARKS": _marks(data, 5, STARCODER_GENERATED_MARKS),
        "XML_DECLARATIONS": data[:100].count(b"<?xml version="),
        "ENCODED_BYTES": encoded,
        "LONGEST_ENCODED": longest,
    }


_FORMULAS = [
    re.compile(pattern, re.DOTALL)
    for pattern in (
        rb"\$\$(?!\$\$)(?:\\.|\$(?!\$)|[^\\$])+?\$\$",
        rb"\$(?![\x00-\x20$])(?:\\.|(?!\n\n)[^\\$])*(?<![\x00-\x20])\$(?!\d)",
        rb"\\\((?:\\[^()]|(?!\n\n)[^\\])*\\\)",
        rb"\\\[(?:\\[^\[\]]|[^\\])*\\\]",
        rb"\\begin\{((?:" + "|".join(ENVIRONMENTS).encode() + rb")\*?)\}(?:(?!\\(?:begin|end)\{\1\})(?:\\.|[^\\]))*\\end\{\1\}",
    )
]


def formulas(data: bytes) -> list[tuple[int, int]]:
    """(first byte, end) of every formula."""
    found, i = [], 0
    while i < len(data):
        opens = data[i] in b"$\\" and not (i and (data[i - 1] in b"\\" or data[i - 1 : i + 1] == b"$$"))
        match = next(filter(None, (p.match(data, i) for p in _FORMULAS)), None) if opens else None
        if match:
            found.append(match.span())
        i = match.end() if match else i + 1
    return found


def formula_counts(data: bytes) -> dict[str, int]:
    spans = formulas(data)
    return {"FORMULAS": len(spans), "FORMULA_CHARACTERS": sum(len(data[a:b].decode()) for a, b in spans)}


def u_counts():
    from dataproc.kernels.counts import Count

    return Count


def entropy(text: str) -> float:
    """Bits per word, rounded to 1e-6."""
    words = split_words(text)
    if not words:
        return 0.0
    total = sum((c * math.log2(c) for c in Counter(words).values()), 0.0)
    return math.floor((math.log2(len(words)) - total / len(words)) * 1e6 + 0.5) / 1e6

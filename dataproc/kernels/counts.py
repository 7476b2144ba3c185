"""The numbers that the signal kernel counts in a document: one int64 each, by position. Signals are ratios of them (signals.py)."""

from __future__ import annotations

from enum import IntEnum

from dataproc.kernels.unicode import SCRIPTS

_NAMES = (
    "BYTES", "CHARACTERS", "SPACES", "NEWLINES", "ALPHAS", "UPPERS", "DIGITS", "SYMBOLS", "PUNCTUATIONS", "WORDS",
    "WORD_CHARACTERS", "DISTINCT_WORDS", "ALPHABETIC_WORDS", "SYMBOL_WORDS", "NON_SYMBOL_WORDS", "NON_SYMBOL_WORD_CHARACTERS",
    "TWICE_MEDIAN_WORD", "LONGEST_WORD", "STOP_WORDS", "STOP_WORD_OCCURRENCES", "CASED_STOP_WORDS", "CASED_STOP_WORD_OCCURRENCES",
    "HASHES", "ELLIPSES", "CURLY_BRACKETS", "URLS", "LOREM_IPSUM", "POLICY_PHRASES", "SENTENCES", "LINES", "LINE_CHARACTERS",
    "BULLET_LINES", "ASCII_BULLET_LINES", "ELLIPSIS_LINES", "ELLIPSIS_CHARACTER_LINES", "TERMINAL_LINES", "SHORT_LINES",
    "DUPLICATE_LINES", "DUPLICATE_LINE_CHARACTERS", "COPIED_LINES", "COPIED_LINE_CHARACTERS", "PARAGRAPHS",
    "PARAGRAPH_CHARACTERS", "DUPLICATE_PARAGRAPHS", "DUPLICATE_PARAGRAPH_CHARACTERS", "COPIED_PARAGRAPHS",
    "COPIED_PARAGRAPH_CHARACTERS", "COMPRESSED", "LONGEST_REPEAT",
    # Of n-grams, for n = 2, 3, 4: characters in all occurrences of the top one, by the paper, dolma and datatrove.
    *(f"TOP_{n}" for n in (2, 3, 4)), *(f"TOP_{n}_DOLMA" for n in (2, 3, 4)), *(f"TOP_{n}_DATATROVE" for n in (2, 3, 4)),
    # For n = 5 to 10: characters in n-grams that occur more than once, by the paper, DCLM, datatrove and dolma; of all n-grams (dolma).
    *(f"DUPLICATE_{n}" for n in range(5, 11)), *(f"DUPLICATE_{n}_DCLM" for n in range(5, 11)),
    *(f"DUPLICATE_{n}_DATATROVE" for n in range(5, 11)), *(f"DUPLICATE_{n}_DOLMA" for n in range(5, 11)),
    *(f"ALL_{n}_DOLMA" for n in range(5, 11)),
    *(f"SCRIPT_{name.upper()}" for name in (*SCRIPTS, "other")),
    # Of source code and of formulas (code.py, formulas.py).
    "ALL_LINES", "LONGEST_LINE", "COMMENT_LINES", "GENERATED_MARKS", "STARCODER_GENERATED_MARKS", "XML_DECLARATIONS", "ENCODED_BYTES",
    "LONGEST_ENCODED", "FORMULAS", "FORMULA_CHARACTERS",
)  # fmt: skip
Count = IntEnum("Count", _NAMES, start=0)
COUNTS = len(Count)

# What a pass over a document counts beside the rest, as flags; what is not wanted stays 0 and costs nothing.
DISTINCT = 1  # words that differ: DISTINCT_WORDS, the entropy
LINE_COPIES = 2  # lines that occur before: DUPLICATE_LINE* and COPIED_LINE*
STOPS = 4  # stop words: *STOP_WORD*
COMPRESSION = 8  # COMPRESSED
PHRASES = 16  # LOREM_IPSUM, POLICY_PHRASES
REPEATS = 32  # n-grams: TOP_*, DUPLICATE_n*, ALL_n*, LONGEST_REPEAT; they are made of the numbers of words, so with DISTINCT_WORDS
SHAPES = 64  # what each word is made of and how long it is: *_WORDS of a kind, LONGEST_WORD, TWICE_MEDIAN_WORD
PARAGRAPH_COPIES = 128  # the same of paragraphs
SENTENCES = 256
CODE = 512  # lines as they are written, comments, marks of generated files, encoded data: ALL_LINES to LONGEST_ENCODED
FORMULA = 1024  # FORMULAS, FORMULA_CHARACTERS
EVERYTHING = DISTINCT | LINE_COPIES | PARAGRAPH_COPIES | SENTENCES | STOPS | COMPRESSION | PHRASES | REPEATS | SHAPES | CODE | FORMULA

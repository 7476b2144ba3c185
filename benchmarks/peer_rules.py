"""One peer's rules or signatures over the same documents; run by the Python of an environment that holds that peer alone.

usage: python peer_rules.py PEER DOCUMENTS.json
Prints one JSON object a line: what, seconds of processor time, documents kept, documents it failed on. Imports nothing of this project.
"""

import contextlib
import json
import re
import sys
import time


def timed(what, function, items):
    """Runs a function over all items, the first once before the clock runs. A document that a peer fails on is counted."""
    with contextlib.suppress(Exception):
        function(items[0])
    start, kept, failed = time.process_time(), 0, 0
    for item in items:
        try:
            kept += function(item) is True
        except Exception:
            failed += 1
    print(json.dumps({"what": what, "seconds": time.process_time() - start, "kept": kept, "failed": failed}), flush=True)


def datatrove(texts):
    from datatrove.data import Document
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature
    from datatrove.pipeline.filters.c4_filters import C4QualityFilter
    from datatrove.pipeline.filters.fineweb_quality_filter import FineWebQualityFilter
    from datatrove.pipeline.filters.gopher_quality_filter import GopherQualityFilter
    from datatrove.pipeline.filters.gopher_repetition_filter import GopherRepetitionFilter
    from datatrove.utils.hashing import HashConfig
    from datatrove.utils.logging import logger

    logger.remove()
    filters = {
        "gopher_quality": GopherQualityFilter(),
        "gopher_repetition": GopherRepetitionFilter(),
        "c4": C4QualityFilter(filter_no_terminal_punct=False),
        "fineweb": FineWebQualityFilter(),
    }
    for name, step in filters.items():
        timed(name, step.filter, [Document(text=text, id=str(i)) for i, text in enumerate(texts)])
    sketch = MinhashDedupSignature("signatures", MinhashConfig(hash_config=HashConfig(hash_fc="xxhash", precision=64)))
    timed("minhash", lambda text: sketch.get_signature(sketch.get_shingles(text)), texts)


def dolma(texts):
    import dolma.taggers  # noqa: F401  (registers the taggers)
    from dolma.core.data_types import Document
    from dolma.core.registry import TaggerRegistry

    for name, tagger in (("gopher_quality and gopher_repetition", "gopher_v2"), ("c4", "c4_v2")):
        documents = [Document(source="x", id=str(i), text=text) for i, text in enumerate(texts)]
        timed(name, TaggerRegistry.get(tagger)().predict, documents)


def nemo(texts):
    from nemo_curator.stages.text.filters.heuristic import string as s
    from nemo_curator.stages.text.filters.heuristic.repetition import repetition as r

    quality = [s.WordCountFilter(), s.MeanWordLengthFilter(), s.SymbolsToWordsFilter(), s.BulletsFilter(), s.EllipsisFilter()]
    quality += [s.WordsWithoutAlphabetsFilter(), s.CommonEnglishWordsFilter()]
    repetition = [r.RepeatedLinesFilter(), r.RepeatedParagraphsFilter(), r.RepeatedLinesByCharFilter(), r.RepeatedParagraphsByCharFilter()]
    repetition += [r.RepeatingTopNGramsFilter(n=n) for n in (2, 3, 4)] + [r.RepeatingDuplicateNGramsFilter(n=n) for n in range(5, 11)]
    for name, rules in (("gopher_quality", quality), ("gopher_repetition", repetition)):
        timed(name, lambda text, rules=rules: all([rule.keep_document(rule.score_document(text)) for rule in rules]), texts)


def sketches(texts):
    import xxhash
    from datasketch import MinHash
    from rensa import RMinHash

    def shingles(text):
        words = re.findall(r"\w+", text.lower())
        return [" ".join(words[i : i + 5]) for i in range(max(1, len(words) - 4))]

    timed(
        "minhash datasketch",
        lambda text: MinHash(112, hashfunc=xxhash.xxh32_intdigest).update_batch([s.encode() for s in shingles(text)]),
        texts,
    )
    timed("minhash rensa", lambda text: RMinHash(num_perm=112, seed=1).update(shingles(text)), texts)


if __name__ == "__main__":
    peer, path = sys.argv[1:]
    with open(path) as stream:
        documents = json.load(stream)
    {"datatrove": datatrove, "dolma": dolma, "nemo": nemo, "sketches": sketches}[peer](documents)

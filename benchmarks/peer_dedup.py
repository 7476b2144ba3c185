"""One peer's near deduplication of a JSONL file, 14 bands of 8 rows over word 5-grams; run by the Python of an environment of its own.

usage: python peer_dedup.py PEER CORPUS.jsonl FOLDER
Prints one JSON object: seconds of processor time from reading to writing (processes that it started included), and documents kept. Imports
nothing of this project.
"""

import glob
import gzip
import json
import os
import re
import resource
import sys
import time


def datatrove(corpus, folder):
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupBuckets
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter
    from datatrove.utils.hashing import HashConfig
    from datatrove.utils.logging import logger

    logger.remove()
    config = MinhashConfig(hash_config=HashConfig(hash_fc="xxhash", precision=64))
    reader = JsonlReader(os.path.dirname(corpus), glob_pattern=os.path.basename(corpus))
    for steps in (
        [reader, MinhashDedupSignature(f"{folder}/signatures", config)],
        [MinhashDedupBuckets(f"{folder}/signatures", f"{folder}/buckets", config=config)],
        [MinhashDedupCluster(f"{folder}/buckets", f"{folder}/remove", config=config)],
        [reader, MinhashDedupFilter(f"{folder}/remove"), JsonlWriter(f"{folder}/kept")],
    ):
        tasks = config.num_buckets if isinstance(steps[0], MinhashDedupBuckets) else 1
        LocalPipelineExecutor(steps, tasks=tasks, workers=1, logging_dir=f"{folder}/logs{steps[-1].name}").run()
    return sum(1 for path in glob.glob(f"{folder}/kept/*.gz") for _ in gzip.open(path))


def sketches(corpus, folder):
    """MinHashLSH as its documentation shows it: a document stays when none before it is near."""
    import xxhash
    from datasketch import MinHash, MinHashLSH

    index, kept = MinHashLSH(params=(14, 8), num_perm=112), 0
    with open(corpus) as stream, open(f"{folder}/kept.jsonl", "w") as out:
        for number, line in enumerate(stream):
            words = re.findall(r"\w+", json.loads(line)["text"].lower())
            shingles = {" ".join(words[i : i + 5]).encode() for i in range(max(1, len(words) - 4))}
            sketch = MinHash(112, hashfunc=xxhash.xxh32_intdigest)
            sketch.update_batch(list(shingles))
            if not index.query(sketch):
                out.write(line)
                kept += 1
            index.insert(number, sketch)
    return kept


def textdedup(corpus, folder):
    from text_dedup.minhash import main

    arguments = ["--path", "json", "--data_files", corpus, "--split", "train", "--column", "text", "--output", f"{folder}/kept"]
    arguments += ["--cache_dir", f"{folder}/cache", "--num_perm", "112", "--b", "14", "--r", "8", "--ngram", "5", "--min_length", "0"]
    main([*arguments, "--hash_func", "xxh3", "--num_proc", "1", "--batch_size", "10000"], standalone_mode=False)
    import datasets

    return len(datasets.load_from_disk(f"{folder}/kept"))


if __name__ == "__main__":
    peer, path, scratch = sys.argv[1:]
    run = {"datatrove": datatrove, "sketches": sketches, "textdedup": textdedup}[peer]
    start = time.perf_counter()
    count = run(path, scratch)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor = sum(one.ru_utime + one.ru_stime for one in used)
    print(json.dumps({"seconds": processor, "wall": time.perf_counter() - start, "kept": count}))

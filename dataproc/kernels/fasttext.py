"""fastText's supervised model: a text as features, training, and scoring. Joulin et al. 2016 (arXiv 1607.01759), Bojanowski et al. 2016
(arXiv 1607.04606) for character n-grams.

A text is cut at ASCII white space and NUL. Its features are the rows of an input matrix: one for each word of the vocabulary (rows 0 to
words - 1), one for each run of 2 to `word_ngrams` words and for each run of `min_n` to `max_n` characters of a word, hashed into `bucket`
rows after those. fastText ends every line with the word `</s>`, and so do we. Words that read `</s>` or begin like a label
(`__label__`) are passed over: a document cannot end its own line or name its own label.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from dataproc.kernels.compiling import kernel
from dataproc.kernels.primitives import hash_span, mix, number_of

# keys: (2**bits,) uint64 hashes of words; ids: (2**bits,) int32, the row of each, -1 in a free slot. end_hash, end_id: of `</s>`.
Vocabulary = namedtuple("Vocabulary", "keys ids bits words word_ngrams bucket min_n max_n end_hash end_id")
# Where a walk over a text stands: the next byte, the end of the text, tokens so far, the word whose character n-grams are being written
# (first byte, bytes, next place in it), and whether all is done.
AT, END, TOKENS, WORD, WORD_BYTES, PLACE, DONE = range(7)
STATE = 7
_OFFSET, _PRIME = np.uint32(2166136261), np.uint32(16777619)  # of 32-bit FNV-1a
_NGRAM = np.uint64(116049371)  # fastText's multiplier for word n-grams
_SIGN = np.uint32(0xFFFFFF00)
_M = np.uint64(0x9E3779B97F4A7C15)
_LABEL = np.frombuffer(b"__label__", np.uint8)


@kernel(inline=True)
def _fnv(h, byte):
    """fastText takes bytes as signed: those above 127 also set the upper bits."""
    b = np.uint32(byte)
    return np.uint32((h ^ (b | _SIGN if b > 127 else b)) * _PRIME)


@kernel(inline=True)
def _signed(h):
    """A 32-bit hash as fastText adds it to a 64-bit one: as a signed number."""
    return np.uint64(np.int64(np.int32(h)))


@kernel(inline=True)
def _separates(b):
    return b == 32 or 9 <= b <= 13 or b == 0


@kernel(inline=True)
def passed_over(data, start, end):
    """Whether a word is one that stands for something else in fastText's files."""
    if end - start == 4:
        return data[start] == 60 and data[start + 1] == 47 and data[start + 2] == 115 and data[start + 3] == 62
    if end - start < 9 or data[start] != 95:
        return False
    same = True
    for k in range(9):
        same &= data[start + k] == _LABEL[k]
    return same


@kernel
def next_word(data, i, end):
    """(first byte, byte after, FNV hash) of the next word from byte i on; first byte = `end` when there is none."""
    while True:
        while i < end and _separates(data[i]):
            i += 1
        start = i
        h = _OFFSET
        while i < end and not _separates(data[i]):
            h = _fnv(h, data[i])
            i += 1
        if start == end or not passed_over(data, start, i):
            return start, i, h


@kernel(inline=True)
def _row_of(v, key):
    """The row of a word in the vocabulary, -1 for none."""
    mask = (np.int64(1) << v.bits) - 1
    slot = np.int64(key >> np.uint64(64 - v.bits))
    while v.ids[slot] >= 0:
        if v.keys[slot] == key:
            return np.int64(v.ids[slot])
        slot = (slot + 1) & mask
    return np.int64(-1)


@kernel
def begin(state, chains, start, end):
    """Puts a walk at the start of a text."""
    state[:] = 0
    state[AT], state[END] = start, end
    chains[:] = 0


@kernel(inline=True)
def _byte(data, start, size, place):
    """Byte `place` of a word between its marks `<` and `>`."""
    return 60 if place == 0 else 62 if place == size + 1 else np.int64(data[start + place - 1])


@kernel
def _characters(data, v, state, out, made):
    """Writes the character n-grams of the word in the state as far as there is room. Returns how many features there are now."""
    start, size = state[WORD], state[WORD_BYTES]
    marked = size + 2
    while state[PLACE] < marked and made + v.max_n <= len(out):
        first = state[PLACE]
        state[PLACE] += 1
        if _byte(data, start, size, first) & 0xC0 == 0x80:
            continue
        h = _OFFSET
        place = first
        n = 1
        while place < marked and n <= v.max_n:
            h = _fnv(h, _byte(data, start, size, place))
            place += 1
            while place < marked and _byte(data, start, size, place) & 0xC0 == 0x80:
                h = _fnv(h, _byte(data, start, size, place))
                place += 1
            if n >= v.min_n and not (n == 1 and (first == 0 or place == marked)):
                out[made] = v.words + np.int64(np.uint64(h) % np.uint64(v.bucket))
                made += 1
            n += 1
    return made


@kernel
def features(data, v, state, chains, out):
    """Writes the next features of a text to out (int32) until it is full or the text has ended (state[DONE]). Returns how many.

    chains: (word_ngrams,) uint64: the hashes of the runs of words that end at the last one, by their first word.
    """
    made = np.int64(0)
    while not state[DONE]:
        if state[PLACE] < state[WORD_BYTES] + 2 and state[WORD_BYTES] > 0:
            made = _characters(data, v, state, out, made)
            if state[PLACE] < state[WORD_BYTES] + 2:
                break
        if made + v.word_ngrams > len(out):
            break
        start, end, h = next_word(data, state[AT], state[END])
        state[AT] = end
        if start == end:
            state[DONE] = 1
            h, row = np.uint32(v.end_hash), np.int64(v.end_id)
        else:
            row = _row_of(v, hash_span(data, start, end))
            if v.max_n > 0:
                state[WORD], state[WORD_BYTES], state[PLACE] = start, end - start, 0
        if row >= 0:
            out[made] = row
            made += 1
        token = state[TOKENS]
        for back in range(1, min(v.word_ngrams, token + 1)):
            place = (token - back) % v.word_ngrams
            chains[place] = chains[place] * _NGRAM + _signed(h)
            out[made] = v.words + np.int64(chains[place] % np.uint64(v.bucket))
            made += 1
        chains[token % v.word_ngrams] = _signed(h)
        state[TOKENS] += 1
    return made


@kernel(inline=True)
def _kept(v, rows, out, made):
    """Of a pruned model: the rows of those features that it has kept, in place. rows: (bucket,) int32, -1 for a feature that is gone."""
    count = 0
    for k in range(made):
        row = np.int64(out[k])
        if row >= v.words:
            row = v.words + np.int64(rows[row - v.words]) if rows[row - v.words] >= 0 else np.int64(-1)
        if row >= 0:
            out[count] = row
            count += 1
    return count


@kernel
def sum_weights(data, offsets, v, rows, weights, state, chains, out, sums, counts):
    """sums (texts, columns) float64 and counts (texts,) int64: of the weights of each text's features. rows: of a pruned model, else
    empty; weights: (features, columns) float32."""
    for text in range(len(offsets) - 1):
        begin(state, chains, offsets[text], offsets[text + 1])
        total = np.int64(0)
        while not state[DONE]:
            made = features(data, v, state, chains, out)
            if len(rows):
                made = _kept(v, rows, out, made)
            total += made
            for k in range(made):
                row = weights[out[k]]
                for column in range(len(row)):
                    sums[text, column] += row[column]
        counts[text] = total


@kernel
def count_words(data, offsets, first, keys, table, bits, base, count, starts, ends, counts, heads):
    """Counts the words of the texts from text `first` on. Of each distinct word: its hash in keys, its bytes in starts and ends, how often
    it stands in counts; heads[0]: tokens so far, the ends of lines too. Returns (next text, bits, base, distinct words): the next text is
    the first that might not fit."""
    for row in range(first, len(offsets) - 1):
        if count + (offsets[row + 1] - offsets[row]) // 2 + 2 > len(keys):
            return row, bits, base, count
        start, end, _ = next_word(data, offsets[row], offsets[row + 1])
        while start < end:
            number, bits, base = number_of(hash_span(data, start, end), keys, table, bits, base, count)
            if number == count:
                starts[number], ends[number], counts[number] = start, end, 0
                count += 1
            counts[number] += 1
            heads[0] += 1
            start, end, _ = next_word(data, end, offsets[row + 1])
        heads[0] += 1
    return len(offsets) - 1, bits, base, count


@kernel
def enter_words(hashes, keys, ids, bits):
    """Fills the table of a Vocabulary. hashes: (words,) uint64; ids are -1 at first."""
    mask = (np.int64(1) << bits) - 1
    for row in range(len(hashes)):
        slot = np.int64(hashes[row] >> np.uint64(64 - bits))
        while ids[slot] >= 0:
            slot = (slot + 1) & mask
        keys[slot] = hashes[row]
        ids[slot] = row


@kernel
def hash_words(data, offsets, hashes):
    """hashes[k]: of the word data[offsets[k]:offsets[k + 1]], as `features` looks it up."""
    for k in range(len(hashes)):
        hashes[k] = hash_span(data, offsets[k], offsets[k + 1])


@kernel
def draw_rows(seed, rows):
    """Fills rows (features, dim) with numbers from -1/dim to 1/dim that depend on seed and place alone."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            h = mix((np.uint64(seed) * _M ^ mix(np.uint64(i) * _M ^ np.uint64(j))) * _M)
            rows[i, j] = (2.0 * (np.float64(h >> np.uint64(11)) / 9007199254740992.0) - 1.0) / rows.shape[1]


@kernel
def _forward(inputs, outputs, found, made, hidden, shares):
    """hidden: the mean of the features' rows; shares: softmax of the labels."""
    hidden[:] = 0
    for k in range(made):
        for j in range(len(hidden)):
            hidden[j] += inputs[found[k], j]
    for j in range(len(hidden)):
        hidden[j] /= np.float32(made)
    most = np.float32(-np.inf)
    for label in range(len(shares)):
        total = np.float32(0)
        for j in range(len(hidden)):
            total += outputs[label, j] * hidden[j]
        shares[label] = total
        most = max(most, total)
    whole = np.float32(0)
    for label in range(len(shares)):
        shares[label] = np.float32(np.exp(np.float64(shares[label] - most)))
        whole += shares[label]
    for label in range(len(shares)):
        shares[label] /= whole


@kernel
def train_epoch(
    data, offsets, most_bytes, labels, label_weights, order, v, inputs, outputs, touched, state, chains, found, hidden, gradient, shares,
    rate, done, total,
):  # fmt: skip
    """One pass over the texts in the given order: stochastic gradient descent on softmax cross entropy, one text a step.

    inputs (features, dim), outputs (labels, dim), float32, are changed; touched (features,) is set for rows that were. The rate falls
    linearly from `rate` at 0 tokens to 0 at `total`. most_bytes: of a text that are looked at. Returns (tokens done, sum of losses).
    """
    loss = 0.0
    for row in order:
        begin(state, chains, offsets[row], min(offsets[row + 1], offsets[row] + most_bytes))
        made = features(data, v, state, chains, found)
        done += state[TOKENS]
        if made == 0:
            continue
        _forward(inputs, outputs, found, made, hidden, shares)
        loss -= np.log(max(np.float64(shares[labels[row]]), 1e-30))
        step = np.float32(rate * (1.0 - done / total) * label_weights[labels[row]])
        gradient[:] = 0
        for label in range(len(shares)):
            alpha = step * (np.float32(label == labels[row]) - shares[label])
            for j in range(len(hidden)):
                gradient[j] += alpha * outputs[label, j]
                outputs[label, j] += alpha * hidden[j]
        for j in range(len(hidden)):
            gradient[j] /= np.float32(made)
        for k in range(made):
            touched[found[k]] = True
            for j in range(len(hidden)):
                inputs[found[k], j] += gradient[j]
    return done, loss


@kernel
def collapse(inputs, outputs, weights):
    """weights[feature, label]: inputs[feature] . outputs[label], summed in order and in double precision, so that they are the same on
    every machine."""
    for i in range(inputs.shape[0]):
        for label in range(outputs.shape[0]):
            total = 0.0
            for j in range(inputs.shape[1]):
                total += np.float64(inputs[i, j]) * np.float64(outputs[label, j])
            weights[i, label] = total

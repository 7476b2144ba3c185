"""Loops of near deduplication: keys of bands, pairs of a bucket, similarities, spanning forests and the ways in them."""

from __future__ import annotations

import numpy as np

from dataproc.kernels.compiling import kernel
from dataproc.kernels.primitives import mix

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_1 = np.uint64(1)


@kernel
def band_keys(signatures, bands, rows, keys):
    """Fills keys (documents, bands + 1) uint64: a hash of each band's number and its `rows` values, and last one of the whole signature.
    signatures: (documents, permutations)."""
    for k in range(len(signatures)):
        for band in range(bands):
            h = mix((np.uint64(band) + _1) * _MULTIPLIER)
            for row in range(band * rows, (band + 1) * rows):
                h = mix((h ^ np.uint64(signatures[k, row])) * _MULTIPLIER)
            keys[k, band] = h
        h = mix((np.uint64(bands) + _1) * _MULTIPLIER)
        for row in range(signatures.shape[1]):
            h = mix((h ^ np.uint64(signatures[k, row])) * _MULTIPLIER)
        keys[k, bands] = h


@kernel
def count_pairs(keys, all_pairs, star):
    """How many pairs `bucket_pairs` makes of these keys, sorted ones."""
    total = np.int64(0)
    first = np.int64(0)
    while first < len(keys):
        after = first + 1
        while after < len(keys) and keys[after] == keys[first]:
            after += 1
        size = after - first
        total += size * (size - 1) // 2 if size <= all_pairs else size - 1 if size > star else 2 * size - 3
        first = after
    return total


@kernel
def bucket_pairs(keys, nodes, all_pairs, star, pairs, sizes):
    """Candidates: of a bucket (equal keys; keys are sorted) of up to `all_pairs` members every pair; of a larger one each member with the
    first and with the one before it; of one with more than `star` each with the first. pairs: (pairs, 2) uint64, the lower node first.
    sizes: (64,) int64, buckets of two members or more by the binary logarithm of their size. Returns how many are giant."""
    made = np.int64(0)
    giants = np.int64(0)
    first = np.int64(0)
    while first < len(keys):
        after = first + 1
        while after < len(keys) and keys[after] == keys[first]:
            after += 1
        size = after - first
        if size > 1:
            power = 0
            while size >> (power + 1):
                power += 1
            sizes[power] += 1
        giants += size > star
        for k in range(first + 1, after):
            # Those before it that it is paired with: all, or the first and the last.
            step = 1 if size <= all_pairs else size if size > star or k == first + 1 else k - 1 - first
            for other in range(first, k, step):
                pairs[made, 0] = min(nodes[k], nodes[other])
                pairs[made, 1] = max(nodes[k], nodes[other])
                made += 1
        first = after
    return giants


@kernel
def cross_pairs(keys, nodes, other_keys, others, most, pairs):
    """Candidates between two sets of members, both by key: each of the ones with the first `most` of the others in its bucket. pairs:
    (pairs, 2) uint64, filled as far as it goes. Returns how many there are."""
    made = np.int64(0)
    first = np.int64(0)
    for k in range(len(keys)):
        while first < len(other_keys) and other_keys[first] < keys[k]:
            first += 1
        other = first
        while other < len(other_keys) and other < first + most and other_keys[other] == keys[k]:
            if made < len(pairs):
                pairs[made, 0] = min(nodes[k], others[other])
                pairs[made, 1] = max(nodes[k], others[other])
            made += 1
            other += 1
    return made


@kernel
def jaccard(values, starts, a, b, similarity):
    """similarity[k]: of the sets a[k] and b[k]. Set s is values[starts[s]:starts[s + 1]], ascending, each value once."""
    for k in range(len(a)):
        i, j = starts[a[k]], starts[b[k]]
        end_i, end_j = starts[a[k] + 1], starts[b[k] + 1]
        total = (end_i - i) + (end_j - j)
        common = 0
        while i < end_i and j < end_j:
            one, other = values[i], values[j]
            common += one == other
            i += one <= other
            j += other <= one
        similarity[k] = common / (total - common) if total > common else 0.0


@kernel
def equal_values(one, rows_of_one, other, rows_of_other, equal):
    """equal[k]: in how many places row rows_of_one[k] of a signature matrix equals row rows_of_other[k] of another."""
    for k in range(len(rows_of_one)):
        i, j = rows_of_one[k], rows_of_other[k]
        total = 0
        for p in range(one.shape[1]):
            total += one[i, p] == other[j, p]
        equal[k] = total


@kernel
def _root(parents, node):
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@kernel
def spanning_forest(a, b, parents, kept):
    """Joins the nodes a[k], b[k] in order; kept[k]: whether they were apart before. parents: (nodes,) int64, each its own at first; at the
    end the lowest node of its tree."""
    for k in range(len(a)):
        one, other = _root(parents, a[k]), _root(parents, b[k])
        kept[k] = one != other
        if one < other:
            parents[other] = one
        else:
            parents[one] = other
    for node in range(len(parents)):
        parents[node] = _root(parents, node)


@kernel
def ways(a, b, score, starts, neighbours, queue, winners, via, similarity):
    """From each node of a forest the next one on its way to its tree's winner, in via, and how similar the two are. Edges: a[k], b[k],
    score[k]; starts: (nodes + 1,) int64 and neighbours: (2 * edges,) int64 are filled with each node's edges, queue (nodes,) is scratch.
    A winner's own via is itself."""
    for k in range(len(a)):
        starts[a[k] + 1] += 1
        starts[b[k] + 1] += 1
    for node in range(1, len(starts)):
        starts[node] += starts[node - 1]
    for k in range(len(a)):  # filled from the end of each node's part; moved back below
        for node in (a[k], b[k]):
            starts[node + 1] -= 1
            neighbours[starts[node + 1]] = k
    # Now starts[node + 1] is where the part of `node` begins.
    via[:] = -1
    filled = 0
    for winner in winners:
        via[winner] = winner
        similarity[winner] = 1.0
        queue[filled] = winner
        filled += 1
    done = 0
    while done < filled:
        node = queue[done]
        done += 1
        end = starts[node + 2] if node + 2 < len(starts) else 2 * len(a)
        for place in range(starts[node + 1], end):
            k = neighbours[place]
            other = b[k] if a[k] == node else a[k]
            if via[other] < 0:
                via[other] = node
                similarity[other] = score[k]
                queue[filled] = other
                filled += 1

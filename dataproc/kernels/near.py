"""Loops of near deduplication: keys of bands, pairs of a bucket, estimates of similarity, spanning forests."""

from __future__ import annotations

import numpy as np

from dataproc.kernels.compiling import kernel
from dataproc.kernels.primitives import mix

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_1 = np.uint64(1)


@kernel
def band_keys(signatures, bands, rows, keys):
    """Fills keys (documents, bands) uint64: a hash of the band's number and its `rows` values. signatures: (documents, permutations)."""
    for k in range(len(signatures)):
        for band in range(bands):
            h = mix((np.uint64(band) + _1) * _MULTIPLIER)
            for row in range(band * rows, (band + 1) * rows):
                h = mix((h ^ np.uint64(signatures[k, row])) * _MULTIPLIER)
            keys[k, band] = h


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

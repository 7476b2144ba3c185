"""Which source the i-th sample of a mixture comes from, and which of that source's samples it is: arithmetic, no state.

Weights are exact: a block of samples holds each source exactly weight x block times, and at every prefix a source is less than one
sample away from its share. The order inside a block is that of earliest deadlines (the k-th sample of a source with weight w may
come from place floor((k-1)/w) and must have come by place ceil(k/w) - 1), which meets all deadlines (Tijdeman 1980, the chairman
assignment problem).
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from math import lcm

import numpy as np

LARGEST_BLOCK = 1_000_000


def block_quotas(weights: list[Fraction]) -> list[int]:
    """Samples of each source in a block: the smallest whole numbers in the proportion of the weights.

    Raises ValueError when the weights do not sum to 1 or need a block of more than a million samples.
    """
    if sum(weights) != 1:
        raise ValueError(f"weights sum to {float(sum(weights)):.12g}, not to 1")
    block = lcm(*(weight.denominator for weight in weights))
    if block > LARGEST_BLOCK:
        raise ValueError(f"weights need a block of {block:,} samples to be exact; write them with at most six decimals")
    return [int(weight * block) for weight in weights]


def block_order(quotas: list[int]) -> np.ndarray:
    """(block,) int32: the source at each place of a block, each source as often as its quota, never a whole sample off its share."""
    block = sum(quotas)
    order = np.empty(block, np.int32)
    waiting = [(0, source, 0) for source, quota in enumerate(quotas) if quota]  # (release, source, samples given)
    heapq.heapify(waiting)
    ready: list[tuple[int, int, int]] = []  # (deadline, source, samples given)
    for place in range(block):
        while waiting and waiting[0][0] <= place:
            _, source, given = heapq.heappop(waiting)
            deadline = -(-(given + 1) * block // quotas[source]) - 1
            heapq.heappush(ready, (deadline, source, given))
        _, source, given = heapq.heappop(ready)
        order[place] = source
        if given + 1 < quotas[source]:
            heapq.heappush(waiting, ((given + 1) * block // quotas[source], source, given + 1))
    return order


class SamplingPlan:
    """Global sample index -> (source, index among that source's samples), in constant time."""

    def __init__(self, weights: list[Fraction]):
        self.quotas = np.array(block_quotas(weights), np.int64)
        self.order = block_order(list(self.quotas))
        self.block = len(self.order)
        # ranks[p]: how often the source at place p came before in the block
        self.ranks = np.empty(self.block, np.int64)
        for source in range(len(weights)):
            places = np.flatnonzero(self.order == source)
            self.ranks[places] = np.arange(len(places))

    def locate(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """indices: (k,) int64 global sample indices -> sources (k,) int32, indices within their source (k,) int64."""
        blocks, places = np.divmod(np.asarray(indices, np.int64), self.block)
        sources = self.order[places]
        return sources, blocks * self.quotas[sources] + self.ranks[places]

"""Sums in an order that does not depend on how many workers made the parts: floating-point addition is not associative.

The parts of a step are numbered; they are added as a binary tree over these numbers. A worker that holds a run of 2^k parts holds a
whole subtree, so its sum is a node of the same tree, and the total has the same bits for any number of workers of which each has a
power of two of parts.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

GATHER_ELEMENTS = 1 << 22  # 16 MiB of float32 from each worker at once


class PairwiseSum:
    """Adds tensors of one shape as a binary tree over the order in which they come. Holds log2(count) of them."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, torch.Tensor]] = []  # (height, sum of 2^height parts), heights falling

    def add(self, part: torch.Tensor) -> None:
        """Takes the next part; it may be overwritten."""
        height = 0
        while self._waiting and self._waiting[-1][0] == height:
            part = self._waiting.pop()[1].add_(part)
            height += 1
        self._waiting.append((height, part))

    def total(self) -> torch.Tensor:
        """The sum of all parts. Raises IndexError when there were none."""
        _, total = self._waiting.pop()
        while self._waiting:
            total = self._waiting.pop()[1].add_(total)
        return total


def sum_over_workers(part: torch.Tensor, world: int) -> torch.Tensor:
    """The sum of one tensor a worker, in the order of the tree, on every worker. part: (n,) -> (n,).

    Every worker is sent all parts, in slices: (world - 1) x n elements where an all-reduce sends 2n. That is the price of the order.
    """
    if world == 1:
        return part
    out = torch.empty_like(part)
    for start in range(0, part.numel(), GATHER_ELEMENTS):
        piece = part[start : start + GATHER_ELEMENTS]
        gathered = [torch.empty_like(piece) for _ in range(world)]
        dist.all_gather(gathered, piece.contiguous())
        tree = PairwiseSum()
        for other in gathered:
            tree.add(other)
        out[start : start + GATHER_ELEMENTS] = tree.total()
    return out

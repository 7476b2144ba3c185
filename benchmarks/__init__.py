"""Measurements: each prints ratios against a limit or a peer measured in the same run. Figures are in docs/benchmarks.md."""

"""The counters of a run as Ray metrics, so that the Ray dashboard and Prometheus show them. Receipts stay the truth."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def _counters() -> dict[str, Any]:
    from ray.util.metrics import Counter

    tags = ("dataset",)
    return {
        "records": Counter("headrace_records_in", "Input records read", tags),
        "survivors": Counter("headrace_records_kept", "Records that passed every stage of pass 1", tags),
        "dropped": Counter("headrace_records_dropped", "Records dropped by a rule", (*tags, "rule")),
        "quarantined": Counter("headrace_records_quarantined", "Records quarantined", tags),
        "input_bytes": Counter("headrace_input_bytes", "Stored bytes of input read", tags),
        "seconds": Counter("headrace_stage_seconds", "Seconds spent in a stage, summed over workers", (*tags, "stage")),
    }


def count_unit(dataset: str, receipt: dict[str, Any]) -> None:
    """Adds a finished unit's receipt to the counters of this worker. Call it inside a Ray worker only."""
    counters, tags = _counters(), {"dataset": dataset}
    for name in ("records", "survivors", "quarantined", "input_bytes"):
        if receipt[name]:
            counters[name].inc(receipt[name], tags)
    for rule, count in receipt["dropped"].items():
        counters["dropped"].inc(count, {**tags, "rule": rule})
    for stage, seconds in receipt["seconds"].items():
        if seconds > 0:
            counters["seconds"].inc(seconds, {**tags, "stage": stage})

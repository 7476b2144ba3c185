"""Which of several documents stays: the settings that all kinds of deduplication share."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from store.strict_yaml import StrictModel

Keep = Literal["smallest_id", "quality", "longest", "earliest"]


class WinnerConfig(StrictModel):
    """Of documents that hold the same one stays: that of an input that stands earlier in `source_priority`, then by `keep`, then the one
    with the smallest id. What an earlier version in `against` holds stays before all of them."""

    keep: Keep = "smallest_id"
    # Names of inputs: a document of an earlier one stays, whatever `keep` says; inputs that are not named come last.
    source_priority: tuple[str, ...] = ()
    # Versions of the store (name@label, name@label-digest): what they hold is dropped.
    against: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _once(self) -> WinnerConfig:
        for name in ("source_priority", "against"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name} has a name twice")
        return self

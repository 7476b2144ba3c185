"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

# How long one example takes says more about the machine's load than about the code.
hypothesis.settings.register_profile("headrace", deadline=None)
hypothesis.settings.load_profile("headrace")

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def project() -> Path:
    """The project's root folder."""
    return PROJECT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real test data: HEADRACE_TEST_DATA, else ../shared/data beside the project. Skips where there is none."""
    folder = Path(os.environ.get("HEADRACE_TEST_DATA") or PROJECT.parent / "shared" / "data")
    if not (folder / "SOURCES.md").exists():
        pytest.skip(f"real test data not found at {folder}; set HEADRACE_TEST_DATA to its folder")
    return folder

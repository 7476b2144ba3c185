"""One private Ray for all tests of the data side that need one."""

from __future__ import annotations

import shutil
import tempfile

import pytest

from dataproc.execution import RayPool
from tests.conftest import PROJECT


@pytest.fixture(scope="session")
def ray_pool():
    """Makes executors on one private Ray of two CPUs, started when first asked for and stopped at the end of the session."""
    import ray

    folder = tempfile.mkdtemp(prefix="hrt-", dir="/tmp")
    ray.init(
        address="local",
        num_cpus=2,
        object_store_memory=200_000_000,
        include_dashboard=False,
        log_to_driver=False,
        _temp_dir=folder,
        runtime_env={"env_vars": {"PYTHONPATH": str(PROJECT)}},
    )
    yield RayPool
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)

"""The one primitive that carries every step: tasks mapped by workers, each worker committing its own outputs, receipts back.

`run_units(executor, worker class, arguments, tasks)` yields receipts as tasks end, in any order. On Ray it is a Ray Data dataset of
one-row blocks, one per task, mapped by a pool of actors; without Ray it is a plain loop over the same class. Only tasks and
receipts (small JSON) cross the object store; workers do their own input and output.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import shutil
import sys
import tempfile
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from dataproc.stages.base import Resources
from store.errors import ConfigError, HeadraceError

# Ray Data keeps a little state for every block for ever, so a long plan is run in parts.
TASKS_PER_DATASET = 20_000
# Receipts are the only progress that Ray sees, and a unit full of slow records may take long; a hang must still end.
NO_PROGRESS_TIMEOUT_S = 3600
FIELD = "json"


class Worker(Protocol):
    """What runs tasks: made once per process, then `run` for each task."""

    def run(self, task: dict[str, Any]) -> dict[str, Any]: ...

    def close(self) -> None: ...


class Executor(ABC):
    """Where tasks run."""

    guarded: bool  # workers run in processes of their own, which may be ended and started again

    @abstractmethod
    def map(self, target: str, arguments: dict[str, Any], tasks: Sequence[dict[str, Any]], demand: Resources) -> Iterator[dict[str, Any]]:
        """Runs every task by instances of the worker class `target` ("module:Class"); yields receipts in any order."""

    def close(self) -> None:
        """Ends what the executor started."""


def run_units(
    executor: Executor, worker: type, arguments: dict[str, Any], tasks: Sequence[dict[str, Any]], demand: Resources | None = None
) -> Iterator[dict[str, Any]]:
    """Runs tasks by a worker class and yields their receipts. Raises HeadraceError with the first failure of a task."""
    target = f"{worker.__module__}:{worker.__qualname__}"
    for start in range(0, len(tasks), TASKS_PER_DATASET):
        for receipt in executor.map(target, arguments, tasks[start : start + TASKS_PER_DATASET], demand or Resources()):
            if "failure" in receipt:
                raise _failure(receipt["failure"])
            yield receipt


def _failure(failure: dict[str, Any]) -> HeadraceError:
    error = HeadraceError(failure["message"])
    error.exit_code = failure["exit_code"]
    error.__cause__ = RuntimeError(failure["traceback"])
    return error


def _make_worker(target: str, arguments: dict[str, Any]) -> Worker:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)(**arguments)


def _attempt(worker: Worker, task: dict[str, Any]) -> dict[str, Any]:
    """A task's receipt, or its failure as one: Ray would wrap an exception until its sentence is lost, or try again for ever."""
    try:
        return worker.run(task)
    except (Exception, SystemExit) as error:
        message = str(error) if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"
        return {
            "failure": {
                "message": message,
                "exit_code": getattr(error, "exit_code", 1),
                "traceback": "".join(traceback.format_exception(error)),
            }
        }


class PlainLoop(Executor):
    """One worker in this process, one task after the other: for tests, and the baseline that Ray's overhead is measured against."""

    guarded = False

    def map(self, target, arguments, tasks, demand):
        worker = _make_worker(target, arguments)
        try:
            for task in tasks:
                yield _attempt(worker, task)
        finally:
            worker.close()


class UnitActor:
    """The Ray Data UDF: a block with one task in, a block with its receipt out."""

    def __init__(self, target: str, arguments: dict[str, Any]):
        self.worker: Worker | None = None
        self.failure: dict[str, Any] | None = None
        try:
            self.worker = _make_worker(target, arguments)
        except (Exception, SystemExit) as error:
            # Raised here it would be tried again without end; as a receipt it ends the run with its sentence.
            self.failure = _attempt(_Failing(error), {})

    def __call__(self, block: pa.Table) -> pa.Table:
        receipts = [self.failure or _attempt(self.worker, json.loads(text)) for text in block.column(FIELD).to_pylist()]
        return pa.table({FIELD: [json.dumps(receipt) for receipt in receipts]})


class _Failing:
    """A worker that could not be made: every task fails with the reason."""

    def __init__(self, error: BaseException):
        self.error = error

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        raise self.error

    def close(self) -> None:
        """Nothing was opened."""


class RayPool(Executor):
    """Ray Data with a pool of actors: on a cluster by its address, or on a private Ray of `cpus` CPUs that ends with the run."""

    guarded = True

    def __init__(self, address: str | None = None, cpus: int | None = None):
        self.cpus = cpus
        self._folder: str | None = None
        import ray

        with contextlib.ExitStack() as stack:
            # Ray prints what its processes report on standard output, which belongs to the command's own result.
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
            if not ray.is_initialized():
                stack.callback(self._stop)
                self._folder = start_ray(address, cpus)
            available = ray.cluster_resources().get("CPU", 0)
            self.slots = int(min(available, cpus) if cpus and address else available)
            where = f"the Ray cluster at {address}" if address else "a private Ray"
            print(f"on {where}: {self.slots} CPUs", file=sys.stderr, flush=True)
            self._stack = stack.pop_all()

    def map(self, target, arguments, tasks, demand):
        import ray

        size = self._pool_size(demand, len(tasks))
        for noisy in ("execution.streaming_executor", "progress"):  # the run has its own progress display
            logging.getLogger(f"ray.data._internal.{noisy}").setLevel(logging.ERROR)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.enable_operator_progress_bars = False
        context.execution_no_progress_timeout_s = NO_PROGRESS_TIMEOUT_S
        # Not from_arrow: that starts a Ray task for each block, only to measure it.
        blocks = ray.data.from_items([{FIELD: json.dumps(task)} for task in tasks], override_num_blocks=len(tasks))
        receipts = blocks.map_batches(
            UnitActor,
            fn_constructor_kwargs={"target": target, "arguments": arguments},
            batch_size=1,
            batch_format="pyarrow",
            num_cpus=demand.cpus,
            num_gpus=demand.gpus or None,
            memory=demand.memory or None,
            # Workers may shrink to one: an actor whose node died waits for a place, and gets it when an idle one leaves.
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=size, initial_size=size, max_tasks_in_flight_per_actor=2),
            # Ray restarts a crashed actor and gives it its task again, for ever. The bound is the worker's own: its cursor knows the
            # guilty record (dataproc/faults.py).
        )
        for batch in receipts.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            yield from (json.loads(text) for text in batch.column(FIELD).to_pylist())

    def _pool_size(self, demand: Resources, tasks: int) -> int:
        """How many actors there may be. Raises at once where not even one fits: Ray would wait for it without a word."""
        import ray

        total = ray.cluster_resources()
        for name, wanted in (("CPU", demand.cpus), ("GPU", demand.gpus), ("memory", demand.memory)):
            if wanted > total.get(name, 0):
                raise ConfigError(f"a worker needs {wanted:g} {name}, the Ray cluster has {total.get(name, 0):g} in all")
        return max(1, min(int(self.slots / demand.cpus), tasks))

    def _stop(self) -> None:
        stop_ray(self._folder)

    def close(self) -> None:
        self._stack.close()


def start_ray(address: str | None, cpus: int | None) -> str | None:
    """Joins the Ray cluster at an address, or starts a private Ray of `cpus` CPUs (all of this machine's when None) and returns its
    folder. Raises ConfigError when nothing answers at the address."""
    _set_authentication(address)
    import ray

    quiet = {"configure_logging": True, "logging_level": "ERROR", "log_to_driver": False}
    if address:
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ConfigError(f"no Ray cluster answers at {address}: {str(error).splitlines()[0]}") from error
        return None
    # Ray makes sockets below this folder and their paths may have 107 characters, so it stands right under the temporary folder.
    folder = tempfile.mkdtemp(prefix="hr-", dir="/tmp")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(
            address="local",
            num_cpus=cpus or os.cpu_count(),
            object_store_memory=200_000_000,  # tasks, receipts and settings are all that crosses it
            include_dashboard=False,
            _temp_dir=folder,
            **quiet,
        )
    except BaseException:
        stop_ray(folder)
        raise
    return folder


def stop_ray(folder: str | None) -> None:
    """Ends what `start_ray` began; `folder` is what it returned."""
    import ray

    ray.shutdown()
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def _set_authentication(address: str | None) -> None:
    """Ray's clients and servers disagree about their default: where a token is at hand and a cluster is meant, it is used."""
    token = os.environ.get("RAY_AUTH_TOKEN_PATH") or os.path.expanduser("~/.ray/auth_token")
    if address and "RAY_AUTH_MODE" not in os.environ and os.path.exists(token):
        os.environ["RAY_AUTH_MODE"] = "token"

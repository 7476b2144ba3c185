"""A run on a simulated three-node cluster, one node of which is killed: run as a script by test_cluster.py, in a process of its own."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from dataproc.execution import RayPool
from dataproc.pipeline import run_pipeline


def main(pipeline: str, store: str) -> None:
    """Runs the pipeline on three nodes, one of which is killed when the first units have ended."""
    head = {"num_cpus": 1, "object_store_memory": 100_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=100_000_000) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False)
    killed = []

    def killer() -> None:
        while not list(Path(store).glob(".work/*/pass1/*.receipt.json")):
            time.sleep(0.05)
        cluster.remove_node(nodes[0], allow_graceful=False)
        killed.append(len(list(Path(store).glob(".work/*/pass1/*.receipt.json"))))

    threading.Thread(target=killer, daemon=True).start()
    start = time.monotonic()
    result = run_pipeline(pipeline, store, lambda: RayPool(cluster.address), quiet=False)
    seconds = time.monotonic() - start
    ray.shutdown()
    cluster.shutdown()
    print(json.dumps({**result, "killed_after": killed, "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

"""Starts workers as Slurm jobs, as jobqueue.yaml describes them, while this script runs.

pip install dask-jobqueue
python slurm.py 10 &
npumake build --executor dask --scheduler scheduler.json
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from dask_jobqueue import SLURMCluster
from distributed import Client


def main(most: int) -> None:
    with SLURMCluster() as cluster, Client(cluster) as client:
        cluster.adapt(minimum_jobs=0, maximum_jobs=most)
        client.write_scheduler_file("scheduler.json")
        try:
            while True:
                time.sleep(60)
        finally:
            Path("scheduler.json").unlink()


if __name__ == "__main__":
    main(int(sys.argv[1]))

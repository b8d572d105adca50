"""A sweep on Slurm: Dask asks for jobs, each of which is a worker.

    python jobqueue.py sweep.toml results

Runs where jobs can be submitted, and lasts as long as the sweep: on a login node in tmux, or as a job
itself. It may be stopped; the same command continues.
"""

from __future__ import annotations

import argparse
import os

from dask_jobqueue import SLURMCluster
from distributed import Client

import ackclock


def seconds(walltime: str) -> int:
    """Of hours, minutes and seconds."""
    hours, minutes, rest = map(int, walltime.split(":"))
    return (hours * 60 + minutes) * 60 + rest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario")
    parser.add_argument("out")
    parser.add_argument("--jobs", type=int, default=2, help="jobs at the same time (default: 2)")
    parser.add_argument("--cores", type=int, default=4, help="cores of a job (default: 4)")
    parser.add_argument("--memory", default="8GB", help="memory of a job (default: 8GB)")
    parser.add_argument("--walltime", default="01:00:00", help="time of a job; others follow it (default: one hour)")
    parser.add_argument("--partition", help="the partition (default: that of the site)")
    parser.add_argument("--interface", help="the network interface that login and compute nodes share, such as ib0")
    arguments = parser.parse_args()

    cluster = SLURMCluster(
        queue=arguments.partition,
        cores=arguments.cores,
        # A process for each core: what kills one leaves the others alone.
        processes=arguments.cores,
        memory=arguments.memory,
        walltime=arguments.walltime,
        interface=arguments.interface,
        # They leave before Slurm kills them, not all at once, and hand over what they have.
        worker_extra_args=["--lifetime", f"{seconds(arguments.walltime) * 9 // 10}s", "--lifetime-stagger", "1m"],
        job_script_prologue=[f"cd {os.getcwd()}"],
    )
    # As many jobs as there is work for, and none when it is over.
    cluster.adapt(minimum_jobs=1, maximum_jobs=arguments.jobs)
    with cluster, Client(cluster) as client:
        print("dashboard:", client.dashboard_link)
        sweep = ackclock.sweep(arguments.scenario, client=client, out=arguments.out)
        print(sweep)


if __name__ == "__main__":
    main()

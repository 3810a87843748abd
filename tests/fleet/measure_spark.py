"""Prints what Spark jobs cost with one and two workers, as a Markdown table.

    target/fleet/bin/python tests/fleet/measure_spark.py [--recordings N] [--addresses N]

Each number of workers has a cluster of its own. A job runs once before it is measured, so that the time in which Java compiles its
code does not count. Executors, their Python processes and the command are all measured.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from cluster import session
from conftest import COMMAND, MOVED, TRACES, moved
from pyspark.sql import functions

from chronosym.spark import resolve

# Timelines of addresses; runs of a job before it is measured, and measured ones.
PROCESSES = 200
WARM = 1
ROUNDS = 1

TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds():
    """Processor time of all executors and their descendants so far, with those that have ended."""
    parents, times, executors = {}, {}, set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
            words = (path / "cmdline").read_bytes()
        except OSError:
            continue
        pid = int(path.name)
        parents[pid] = int(fields[1])
        times[pid] = sum(map(int, fields[11:15]))
        if b"CoarseGrainedExecutorBackend" in words:
            executors.add(pid)

    def is_measured(pid):
        while pid > 1 and pid not in executors:
            pid = parents.get(pid, 0)
        return pid in executors

    return sum(ticks for pid, ticks in times.items() if is_measured(pid)) / TICK


def write_recordings(folder, count):
    """Copies of traces, each of another process."""
    folder.mkdir()
    whole = []
    for name in MOVED:
        with zipfile.ZipFile(TRACES / f"{name}.nettrace.zip") as archive:
            whole.append(archive.read(archive.namelist()[0]))
    for number in range(count):
        (folder / f"{number:03}.nettrace").write_bytes(moved(whole[number % len(whole)], number))


def write_addresses(spark, folder, count):
    """200 timelines of one trace, and random addresses of its samples in each; returns the file of the addresses."""
    trace = folder / "rich.nettrace"
    with zipfile.ZipFile(TRACES / "rich.nettrace.zip") as archive:
        trace.write_bytes(archive.read(archive.namelist()[0]))
    timelines = folder / "timelines"
    timelines.mkdir()
    subprocess.run([COMMAND, "--quiet", "save", trace, "-o", timelines / "0.chrono"], check=True)
    for number in range(1, PROCESSES):
        shutil.copy(timelines / "0.chrono", timelines / f"{number}.chrono")
    lines = subprocess.run([COMMAND, "--quiet", "stacks", "--format", "jsonl", trace], check=True, capture_output=True).stdout
    samples = [json.loads(line) for line in lines.splitlines()]
    times = spark.read.format("chronosym").load(str(trace)).agg(functions.min("time"))
    start = times.collect()[0][0] - samples[0]["time_ns"]
    known = [(start + it["time_ns"], int(it["frames"][0]["address"], 16)) for it in samples if "name" in it["frames"][0]]
    rng = random.Random(1)
    times, addresses = zip(*rng.choices(known, k=count))
    keys = rng.choices([f"{number}.chrono" for number in range(PROCESSES)], k=count)
    table = pa.table({"key": keys, "time": times, "address": addresses})
    pq.write_table(table, folder / "addresses.parquet", row_group_size=count // 8 + 1)
    return folder / "addresses.parquet", timelines


def jobs(spark, folder, recordings, addresses):
    """The jobs, each a function, by name."""
    write_recordings(folder / "recordings", recordings)
    bare, timelines = write_addresses(spark, folder, addresses)
    profiles = spark.read.format("chronosym").option("table", "profiles").load(f"{folder}/recordings/*.nettrace")
    rows = spark.read.parquet(str(bare)).repartition(8)
    named = resolve(rows, timelines=str(timelines))
    of_leaf = functions.element_at("stack", 1)
    return {
        f"{recordings} recordings, time by function": lambda: profiles.groupBy(of_leaf).agg(functions.sum("weight")).collect(),
        f"{addresses:,} addresses, count by address": lambda: rows.groupBy("key", "address").count().count(),
        f"{addresses:,} addresses, names, count by name": lambda: named.groupBy("names").count().count(),
    }


def measure(workers, recordings, addresses):
    """Runs each job of a cluster; returns seconds of processors and elapsed ones, by job."""
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        spark = session(workers)
        try:
            for name, job in jobs(spark, Path(folder), recordings, addresses).items():
                for _ in range(WARM):
                    job()
                used, began = cpu_seconds(), time.monotonic()
                for _ in range(ROUNDS):
                    job()
                elapsed = time.monotonic() - began
                seconds[name] = (cpu_seconds() - used) / ROUNDS, elapsed / ROUNDS
                print(f"{workers} workers, {name}: {seconds[name]}", file=sys.stderr, flush=True)
        finally:
            spark.stop()
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=int, default=200)
    parser.add_argument("--addresses", type=int, default=10_000_000)
    given = parser.parse_args()
    all_seconds = {workers: measure(workers, given.recordings, given.addresses) for workers in (1, 2)}
    print("| job | 1 worker, processor s | elapsed s | 2 workers, processor s | elapsed s | ratio of processor s |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, (used, elapsed) in all_seconds[1].items():
        used_by_two, elapsed_of_two = all_seconds[2][name]
        print(f"| {name} | {used:.1f} | {elapsed:.1f} | {used_by_two:.1f} | {elapsed_of_two:.1f} | {used_by_two / used:.2f} |")


main()

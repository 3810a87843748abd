"""The data source on a cluster of two workers, each a process of its own."""

import os
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cluster
import pytest
from conftest import WRITER, block, label, named
from pyspark.sql import functions as F

from chronosym.spark import resolve


@pytest.fixture(scope="session")
def spark():
    session = cluster.session(os.environ.get("CHRONOSYM_WORKERS") or "2")
    yield session
    session.stop()


def totals(samples):
    """Self and total time by method, as Spark sums it up."""
    timed = samples.where("unit = 'ns' and size(stack) > 0")
    of_leaf = timed.groupBy(F.col("stack")[0].alias("label")).agg(F.sum("weight").alias("own"))
    of_any = timed.select("weight", F.explode(F.array_distinct("stack")).alias("label"))
    of_any = of_any.groupBy("label").agg(F.sum("weight").alias("total"))
    rows = of_any.join(of_leaf, "label", "left").collect()
    return named((row.label, row.own or 0, row.total) for row in rows)


def load(spark, path, **options):
    return spark.read.format("chronosym").options(**options).load(str(path))


def test_totals_are_those_of_the_command(spark, traces, expected):
    samples = load(spark, traces / "*.nettrace", stacks="true")
    assert samples.rdd.getNumPartitions() == 4
    assert totals(samples) == expected


def test_totals_of_a_fleet_are_the_sum(spark, fleet, expected_of_fleet):
    samples = load(spark, fleet / "*.nettrace", table="profiles")
    assert samples.rdd.getNumPartitions() == len(list(fleet.glob("*.nettrace")))
    assert totals(samples) == expected_of_fleet


def test_filters_are_pushed_down(spark, traces):
    samples = load(spark, traces / "*.nettrace")
    everything = samples.toPandas()
    bounds = everything[everything.trace.str.endswith("rich.nettrace")].time.quantile([0.25, 0.5]).astype("int64").tolist()
    pid = int(everything.pid.mode()[0])
    kept = samples.where((F.col("time") >= bounds[0]) & (F.col("time") < bounds[1]) & (F.col("pid") == pid))
    plan = kept._jdf.queryExecution().executedPlan().toString()
    assert ">=" not in plan, plan
    rows = everything[(everything.time >= bounds[0]) & (everything.time < bounds[1]) & (everything.pid == pid)]
    assert kept.count() == len(rows) > 0


def test_a_damaged_recording_is_a_diagnostic(spark, traces, tmp_path):
    whole = (traces / "rich.nettrace").read_bytes()
    (tmp_path / "whole.nettrace").write_bytes(whole)
    (tmp_path / "cut.nettrace").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "other.nettrace").write_bytes(b"not a trace")
    (tmp_path / "empty.nettrace").write_bytes(b"")
    samples = load(spark, tmp_path / "*.nettrace")
    counts = {Path(row.trace).name: row["count"] for row in samples.groupBy("trace").count().collect()}
    assert 0 < counts["cut.nettrace"] < counts["whole.nettrace"]
    assert set(counts) == {"cut.nettrace", "whole.nettrace"}
    rows = load(spark, tmp_path / "*.nettrace", table="diagnostics").collect()
    kinds = {(Path(row.trace).name, row.kind) for row in rows}
    assert {("cut.nettrace", "cut_short"), ("other.nettrace", "damage"), ("empty.nettrace", "damage")} <= kinds


def test_a_recording_beyond_its_memory_costs_only_its_rows(spark, traces, tmp_path):
    shutil.copy(traces / "rich.nettrace", tmp_path)
    rows = load(spark, tmp_path / "*.nettrace", memory=str(4 << 20)).count()
    assert rows == 0
    row, = load(spark, tmp_path / "*.nettrace", memory=str(4 << 20), table="diagnostics").collect()
    assert "rich.nettrace" in row.trace and row.kind == "damage", row


def test_a_large_recording_stays_within_its_memory(spark, traces, tmp_path):
    """Its first part is read, and the limit is a diagnostic; the other recording is whole."""
    shutil.copy(traces / "rich.nettrace", tmp_path)
    with open(tmp_path / "large.nettrace", "wb") as out:
        subprocess.run([WRITER, "50", "50", "2000000"], stdout=out, check=True)
    memory = str(48 << 20)
    rows = load(spark, tmp_path / "*.nettrace", memory=memory, table="profiles").groupBy("trace").agg(F.sum("count").alias("samples"))
    samples = {Path(row.trace).name: row.samples for row in rows.collect()}
    assert samples["rich.nettrace"] == load(spark, traces / "rich.nettrace").count()
    assert 500_000 < samples["large.nettrace"] < 2_000_000
    diagnostics = load(spark, tmp_path / "*.nettrace", memory=memory, table="diagnostics").collect()
    assert [(Path(row.trace).name, row.kind) for row in diagnostics] == [("large.nettrace", "limit")]


def executors():
    """The processes of executors, by id."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in words and str(os.getpid()).encode() not in words:
            found.append(int(path.parent.name))
    return found


def test_a_killed_executor_changes_nothing(spark, traces, tmp_path):
    for number in range(12):
        shutil.copy(traces / "rich.nettrace", tmp_path / f"{number}.nettrace")
    expected = load(spark, traces / "rich.nettrace").agg(F.sum("weight")).collect()[0][0] * 12
    context = spark.sparkContext
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lambda: load(spark, tmp_path / "*.nettrace").agg(F.sum("weight")).collect()[0][0])
        tracker = context.statusTracker()
        while not any(tracker.getStageInfo(stage).numCompletedTasks >= 1 for stage in tracker.getActiveStageIds()):
            assert not answer.done(), "the query ended before an executor was killed"
            time.sleep(0.01)
        before = executors()
        os.kill(before[0], signal.SIGKILL)
        assert answer.result(timeout=120) == expected
    assert before


def test_bare_addresses_get_names(spark, traces, samples, command, tmp_path):
    command("save", traces / "rich.nettrace", "-o", tmp_path / "rich.chrono")
    samples = samples[traces / "rich.nettrace"]
    start = load(spark, traces / "rich.nettrace").agg(F.min("time")).collect()[0][0] - samples[0]["time_ns"]
    rows = []
    for sample in samples[:3000]:
        leaf = sample["frames"][0]
        if "name" in leaf and sample["kind"] == "wall_managed" and not leaf.get("inlined"):
            rows.append(("rich.chrono", start + sample["time_ns"], int(leaf["address"], 16), label(leaf)))
    assert len(rows) > 100
    rows.append(("missing.chrono", start, 1, "0x1 (NoTimeline)"))
    addresses = spark.createDataFrame(rows, "key string, time bigint, address bigint, expected string").repartition(3)
    # Batches of Arrow are joined before the call.
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    named = resolve(addresses, timelines=str(tmp_path)).collect()
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert sorted(row[:4] for row in named) == sorted(rows)
    wrong = [row for row in named if row.names[-1] != row.expected]
    assert not wrong, wrong[:3]


def test_timelines_are_joined(spark):
    from test_timelines import ADDRESSES, EXPECTED, TIMELINES

    addresses = [row[:5] for row in ADDRESSES]
    spark.createDataFrame(addresses, "id bigint, host string, boot string, pid bigint, time bigint").createOrReplaceTempView("addresses")
    columns = "host string, boot string, pid bigint, start bigint, end bigint, key string"
    spark.createDataFrame(TIMELINES, columns).createOrReplaceTempView("timelines")
    rows = spark.sql(block("sql any-timelines").replace('"', "`")).collect()
    assert sorted((row.id, row.key) for row in rows) == EXPECTED

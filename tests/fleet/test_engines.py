"""The queries of docs/fleet/README.md in each engine: totals are those of the command, to the nanosecond."""

import os
import shutil

import chdb
import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pytest
from conftest import COMMAND, FIRST_PID, GUIDE, MOVED, block, label, named


@pytest.fixture(scope="session")
def lake(tmp_path_factory, fleet, command):
    folder = tmp_path_factory.mktemp("lake")
    command("export", *sorted(fleet.glob("*.nettrace")), "-o", folder)
    return folder


def sql(language, lake):
    """The query of the guide for an engine, over these tables."""
    return block(f"sql {language}").replace("lake/", f"{lake}/")


def test_duckdb(lake, expected_of_fleet):
    assert named(duckdb.sql(sql("duckdb", lake)).fetchall()) == expected_of_fleet


def test_duckdb_over_sums(fleet, command, expected_of_fleet, tmp_path):
    command("export", "--sums", *sorted(fleet.glob("*.nettrace")), "-o", tmp_path)
    assert named(duckdb.sql(sql("duckdb-sums", tmp_path)).fetchall()) == expected_of_fleet


def test_datafusion(lake, expected_of_fleet):
    context = datafusion.SessionContext()
    for table in ("samples", "stacks", "frames"):
        context.register_parquet(table, f"{lake}/{table}")
    rows = pa.Table.from_batches(context.sql(sql("datafusion", lake)).collect()).to_pylist()
    assert named((row["label"], row["own"], row["total"]) for row in rows) == expected_of_fleet


def test_clickhouse(lake, expected_of_fleet):
    rows = chdb.query(sql("clickhouse", lake), "ArrowTable").to_pylist()
    text = [(row["label"], int(row["own"]), int(row["total"])) for row in rows]
    assert named((label.decode() if isinstance(label, bytes) else label, own, total) for label, own, total in text) == expected_of_fleet


def test_polars(lake, expected_of_fleet):
    """Polars has no recursive queries: a join for each level."""
    samples = pl.scan_parquet(f"{lake}/samples/*.parquet").filter(pl.col("unit") == "ns")
    stacks = pl.scan_parquet(f"{lake}/stacks/*.parquet").unique("stack_id").collect()
    labels = pl.scan_parquet(f"{lake}/frames/*.parquet").select("frame_id", "label").unique("frame_id").collect()
    weights = samples.group_by("stack_id").agg(pl.col("weight").sum()).collect()
    level, levels = weights.join(stacks, on="stack_id"), []
    own = level.join(labels, on="frame_id").group_by("label").agg(pl.col("weight").sum().alias("own"))
    level = level.select(pl.col("stack_id").alias("leaf"), "weight", "caller_id", "frame_id")
    while len(level) > 0:
        levels.append(level)
        level = level.select("leaf", "weight", pl.col("caller_id").alias("stack_id")).join(stacks, on="stack_id")
        level = level.select("leaf", "weight", "caller_id", "frame_id")
    every = pl.concat(levels).join(labels, on="frame_id").unique(["leaf", "label"])
    total = every.group_by("label").agg(pl.col("weight").sum().alias("total"))
    rows = total.join(own, on="label", how="left").with_columns(pl.col("own").fill_null(0))
    assert named(rows.select("label", "own", "total").iter_rows()) == expected_of_fleet


def test_processes_are_told_apart(lake, samples_of_fleet):
    """Each process has its own time; equal stacks of different processes have one id."""
    rows = duckdb.sql(f"select pid, sum(weight) from '{lake}/samples/*.parquet' where unit = 'ns' group by all").fetchall()
    weights = [sum(it.get("weight_ns", 0) for it in samples) for samples in samples_of_fleet]
    assert dict(rows) == {FIRST_PID + number: weight for number, weight in enumerate(weights)}
    stacks = f"select count(distinct stack_id) from '{lake}/samples/*.parquet'"
    assert duckdb.sql(stacks).fetchall() == duckdb.sql(f"{stacks} where pid < {FIRST_PID + len(MOVED)}").fetchall()


def test_the_function_of_clickhouse(lake, fleet, traces, samples, command, tmp_path):
    timelines, scripts = tmp_path / "timelines", tmp_path / "scripts"
    timelines.mkdir()
    scripts.mkdir()
    command("save", fleet / "002.nettrace", "-o", timelines / "rich.chrono")
    shutil.copy(GUIDE / "chronosym_function.xml", scripts / "udf_config.xml")
    script = scripts / "chronosym-resolve"
    script.write_text(f"#!/bin/sh\nexec '{COMMAND}' --quiet resolve --stdin rowbinary --timelines '{timelines}'\n")
    os.chmod(script, 0o755)
    rows = duckdb.sql(f"select min(time) from '{lake}/samples/*.parquet' where pid = {FIRST_PID + 2}").fetchall()
    of_trace = samples[traces / "rich.nettrace"]
    start = rows[0][0] - of_trace[0]["time_ns"]
    asked, expected = [], []
    for sample in of_trace[:3000]:
        leaf = sample["frames"][0]
        if "name" in leaf and sample["kind"] == "wall_managed" and not leaf.get("inlined"):
            asked.append(f"({len(asked)}, {start + sample['time_ns']}, {int(leaf['address'], 16)})")
            expected.append(label(leaf))
    assert len(expected) > 100
    query = f"""
        select chronosym_resolve('rich.chrono', time, address)[-1]
        from values('n UInt32, time Int64, address UInt64', {", ".join(asked)}) order by n
    """
    answer = chdb.query(query, "TSVRaw", udf_path=str(scripts))
    assert str(answer).splitlines() == expected

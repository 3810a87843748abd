"""Timelines of a fleet: the joins of docs/fleet/README.md in each engine, and names of what they found."""

import chdb
import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import block, label

from chronosym.addresses import NAMES, SCHEMA, AddressResolver

# A process id that was used three times, of which the first left no end; another boot and another host; one without a timeline.
TIMELINES = [
    ("web-1", "b1", 10, 100, None, "first"),
    ("web-1", "b1", 10, 200, 300, "second"),
    ("web-1", "b1", 10, 400, 500, "third"),
    ("web-1", "b2", 10, 100, 900, "boot"),
    ("web-2", "b1", 10, 150, 900, "host"),
]
ADDRESSES = [
    (1, "web-1", "b1", 10, 99, None),
    (2, "web-1", "b1", 10, 100, "first"),
    (3, "web-1", "b1", 10, 199, "first"),
    (4, "web-1", "b1", 10, 200, "second"),
    (5, "web-1", "b1", 10, 299, "second"),
    (6, "web-1", "b1", 10, 300, None),
    (7, "web-1", "b1", 10, 450, "third"),
    (8, "web-1", "b2", 10, 450, "boot"),
    (9, "web-2", "b1", 10, 450, "host"),
    (10, "web-2", "b1", 11, 450, None),
]
EXPECTED = [(row[0], row[5]) for row in ADDRESSES]


@pytest.fixture(scope="module")
def tables():
    columns = {"id": pa.int64(), "host": pa.string(), "boot": pa.string(), "pid": pa.int64(), "time": pa.int64()}
    # Not in time order: agents send late.
    late = [row[:5] for row in ADDRESSES[::-1]]
    addresses = {name: pa.array(values, type) for (name, type), values in zip(columns.items(), zip(*late))}
    columns = {"host": pa.string(), "boot": pa.string(), "pid": pa.int64(), "start": pa.int64(), "end": pa.int64(), "key": pa.string()}
    timelines = {name: pa.array(values, type) for (name, type), values in zip(columns.items(), zip(*TIMELINES[::-1]))}
    return pa.table(addresses), pa.table(timelines)


@pytest.fixture(scope="module")
def files(tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name, table in zip(("addresses", "timelines"), tables):
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def connection(tables):
    connection = duckdb.connect()
    for name, table in zip(("addresses", "timelines"), tables):
        connection.register(f"{name}_", table)
        connection.execute(f"create table {name} as from {name}_")
    return connection


def test_duckdb_joins_timelines(tables):
    rows = connection(tables).execute(block("sql duckdb-timelines")).fetchall()
    assert sorted((row[0], row[-1]) for row in rows) == EXPECTED


def test_clickhouse_joins_timelines(files):
    query = block("sql clickhouse-timelines")
    for name in ("addresses", "timelines"):
        query = query.replace(f" {name} ", f" file('{files}/{name}.parquet', Parquet) ")
    rows = chdb.query(query, "ArrowTable").to_pylist()
    text = [(int(row["id"]), row["key"]) for row in rows]
    assert sorted((id, key.decode() if isinstance(key, bytes) else key) for id, key in text) == EXPECTED


def test_datafusion_joins_timelines(files):
    context = datafusion.SessionContext()
    for name in ("addresses", "timelines"):
        context.register_parquet(name, f"{files}/{name}.parquet")
    rows = pa.Table.from_batches(context.sql(block("sql any-timelines")).collect()).to_pylist()
    assert sorted((row["id"], row["key"]) for row in rows) == EXPECTED


def test_polars_joins_timelines(tables):
    names = {"pl": pl, "addresses": pl.from_arrow(tables[0]), "timelines": pl.from_arrow(tables[1])}
    exec(block("python polars-timelines"), names)
    assert sorted(names["keyed"].select("id", "key").iter_rows()) == EXPECTED


def test_retention_keeps_what_addresses_need(tables):
    connected = connection(tables)
    expired = connected.execute(block("sql duckdb-retention").replace("$horizon", "450")).fetchall()
    # `first` has no end of its own: its successor began at 200. The others live beyond the horizon.
    assert sorted(key for key, in expired) == ["first", "second"]


@pytest.fixture(scope="module")
def bare(traces, samples, command, tmp_path_factory):
    """A folder of timelines, a table of bare addresses, and their names."""
    folder = tmp_path_factory.mktemp("timelines")
    command("save", traces / "rich.nettrace", "-o", folder / "rich.chrono")
    lake = tmp_path_factory.mktemp("one")
    command("export", traces / "rich.nettrace", "-o", lake)
    of_trace = samples[traces / "rich.nettrace"]
    start = duckdb.sql(f"select min(time) from '{lake}/samples/*.parquet'").fetchall()[0][0] - of_trace[0]["time_ns"]
    rows, expected = [], []
    for sample in of_trace[:3000]:
        leaf = sample["frames"][0]
        if "name" in leaf and sample["kind"] == "wall_managed" and not leaf.get("inlined"):
            rows.append(("rich.chrono", start + sample["time_ns"], int(leaf["address"], 16)))
            expected.append(label(leaf))
    rows.append(("missing.chrono", start, 1))
    expected.append("0x1 (NoTimeline)")
    assert len(rows) > 100
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows), SCHEMA)]
    return folder, pa.Table.from_arrays(columns, schema=SCHEMA), expected


@pytest.fixture
def resolver(bare):
    with AddressResolver(bare[0]) as resolver:
        yield resolver


def test_the_function_in_duckdb(bare, resolver):
    addresses = bare[1]
    names = {"duckdb": duckdb, "connection": duckdb.connect(), "resolver": resolver}
    names["connection"].register("addresses", addresses)
    exec(block("python duckdb-function"), names)
    assert [row[0][-1] for row in names["rows"]] == bare[2]


def test_the_function_in_polars(bare, resolver):
    names = {"pl": pl, "addresses": pl.from_arrow(bare[1]), "resolver": resolver}
    exec(block("python polars-function"), names)
    assert [names[-1] for names in names["named"]["names"].to_list()] == bare[2]


def test_the_function_in_datafusion(bare, resolver):
    context = datafusion.SessionContext()
    context.register_record_batches("addresses", [bare[1].to_batches()])
    names = {"pa": pa, "datafusion": datafusion, "context": context, "resolver": resolver, "NAMES": NAMES}
    exec(block("python datafusion-function"), names)
    assert sorted(row["names"][-1] for row in names["rows"]) == sorted(bare[2])


def test_a_process_that_ended_is_started_again(bare, resolver):
    columns = bare[1].columns
    first = resolver(*columns)
    resolver._process.kill()
    resolver._process.wait()
    assert resolver(*columns) == first
    assert len(resolver(*(column.slice(0, 0) for column in columns))) == 0

"""Tables agree with each other, with single answers, and with the command."""

import collections
import json
import pathlib
import subprocess

import numpy
import pyarrow
import pyarrow.compute
import pytest

import chronosym


def rows(reader):
    return pyarrow.table(reader)


def test_samples_stacks_and_frames_fit_together(timeline):
    samples, stacks, frames = rows(timeline.samples()), rows(timeline.stacks()), rows(timeline.frames())
    assert samples.num_rows > 100
    assert samples["time_ns"].to_pylist() == sorted(samples["time_ns"].to_pylist())
    assert set(samples["stack"].to_pylist()) == set(stacks["stack"].to_pylist())
    assert max(stacks["frame"].to_pylist()) < frames.num_rows
    assert frames["frame"].to_pylist() == list(range(frames.num_rows))
    leaves = {row["stack"]: row["frame"] for row in stacks.to_pylist() if row["depth"] == 0}
    methods = frames["method"].to_pylist()
    for row in samples.to_pylist():
        assert row["method"] == methods[leaves[row["stack"]]]


def test_samples_are_those_of_the_command(trace, timeline):
    printed = subprocess.run(
        ["chronosym", "stacks", "--format", "jsonl", str(trace)], check=True, capture_output=True, text=True
    )
    lines = [json.loads(line) for line in printed.stdout.splitlines()]
    wanted = [line for line in lines if "frames" in line]
    samples, stacks, frames = rows(timeline.samples()), rows(timeline.stacks()), rows(timeline.frames())
    methods = frames["method"].to_pylist()
    names = collections.defaultdict(list)
    for row in stacks.to_pylist():
        names[row["stack"]].append(methods[row["frame"]])

    def count(rows):
        return collections.Counter(rows)

    of_command = count(
        (line["time_ns"], tuple(frame.get("name") for frame in line["frames"])) for line in wanted
    )
    here = count((row["time_ns"], tuple(names[row["stack"]])) for row in samples.to_pylist())
    assert here == of_command


def queries(timeline):
    samples, stacks, frames = rows(timeline.samples()), rows(timeline.stacks()), rows(timeline.frames())
    leaves = {row["stack"]: row["frame"] for row in stacks.to_pylist() if row["depth"] == 0}
    addresses = frames["address"].to_pylist()
    pid = samples["pid"].to_pylist()
    time = samples["time_ns"].to_pylist()
    address = [addresses[leaves[stack]] for stack in samples["stack"].to_pylist()]
    return pid, time, address


def test_every_kind_of_array_has_the_same_answers(timeline):
    pid, time, address = queries(timeline)
    wanted = pyarrow.table(timeline.resolve(pid, time, address))
    assert wanted.num_rows >= len(pid)
    for make in [
        lambda it: numpy.array(it, dtype=numpy.uint64),
        lambda it: numpy.array(it, dtype=numpy.int64),
        lambda it: numpy.repeat(numpy.array(it, dtype=numpy.uint64), 2)[::2],
        lambda it: pyarrow.array(it, type=pyarrow.uint64()),
        lambda it: pyarrow.array([1, *it, 2], type=pyarrow.int64())[1:-1],
        lambda it: pyarrow.chunked_array([it[:10], it[10:]], type=pyarrow.uint64()),
        tuple,
    ]:
        assert pyarrow.table(timeline.resolve(make(pid), make(time), make(address))) == wanted
    one = timeline.resolve(pid[0], time[0], [address[0]] * 3)
    assert pyarrow.table(one)["query"].to_pylist() == [0, 1, 2]


def test_a_batch_has_the_frames_of_single_answers(timeline):
    pid, time, address = queries(timeline)
    table = pyarrow.table(timeline.resolve(pid, time, address)).to_pylist()
    of_query = collections.defaultdict(list)
    for row in table:
        of_query[row.pop("query")].append(row)
    for query in range(0, len(pid), 17):
        frames = timeline.frames_at(pid[query], time[query], address[query])
        assert [{name: getattr(frame, name) for name in of_query[query][0]} for frame in frames] == of_query[query]


def test_a_resolver_has_the_frames_of_a_batch(timeline):
    pid, time, address = queries(timeline)
    asked = numpy.zeros(len(pid), chronosym.QUERY)
    asked["pid"], asked["time_ns"], asked["address"] = pid, time, address
    asked["is_return"][::2] = 1
    wanted = pyarrow.table(timeline.resolve(pid, time, address, return_address=asked["is_return"])).to_pylist()
    resolver = timeline.resolver()
    assert resolver.frames().num_rows == 0
    for part in [asked[:10], asked]:
        rows = pyarrow.record_batch(resolver.resolve(part))["frames"].to_pylist()
        frames = pyarrow.record_batch(resolver.frames()).to_pylist()
        answers = [{"query": query} | frames[frame] for query, row in enumerate(rows) for frame in row]
        assert answers == [row for row in wanted if row["query"] < len(part)]
    assert len(frames) < len(wanted)
    memory = memoryview(asked).toreadonly()
    assert resolver.resolve(memory).num_rows == len(asked)


def test_unknown_addresses_have_a_reason(timeline):
    pid = timeline.processes[0]["pid"]
    row = pyarrow.table(timeline.resolve(pid, 0, 0x1234)).to_pylist()[0]
    assert row["method"] is None and row["name_reason"] is not None
    (frame,) = timeline.frames_at(pid, 0, 0x1234)
    assert frame.name_reason == row["name_reason"]
    assert str(frame) == frame.label and "0x1234" in repr(frame)


def test_bodies_cover_their_names(timeline):
    bodies = rows(timeline.bodies()).to_pylist()
    named = [body for body in bodies if body["method"]][::50]
    assert named
    for body in named:
        (frame, *_) = timeline.frames_at(body["pid"], body["from_ns"], body["start"])[-1:]
        assert frame.method == body["method"]


def test_events_come_in_batches(trace, timeline):
    loads = rows(timeline.events("Microsoft-Windows-DotNETRuntime/143", "Microsoft-Windows-DotNETRuntimeRundown/144"))
    assert loads.num_rows > 100
    assert set(loads["id"].to_pylist()) <= {143, 144}
    fields = [json.loads(text) for text in loads["fields"].to_pylist()]
    assert all("MethodStartAddress" in it for it in fields)
    counts = collections.Counter()
    for batch in timeline.events():
        assert 0 < len(batch) <= 8192
        counts["all"] += batch.num_rows
    printed = subprocess.run(
        ["chronosym", "events", "--format", "jsonl", str(trace)], check=True, capture_output=True, text=True
    )
    assert counts["all"] == len(printed.stdout.splitlines())
    with pytest.raises(ValueError, match="PROVIDER"):
        timeline.events("/80")


def test_saved_timelines_have_the_same_answers(timeline, tmp_path):
    path = tmp_path / "it.chrono"
    timeline.save(path, samples=True)
    saved = chronosym.open(path)
    assert rows(saved.samples()).num_rows == rows(timeline.samples()).num_rows
    pid, time, address = queries(timeline)
    assert pyarrow.table(saved.resolve(pid, time, address)) == pyarrow.table(timeline.resolve(pid, time, address))


def test_consumers_take_tables(timeline):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(timeline.samples())
    assert frame.height == pyarrow.table(timeline.samples()).num_rows
    batch = timeline.resolve(1, 2, [3, 4])
    assert polars.DataFrame(batch).height == 2
    assert pyarrow.record_batch(batch).num_rows == 2
    assert batch.column_names[0] == "query"
    assert len(batch) == 2 and "2 rows" in repr(batch)


def test_pandas_and_duckdb_take_tables(timeline):
    pandas = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")
    expected = pyarrow.table(timeline.samples())
    frame = pandas.DataFrame.from_arrow(timeline.samples())
    assert len(frame) == expected.num_rows
    assert frame["weight_ns"].sum() == pyarrow.compute.sum(expected["weight_ns"]).as_py()
    samples = timeline.samples()
    query = "select method, count(*) as samples from samples group by all order by all"
    counted = duckdb.sql(query).fetchall()
    own = expected.group_by("method").aggregate([([], "count_all")]).to_pylist()
    assert dict(counted) == {row["method"]: row["count_all"] for row in own}
    batch = timeline.resolve(1, 2, [3, 4])
    assert len(pandas.DataFrame.from_arrow(batch)) == 2


def test_the_notebook_runs(trace, monkeypatch):
    pytest.importorskip("pandas")
    folder = pathlib.Path(__file__).parents[2]
    monkeypatch.setenv("CHRONOSYM_TRACE", str(trace))
    monkeypatch.setenv("CHRONOSYM_SYMBOLS", str(folder / "testdata/clr10/workload"))
    notebook = json.loads((folder / "python/examples/hottest_lines.ipynb").read_text())
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
            assert cell["outputs"] == []
    assert len(names["table"]) == 10
    assert names["table"].to_numpy().sum() > 0
    picture = names["Picture"](names["table"]).svg
    assert picture.startswith("<svg") and names["table"].index[0] in picture


def test_a_reader_can_be_read_once(timeline):
    reader = timeline.samples()
    assert pyarrow.table(reader).num_rows > 0
    with pytest.raises(RuntimeError, match="already read"):
        pyarrow.table(reader)
    assert list(reader) == []


def test_the_command_is_installed():
    printed = subprocess.run(["chronosym", "--version"], check=True, capture_output=True, text=True)
    assert chronosym.__version__ in printed.stdout

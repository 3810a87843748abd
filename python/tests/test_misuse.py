"""Misuse is an exception that says what is wrong; threads and forked processes get answers."""

import gc
import os
import threading

import numpy
import pyarrow
import pytest

import chronosym


def test_errors_have_kind_path_and_offset(tmp_path, trace):
    with pytest.raises(chronosym.Error) as missing:
        chronosym.open("/nowhere")
    assert (missing.value.kind, missing.value.path, missing.value.offset) == ("not_found", "/nowhere", None)
    text = tmp_path / "it.txt"
    text.write_text("no trace")
    with pytest.raises(chronosym.Error) as other:
        chronosym.open([text])
    assert (other.value.kind, other.value.path) == ("format", str(text))
    saved = tmp_path / "it.chrono"
    chronosym.open(trace).save(saved)
    saved.write_bytes(saved.read_bytes()[:-30])
    with pytest.raises(chronosym.Error) as damaged:
        chronosym.open(saved)
    assert damaged.value.kind == "damaged" and damaged.value.offset is not None
    with pytest.raises(chronosym.Error) as inputs:
        chronosym.open([trace, trace])
    assert inputs.value.kind == "inputs"
    with pytest.raises(chronosym.Error) as unwritable:
        chronosym.open(trace).save("/nowhere/it.chrono")
    assert (unwritable.value.kind, unwritable.value.path) == ("not_found", "/nowhere/it.chrono")


def test_progress_can_cancel_and_raise(trace):
    calls = []
    chronosym.open(trace, progress=lambda read, total: calls.append((read, total)))
    assert calls and calls[-1][1] == trace.stat().st_size
    with pytest.raises(chronosym.Error) as cancelled:
        chronosym.open(trace, progress=lambda read, total: False)
    assert cancelled.value.kind == "cancelled"

    def fails(read, total):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        chronosym.open(trace, progress=fails)
    with pytest.raises(TypeError):
        chronosym.open(trace, progress=3)


@pytest.mark.parametrize(
    ("pid", "time", "address", "error"),
    [
        (1, 2, "text", TypeError),
        (1, 2, 1.5, TypeError),
        (1, 2, None, TypeError),
        (1, 2, [1, None], TypeError),
        (1, 2, [-1], ValueError),
        (-1, 2, 3, ValueError),
        (1 << 40, 2, 3, ValueError),
        (1, [1, 2], [1, 2, 3], ValueError),
        (1, 2, numpy.zeros((2, 2), dtype=numpy.uint64), ValueError),
        (1, 2, numpy.array([1.5]), TypeError),
        (1, 2, numpy.array([-1]), ValueError),
        (1, 2, pyarrow.array([1, None]), ValueError),
        (1, 2, pyarrow.array(["text"]), TypeError),
        (1, 2, pyarrow.array([1.5]), TypeError),
        (1, 2, pyarrow.array(["a"]).dictionary_encode(), TypeError),
    ],
)
def test_wrong_arguments_are_refused(timeline, pid, time, address, error):
    with pytest.raises(error):
        timeline.resolve(pid, time, address)


@pytest.mark.parametrize(
    ("queries", "error"),
    [
        (None, TypeError),
        ([(1, 2, 3, 0)], TypeError),
        (b"123456789012345678901234", TypeError),
        (numpy.zeros(24, dtype=numpy.uint8), TypeError),
        (numpy.zeros(2, [("time_ns", "<u8"), ("address", "<u8"), ("pid", "<u4"), ("is_return", "<u4")]), TypeError),
        (numpy.zeros(2, [("address", "<f8"), ("time_ns", "<u8"), ("pid", "<u4"), ("is_return", "<u4")]), TypeError),
        (numpy.zeros(2, [("address", ">u8"), ("time_ns", ">u8"), ("pid", ">u4"), ("is_return", ">u4")]), TypeError),
        (numpy.zeros(2, [("address", "<u4"), ("time_ns", "<u4"), ("pid", "<u8"), ("is_return", "<u8")]), TypeError),
        (numpy.zeros((2, 2), dtype=chronosym.QUERY), ValueError),
        (numpy.zeros(4, dtype=chronosym.QUERY)[::2], ValueError),
        (numpy.zeros(25, dtype=numpy.uint8)[1:].view(chronosym.QUERY), ValueError),
    ],
)
def test_wrong_queries_are_refused(timeline, queries, error):
    with pytest.raises(error):
        timeline.resolver().resolve(queries)


def test_a_resolver_survives_what_it_is_made_of(trace):
    queries = numpy.zeros(3, chronosym.QUERY)
    resolver = chronosym.open(trace).resolver()
    rows = pyarrow.record_batch(resolver.resolve(queries))
    frames = pyarrow.record_batch(resolver.frames())
    del resolver, queries
    gc.collect()
    assert [len(row) for row in rows["frames"].to_pylist()] == [1, 1, 1]
    assert frames["name_reason"].to_pylist()[0]


def test_threads_share_a_resolver(timeline):
    resolver, queries = timeline.resolver(), numpy.zeros(100_000, chronosym.QUERY)
    queries["address"] = numpy.arange(100_000)
    wanted = pyarrow.record_batch(resolver.resolve(queries))
    stop = threading.Event()

    def change():
        # Queries may change while they are read.
        while not stop.is_set():
            queries["time_ns"] += 1

    changing = threading.Thread(target=change)
    changing.start()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(resolver.resolve(queries))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    changing.join()
    assert [it.num_rows for it in answers] == [wanted.num_rows] * 4


def test_a_resolver_continues_with_a_later_timeline():
    live = chronosym.LiveSession()
    live.symbol(0, 42, 0x1000, 16, "first")
    live.publish()
    resolver = live.timeline().resolver()
    queries = numpy.array([(0x1008, 10, 42, 0), (0x2008, 10, 42, 0)], chronosym.QUERY)

    def names():
        rows = pyarrow.record_batch(resolver.resolve(queries))["frames"].to_pylist()
        methods = pyarrow.record_batch(resolver.frames())["method"].to_pylist()
        return [(row[0], methods[row[0]]) for row in rows]

    (first, unknown) = names()
    assert (first[1], unknown[1]) == ("first", None)
    live.symbol(5, 42, 0x2000, 16, "second")
    live.publish()
    resolver.advance_to(live.timeline())
    (again, second) = names()
    assert again == first and second[1] == "second"
    with pytest.raises(TypeError):
        resolver.advance_to(None)


def test_empty_arrays_have_no_rows(timeline):
    assert timeline.resolver().resolve(numpy.zeros(0, chronosym.QUERY)).num_rows == 0
    assert timeline.resolve(1, 2, []).num_rows == 0
    assert timeline.resolve(1, 2, pyarrow.array([], type=pyarrow.uint64())).num_rows == 0
    assert timeline.resolve(1, 2, numpy.array([], dtype=numpy.uint64)).num_rows == 0


def test_tables_outlive_what_they_are_made_of(trace):
    table = pyarrow.table(chronosym.open(trace).samples())
    batch = pyarrow.record_batch(chronosym.open(trace).resolve(1, 2, [3]))
    reader = chronosym.open(trace).frames()
    gc.collect()
    assert table.num_rows == len(table["method"].to_pylist())
    assert batch.num_rows == 1
    assert pyarrow.table(reader).num_rows > 0


def test_capsules_that_nobody_takes_are_freed(timeline):
    batch = timeline.resolve(1, 2, [3])
    for _ in range(100):
        batch.__arrow_c_array__()
        batch.__arrow_c_stream__()
        batch.__arrow_c_schema__()
        timeline.bodies().__arrow_c_stream__()
    gc.collect()


def test_threads_share_a_timeline(timeline):
    wanted = pyarrow.table(timeline.samples())
    answers = []

    def work():
        answers.append(pyarrow.table(timeline.samples()))
        timeline.resolve(1, 2, list(range(1000)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert all(answer.num_rows == wanted.num_rows for answer in answers)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_processes_get_answers(timeline):
    wanted = timeline.resolve(1, 2, [3]).num_rows
    child = os.fork()
    if child == 0:
        os._exit(0 if timeline.resolve(1, 2, [3]).num_rows == wanted else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_live_sessions():
    second = 1_000_000_000
    live = chronosym.LiveSession()
    live.process(0, 42, "app")
    live.module(0, 42, 7, "/app/Day.dll")
    for now in range(1, 601):
        live.method(
            now * second, 42, now, 0x1000 + now % 8 * 0x100, 64,
            type_name="Day", name=f"Second{now}", signature="void ()", module=7, thread=1,
        )  # fmt: skip
        live.advance(now * second)
        live.publish()
        live.forget_before(max(now - 60, 0) * second)
    timeline = live.timeline()
    (frame,) = timeline.frames_at(42, 599 * second, 0x1010 + 599 % 8 * 0x100)
    assert (frame.module, frame.method) == ("Day", "Day.Second599")
    assert not timeline.frames_at(42, 1 * second, 0x1110)[0].method
    with pytest.raises(ValueError, match="action"):
        live.process(0, 42, action="start")
    with pytest.raises(ValueError, match="range"):
        live.symbol(0, 42, 1, 0, "nothing")
    with pytest.raises(OverflowError):
        live.process(-1, 42)
    live.symbol(0, 42, 0x9000, 16, "stub")
    assert live.finish().frames_at(42, 600 * second, 0x9008)[0].method == "stub"


def test_a_live_session_reads_a_stream(trace, timeline):
    live = chronosym.LiveSession()
    with pytest.raises(chronosym.Error) as missing:
        live.read("/nowhere")
    assert missing.value.kind == "not_found"
    thread = threading.Thread(target=live.read, args=(trace,))
    thread.start()
    while thread.is_alive():
        live.timeline()
    thread.join()
    latest = live.finish()
    assert pyarrow.table(latest.bodies()).num_rows == pyarrow.table(timeline.bodies()).num_rows
    with pytest.raises(chronosym.Error):
        latest.events()


def test_symbols(trace, tmp_path):
    with pytest.raises(ValueError, match="debuginfod"):
        chronosym.Symbols(debuginfod="not a url")
    with pytest.raises(TypeError):
        chronosym.open(trace, symbols=3)
    for symbols in [tmp_path, [tmp_path], chronosym.Symbols([tmp_path], offline=True)]:
        assert chronosym.open(trace, symbols=symbols, samples=False).processes

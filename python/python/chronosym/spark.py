"""Recordings as tables of Apache Spark, and names of bare addresses in Spark.

Needs `pip install chronosym[spark]`. The tables are those of docs/fleet/schema.md::

    from chronosym.spark import register, resolve

    register(spark)
    samples = spark.read.format("chronosym").load("traces/*.nettrace")

Each recording is a partition, which one task reads by running the command `chronosym export` beside Python. The command's memory
is limited, and a recording that cannot be read has no rows but those of the table `diagnostics`.
"""

# Checked where Spark is installed: its tests run, and it has no stub.
# mypy: ignore-errors

from __future__ import annotations

import glob
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from .addresses import SCHEMA, AddressResolver, command

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ChronosymDataSource", "register", "resolve"]

_SCHEMAS = {
    "samples": "trace string, host string, boot string, pid bigint, start bigint, process string, tid bigint, thread string, "
    "time bigint, event string, kind string, activity string, weight bigint, unit string, stack_id bigint",
    "profiles": "trace string, host string, boot string, pid bigint, start bigint, process string, tid bigint, thread string, "
    "first bigint, last bigint, event string, kind string, activity string, weight bigint, unit string, count bigint, "
    "stack array<string>",
    "stacks": "stack_id bigint, caller_id bigint, frame_id bigint",
    "frames": "trace string, frame_id bigint, label string, module string, method string, signature string, file string, "
    "line int, inlined boolean, identity string, rva bigint, token bigint, address bigint, evidence string, certainty string, "
    "name_reason string",
    "processes": "trace string, host string, boot string, pid bigint, start bigint, end bigint, name string, "
    "command_line string, runtime string, managed boolean, rundown boolean",
    "modules": "trace string, host string, boot string, pid bigint, start bigint, kind string, name string, path string, "
    "native_path string, identity string, native_identity string, base bigint, size bigint, loaded bigint, unloaded bigint",
    "diagnostics": "trace string, host string, kind string, count bigint, file string, text string",
}
_COMPARISONS = {
    EqualTo: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}
_FILTERED = {"time", "pid", "process", "event"}
_MEMORY = 2 << 30


class _Recording(InputPartition):
    def __init__(self, path: str):
        self.path = path


class ChronosymDataSource(DataSource):
    """`spark.read.format("chronosym").load(GLOB)`. Options:

    - `table`: `samples` (default), `profiles` (sums of samples with their stacks), `stacks`, `frames`, `processes`, `modules` or
      `diagnostics`;
    - `stacks`: with `true`, samples have a column `stack`, the labels of their frames, innermost first;
    - `event`: an event instead of profiler samples, as `--event` of the command;
    - `symbols`: a folder with symbol files; `host`: the machine's name for recordings that do not state it;
    - `memory`: bytes that the command may use for one recording, 2 GiB by default.

    Paths and folders are those of the executors.
    """

    @classmethod
    def name(cls) -> str:
        return "chronosym"

    def schema(self) -> str:
        table = self.options.get("table", "samples")
        if table not in _SCHEMAS:
            raise ValueError(f"there is no table {table}: expected one of {', '.join(_SCHEMAS)}")
        schema = _SCHEMAS[table]
        return schema + ", stack array<string>" if self._with_stacks() else schema

    def reader(self, schema: Any) -> DataSourceReader:
        return _Reader(dict(self.options), self._with_stacks())

    def _with_stacks(self) -> bool:
        is_samples = self.options.get("table", "samples") == "samples"
        return is_samples and self.options.get("stacks", "").lower() == "true"


class _Reader(DataSourceReader):
    def __init__(self, options: dict[str, str], with_stacks: bool):
        self.table = options.get("table", "samples")
        self.with_stacks = with_stacks
        self.memory = int(options.get("memory", _MEMORY))
        self.arguments = []
        for option in ("event", "symbols", "host"):
            if option in options:
                self.arguments += [f"--{option}", options[option]]
        if self.table == "profiles":
            self.arguments.append("--sums")
        self.pattern = options.get("path", "")
        self.filters: list[tuple[str, Any, Any]] = []

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:
        for one in filters:
            column = one.attribute[0] if hasattr(one, "attribute") and len(one.attribute) == 1 else None
            is_known = type(one) in _COMPARISONS or isinstance(one, In)
            if self.table in ("samples", "profiles") and column in _FILTERED and is_known:
                self.filters.append((column, type(one), one.value))
            else:
                yield one

    def partitions(self) -> list[InputPartition]:
        paths = sorted(glob.glob(self.pattern, recursive=True)) or [self.pattern]
        return [_Recording(path) for path in paths]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Recording)
        with tempfile.TemporaryDirectory(prefix="chronosym-") as folder:
            problem = self._export(partition.path, folder)
            yield from self._rows(Path(folder))
        if problem is not None and self.table == "diagnostics":
            row = {"trace": partition.path, "host": None, "kind": "damage", "count": 1, "file": None, "text": problem}
            types = {"count": pa.int64()}
            yield pa.record_batch({name: pa.array([value], types.get(name, pa.string())) for name, value in row.items()})

    def _export(self, path: str, folder: str) -> str | None:
        """Exports a recording; returns why there are no tables, not even diagnostics."""
        memory = self.memory

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))

        budget = ["--max-memory", str(memory // 2)]
        words = [command(), "--quiet", *budget, "export", "--format", "arrow", *self.arguments, "-o", folder, "--", path]
        run = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=limit)
        if run.returncode == 0 or any(Path(folder).glob("diagnostics/*.arrow")):
            return None
        text = run.stderr.decode(errors="replace").strip().splitlines()
        return f"chronosym ended with status {run.returncode}: {text[-1] if text else 'no message'}"

    def _rows(self, folder: Path) -> Iterator[pa.RecordBatch]:
        for path in (folder / self.table).glob("*.arrow"):
            stacks = _Stacks(folder) if self.with_stacks else None
            # Read into memory: Spark may use a batch after the file is gone.
            for batch in _batches(path):
                batch = self._filtered(batch)
                if batch.num_rows == 0:
                    continue
                columns = [_plain(column) for column in batch.columns]
                names = list(batch.schema.names)
                if stacks is not None:
                    columns.append(stacks.of(batch.column("stack_id")))
                    names.append("stack")
                yield pa.record_batch(columns, names=names)

    def _filtered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for column, kind, value in self.filters:
            values = _plain(batch.column(column))
            if kind is In:
                keep = pc.is_in(values, pa.array(value, values.type))
            else:
                keep = _COMPARISONS[kind](values, pa.scalar(value, values.type))
            batch = batch.filter(keep)
        return batch


def _plain(column: pa.Array) -> pa.Array:
    """A column of texts, or of lists of them, without its dictionary."""
    if pa.types.is_list(column.type):
        return column.cast(pa.list_(pa.string()))
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


class _Stacks:
    """The labels of the frames of each stack, innermost first."""

    def __init__(self, folder: Path):
        self.labels: dict[int, str] = {}
        self.rows: dict[int, tuple[int | None, int]] = {}
        self.known: dict[int | None, list[str] | None] = {None: None}
        for path in (folder / "frames").glob("*.arrow"):
            for batch in _batches(path):
                labels = _plain(batch.column("label")).to_pylist()
                self.labels.update(zip(batch.column("frame_id").to_pylist(), labels))
        for path in (folder / "stacks").glob("*.arrow"):
            for batch in _batches(path):
                columns = [batch.column(name).to_pylist() for name in ("stack_id", "caller_id", "frame_id")]
                self.rows.update((stack, (caller, frame)) for stack, caller, frame in zip(*columns))

    def _stack(self, stack: int | None) -> list[str] | None:
        if stack not in self.known:
            labels, next = [], stack
            while next is not None:
                next, frame = self.rows[next]
                labels.append(self.labels[frame])
            self.known[stack] = labels
        return self.known[stack]

    def of(self, ids: pa.Array) -> pa.Array:
        return pa.array([self._stack(stack) for stack in ids.to_pylist()], pa.list_(pa.string()))


def register(spark: SparkSession) -> None:
    """Makes the format `chronosym` known to a session, and lets it push filters down."""
    spark.dataSource.register(ChronosymDataSource)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


# Python processes of executors serve many tasks: timelines stay open between them.
_resolvers: dict[tuple[str, str | None, bool], AddressResolver] = {}


def resolve(df: DataFrame, *, timelines: str, symbols: str | None = None, caller: bool = False) -> DataFrame:
    """Adds a column `names` to rows of bare addresses: the functions at the address, innermost first.

    `df` has the columns `key` (the name of a file in `timelines`, and `#PID` if it has several processes), `time` (ns since
    1970-01-01 UTC) and `address`. With `caller`, addresses are return addresses. `timelines` and `symbols` are folders of the
    executors. A name that is not known has its reason in parentheses.
    """
    from pyspark.sql.types import ArrayType, StringType, StructField, StructType

    key = (timelines, symbols, caller)
    schema = StructType([*df.schema.fields, StructField("names", ArrayType(StringType()))])

    def named(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in _joined(batches):
            resolver = _resolvers.get(key)
            if resolver is None:
                resolver = _resolvers[key] = AddressResolver(timelines, symbols=symbols, caller=caller)
            names = resolver(*(batch.column(field.name) for field in SCHEMA))
            yield pa.record_batch([*batch.columns, names], names=[*batch.schema.names, "names"])

    return df.mapInArrow(named, schema)


# Rows of a call: the more there are of a process, the less each of them costs.
_ROWS = 1 << 18


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Joins batches until they have enough rows."""
    waiting, rows = [], 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting, rows = [], 0
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()

"""Names of bare addresses in Arrow, for engines that call functions of Python.

Needs pyarrow. DuckDB, Polars, DataFusion and Spark pass columns of keys, times and addresses::

    from chronosym.addresses import AddressResolver

    resolver = AddressResolver(timelines="timelines")
    names = resolver(keys, times, addresses)    # a list of texts for each row, innermost first
"""

# Checked where pyarrow is installed: its tests run, and it has no stub.
# mypy: ignore-errors

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

__all__ = ["AddressResolver", "NAMES", "SCHEMA", "command"]

SCHEMA = pa.schema([("key", pa.string()), ("time", pa.int64()), ("address", pa.int64())])
"""The columns of bare addresses."""

NAMES = pa.list_(pa.string())
"""The type of the names of an address."""


def command() -> str:
    """Returns the path of the command that was installed with this package, or of another one on the path."""
    installed = Path(sysconfig.get_path("scripts")) / "chronosym"
    found = str(installed) if installed.exists() else shutil.which("chronosym")
    if found is None:
        raise RuntimeError("the command chronosym is not installed on this machine")
    return found


class AddressResolver:
    """Resolves bare addresses with a process `chronosym resolve` that keeps timelines open. Threads may share it.

    `timelines` and `symbols` are folders. With `caller`, addresses are return addresses.
    """

    def __init__(self, timelines: str, *, symbols: str | None = None, caller: bool = False):
        self._words = [command(), "--quiet", "resolve", "--stdin", "arrow", "--timelines", str(timelines)]
        if symbols is not None:
            self._words += ["--symbols", str(symbols)]
        if caller:
            self._words.append("--caller")
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, keys: Any, times: Any, addresses: Any) -> pa.Array:
        """Returns the names of each row: functions, innermost first, or a reason in parentheses. Columns are Arrow arrays."""
        columns = [_array(column).cast(field.type) for column, field in zip((keys, times, addresses), SCHEMA)]
        batch = pa.record_batch(columns, schema=SCHEMA)
        if batch.num_rows == 0:
            return pa.array([], NAMES)
        with self._lock:
            try:
                return self._ask(batch)
            except BaseException:
                # The pipes may hold part of a batch.
                self._stop()
                raise

    def close(self) -> None:
        """Ends the process; a later call starts another one."""
        with self._lock:
            self._stop()

    def __enter__(self) -> AddressResolver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, batch: pa.RecordBatch) -> pa.Array:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = subprocess.Popen(self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._writer = pa.ipc.new_stream(self._process.stdin, SCHEMA)
            self._reader = None
        self._writer.write_batch(batch)
        self._process.stdin.flush()
        if self._reader is None:
            self._reader = pa.ipc.open_stream(self._process.stdout)
        return self._reader.read_next_batch().column("names").cast(NAMES)

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _array(column: Any) -> pa.Array:
    """An array in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

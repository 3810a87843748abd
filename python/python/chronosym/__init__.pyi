"""What code was at address A of process P at time T? Resolves .NET and native samples of traces."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, Self, TypeAlias, final

__version__: str

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _Buffer(Protocol):
    def __buffer__(self, flags: int, /) -> memoryview: ...

_Path: TypeAlias = str | PathLike[str]
_Numbers: TypeAlias = int | Sequence[int] | _ArrowArray | _ArrowStream | _Buffer
_Action: TypeAlias = Literal["load", "unload", "listed_at_start", "listed_at_end"]

QUERY: list[tuple[str, str]]
"""The fields of a query, of which numpy makes a dtype: `numpy.zeros(n, chronosym.QUERY)`."""

class Error(Exception):
    """A trace cannot be read, or a file not written."""

    kind: str
    """`not_found`, `io`, `format`, `damaged`, `limit`, `inputs` or `cancelled`."""
    path: str | None
    """The file."""
    offset: int | None
    """The position in the file at which reading failed, in bytes."""

@final
class RecordBatch:
    """Rows with named columns, which pyarrow, polars, pandas and duckdb take without a copy."""

    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class RecordBatchReader(Iterator[RecordBatch]):
    """Batches of rows, made one at a time. They can be read once."""

    @property
    def column_names(self) -> list[str]: ...
    def __iter__(self) -> RecordBatchReader: ...
    def __next__(self) -> RecordBatch: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Frame:
    """What is known of the code at an address; None stands for what is unknown."""

    @property
    def address(self) -> int: ...
    @property
    def module(self) -> str | None: ...
    @property
    def method(self) -> str | None: ...
    @property
    def signature(self) -> str | None: ...
    @property
    def offset(self) -> int | None: ...
    @property
    def file(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...
    @property
    def column(self) -> int | None: ...
    @property
    def inlined(self) -> bool: ...
    @property
    def tier(self) -> str | None: ...
    @property
    def evidence(self) -> str | None: ...
    @property
    def certainty(self) -> str | None: ...
    @property
    def name_reason(self) -> str | None: ...
    @property
    def line_reason(self) -> str | None: ...
    @property
    def label(self) -> str: ...

@final
class Symbols:
    """A source of symbols, for any number of timelines and threads. It searches only what is named here."""

    def __new__(
        cls,
        folders: Sequence[_Path] = ...,
        *,
        path: str | None = None,
        debuginfod: str | None = None,
        cache: _Path | None = None,
        offline: bool = False,
        trust_trace_paths: bool = False,
        lines: bool = True,
        pretty: bool = False,
        any_pdb: bool = False,
    ) -> Self: ...

@final
class Timeline:
    """The recorded lifetimes of all code of a trace. Any number of threads can use it."""

    @property
    def processes(self) -> list[dict[str, Any]]: ...
    @property
    def diagnostics(self) -> list[str]:
        """What was wrong with the recording."""
    @property
    def lost_events(self) -> int:
        """Number of events that the recorder lost, as far as it states them."""
    @property
    def duration_ns(self) -> int:
        """Time of the last event, in ns since the trace began."""
    def resolve(
        self,
        pid: _Numbers,
        time_ns: _Numbers,
        address: _Numbers,
        *,
        return_address: _Numbers | None = None,
    ) -> RecordBatch:
        """Resolve addresses: a row for each frame of each query, innermost first.

        `return_address` is True or 1 for return addresses.
        """
    def resolver(self) -> Resolver:
        """Return a resolver for batches of addresses."""
    def frames_at(
        self, pid: int, time_ns: int, address: int, *, return_address: bool = False
    ) -> list[Frame]:
        """Return the frames of one address, innermost first."""
    def samples(self) -> RecordBatchReader:
        """Return the samples in time order, each with the number of its stack and the names of its innermost frame."""
    def stacks(self) -> RecordBatchReader:
        """Return the stacks of all samples: a row for each frame, innermost first."""
    def frames(self) -> RecordBatchReader:
        """Return the frames that stacks refer to."""
    def bodies(self) -> RecordBatchReader:
        """Return the code bodies, process by process."""
    def events(self, *types: str) -> RecordBatchReader:
        """Return the events of the trace, or those of the given types: `PROVIDER` or `PROVIDER/ID`."""
    def save(self, path: _Path, *, samples: bool = False) -> None:
        """Save what names addresses in a small file, which `open` reads."""

@final
class Resolver:
    """Resolves batches of addresses. Each distinct frame has a number. Any number of threads can use it."""

    def resolve(self, queries: _Buffer) -> RecordBatch:
        """Resolve an array of `QUERY`: a row for each query with the numbers of its frames, innermost first."""
    def frames(self) -> RecordBatch:
        """Return the frames so far: row n is the frame with the number n."""
    def advance_to(self, timeline: Timeline) -> None:
        """Continue with a later timeline of the same live session. Numbers of frames stay valid."""

@final
class LiveSession:
    """A session that resolves while facts still arrive. One thread feeds it; any thread gets timelines."""

    def __new__(cls, *, symbols: Symbols | Sequence[_Path] | _Path | None = None) -> Self: ...
    def process(self, time_ns: int, pid: int, name: str = "", *, action: _Action = "load") -> None: ...
    def image(
        self,
        time_ns: int,
        pid: int,
        base: int,
        size: int,
        path: str,
        *,
        file_offset: int = 0,
        build_id: str = "",
        action: _Action = "load",
    ) -> None: ...
    def module(self, time_ns: int, pid: int, id: int, path: str, *, action: _Action = "load") -> None: ...
    def method(
        self,
        time_ns: int,
        pid: int,
        id: int,
        address: int,
        size: int,
        *,
        type_name: str = "",
        name: str = "",
        signature: str = "",
        module: int = 0,
        token: int = 0,
        thread: int | None = None,
        action: _Action = "load",
    ) -> None: ...
    def symbol(self, time_ns: int, pid: int, address: int, size: int, name: str) -> None: ...
    def read(self, path: _Path) -> None:
        """Read a nettrace stream until its end, and publish each batch."""
    def advance(self, watermark_ns: int) -> None:
        """Promise that no event of an earlier time is to come."""
    def publish(self) -> None:
        """Show readers all that was stated."""
    def forget_before(self, horizon_ns: int) -> int:
        """Drop what ended before a time. Return the number of code bodies."""
    def timeline(self) -> Timeline:
        """Return the timeline as it was last published."""
    def finish(self) -> Timeline:
        """Publish final answers, and return the timeline."""

def open(
    paths: _Path | Sequence[_Path],
    *,
    symbols: Symbols | Sequence[_Path] | _Path | None = None,
    progress: Callable[[int, int | None], object] | None = None,
    samples: bool = True,
    trust_trace_paths: bool = False,
    max_memory: int | None = None,
) -> Timeline:
    """Read a trace, or several files of one recording.

    `progress` receives bytes read and bytes of all inputs; False stops the reading, and an exception leaves this function.
    """

"""What code was at address A of process P at time T? Resolves .NET and native samples of traces."""

from ._chronosym import (
    QUERY,
    Error,
    Frame,
    LiveSession,
    RecordBatch,
    RecordBatchReader,
    Resolver,
    Symbols,
    Timeline,
    __version__,
    open,
)

__all__ = [
    "QUERY",
    "Error",
    "Frame",
    "LiveSession",
    "RecordBatch",
    "RecordBatchReader",
    "Resolver",
    "Symbols",
    "Timeline",
    "__version__",
    "open",
]

"""What code was at address A of process P at time T? Resolves .NET and native samples of traces."""

from ._chronosym import (
    Error,
    Frame,
    LiveSession,
    RecordBatch,
    RecordBatchReader,
    Symbols,
    Timeline,
    __version__,
    open,
)

__all__ = [
    "Error",
    "Frame",
    "LiveSession",
    "RecordBatch",
    "RecordBatchReader",
    "Symbols",
    "Timeline",
    "__version__",
    "open",
]

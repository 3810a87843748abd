namespace Chronosym;

/// <summary>The kind of a failure.</summary>
public enum Status
{
    /// <summary>An argument is not allowed.</summary>
    InvalidArgument = 1,
    /// <summary>An object was disposed.</summary>
    InvalidHandle = 2,
    /// <summary>Another thread is in a call with the same resolver or session.</summary>
    Busy = 3,
    /// <summary>A callback stopped the call.</summary>
    Cancelled = 4,
    /// <summary>A file does not exist.</summary>
    NotFound = 5,
    /// <summary>The system refuses or fails to read or write a file.</summary>
    Io = 6,
    /// <summary>The input is not a trace, or of an unsupported version.</summary>
    Format = 7,
    /// <summary>The input is a damaged trace of which nothing can be read.</summary>
    Damaged = 8,
    /// <summary>A limit was reached.</summary>
    Limit = 9,
    /// <summary>The inputs do not belong together.</summary>
    Inputs = 10,
    /// <summary>The call is not possible with this session.</summary>
    State = 11,
    /// <summary>A defect of chronosym.</summary>
    Internal = 12,
}

/// <summary>Why a call failed.</summary>
public sealed class ChronosymException : Exception
{
    internal ChronosymException(Status status, string message, string? path, ulong? offset)
        : base(message)
    {
        Status = status;
        Path = path;
        Offset = offset;
    }

    /// <summary>The kind of failure.</summary>
    public Status Status { get; }

    /// <summary>The file that the failure is about.</summary>
    public string? Path { get; }

    /// <summary>Offset in that file in bytes.</summary>
    public ulong? Offset { get; }
}

using System.Runtime.InteropServices;

namespace Chronosym;

/// <summary>The C interface, chronosym.h.</summary>
internal static unsafe class Native
{
    private const string Library = "chronosym_c";

    /// <summary>A handle of any type: each is a structure with a number.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct Handle
    {
        internal ulong Id;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct Error
    {
        internal nuint Size;
        internal int Status;
        internal byte* Message;
        internal byte* Path;
        internal ulong Offset;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct Text
    {
        internal byte* Data;
        internal nuint Length;

        public override string ToString() => Marshal.PtrToStringUTF8((nint)Data, (int)Length);
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct OpenOptions
    {
        internal nuint Size;
        internal delegate* unmanaged[Cdecl]<void*, ulong, ulong, byte> Progress;
        internal void* ProgressData;
        internal Handle Symbols;
        internal ulong UnpackedBytes;
        internal ulong MemoryBytes;
        internal uint Flags;
        internal uint Reserved;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct SymbolOptions
    {
        internal nuint Size;
        internal byte** Folders;
        internal nuint FolderCount;
        internal byte* SymbolPath;
        internal byte* DebuginfodUrls;
        internal byte* Cache;
        internal ulong MemoryBytes;
        internal uint Flags;
        internal uint Reserved;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct Process
    {
        internal Text Name;
        internal Text CommandLine;
        internal ulong StartNs;
        internal ulong EndNs;
        internal uint Pid;
        internal uint IsManaged;
        internal ulong Reserved0;
        internal ulong Reserved1;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct Diagnostic
    {
        internal Text Message;
        internal Text Path;
        internal ulong Count;
        internal uint Kind;
        internal uint Reserved;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct Rows
    {
        internal nuint Size;
        internal nuint Count;
        internal nuint* Offsets;
        internal uint* Frames;
        internal FrameRow* Table;
        internal nuint TableCount;
        internal byte* Texts;
        internal ulong* TextOffsets;
        internal nuint TextCount;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct Fact
    {
        internal uint Kind;
        internal uint Action;
        internal ulong TimeNs;
        internal uint Pid;
        internal uint Flags;
        internal ulong Thread;
        internal ulong Id;
        internal ulong ModuleId;
        internal ulong Address;
        internal ulong Size;
        internal ulong FileOffset;
        internal uint Token;
        internal uint Reserved;
        internal Text Name0;
        internal Text Name1;
        internal Text Name2;
        internal void* Pdb;
        internal void* IlEntries;
        internal nuint IlEntryCount;
        internal ulong* Addresses;
        internal nuint AddressCount;
        internal ulong WeightNs;
    }

    [DllImport(Library)] internal static extern int chronosym_last_error(Error* error);
    [DllImport(Library)] internal static extern byte* chronosym_name(uint list, uint value);
    [DllImport(Library)] internal static extern byte* chronosym_version();
    [DllImport(Library)] internal static extern int chronosym_open(byte** paths, nuint count, OpenOptions* options, Handle* timeline);
    [DllImport(Library)] internal static extern int chronosym_timeline_free(Handle timeline);
    [DllImport(Library)] internal static extern int chronosym_timeline_processes(Handle timeline, Process* processes, nuint capacity, nuint* count);
    [DllImport(Library)] internal static extern int chronosym_timeline_diagnostics(Handle timeline, Diagnostic* diagnostics, nuint capacity, nuint* count);
    [DllImport(Library)] internal static extern int chronosym_timeline_save(Handle timeline, byte* path, byte withSamples);
    [DllImport(Library)] internal static extern int chronosym_symbols_new(SymbolOptions* options, Handle* symbols);
    [DllImport(Library)] internal static extern int chronosym_symbols_free(Handle symbols);
    [DllImport(Library)] internal static extern int chronosym_resolver_new(Handle timeline, Handle symbols, Handle* resolver);
    [DllImport(Library)] internal static extern int chronosym_resolver_free(Handle resolver);
    [DllImport(Library)] internal static extern int chronosym_resolver_advance(Handle resolver, Handle timeline);
    [DllImport(Library)] internal static extern int chronosym_resolve(Handle resolver, Query* queries, nuint count, Rows* rows);
    [DllImport(Library)] internal static extern int chronosym_session_new_live(Handle* session);
    [DllImport(Library)] internal static extern int chronosym_session_free(Handle session);
    [DllImport(Library)] internal static extern int chronosym_session_apply(Handle session, Fact* facts, nuint count);
    [DllImport(Library)] internal static extern int chronosym_session_advance(Handle session, ulong watermarkNs);
    [DllImport(Library)] internal static extern int chronosym_session_publish(Handle session);
    [DllImport(Library)] internal static extern int chronosym_session_forget_before(Handle session, ulong horizonNs, nuint* dropped);
    [DllImport(Library)] internal static extern int chronosym_session_timeline(Handle session, Handle* timeline);
    [DllImport(Library)] internal static extern int chronosym_session_finish(Handle session, Handle* timeline);

    /// <summary>Throws the last failure of this thread unless a call succeeded.</summary>
    internal static void Check(int status)
    {
        if (status == 0)
        {
            return;
        }
        Error error = default;
        error.Size = (nuint)sizeof(Error);
        chronosym_last_error(&error);
        throw new ChronosymException(
            (Status)error.Status,
            Marshal.PtrToStringUTF8((nint)error.Message) ?? "",
            error.Path == null ? null : Marshal.PtrToStringUTF8((nint)error.Path),
            error.Offset == ulong.MaxValue ? null : error.Offset);
    }
}

/// <summary>Texts that end with a zero, in memory that does not move.</summary>
internal sealed unsafe class CTexts : IDisposable
{
    private readonly List<nint> texts = new();
    private nint array;

    internal byte* Add(string? text)
    {
        if (text == null)
        {
            return null;
        }
        if (text.Contains('\0'))
        {
            throw new ArgumentException("a text contains a zero character");
        }
        nint copy = Marshal.StringToCoTaskMemUTF8(text);
        texts.Add(copy);
        return (byte*)copy;
    }

    internal byte** Add(IReadOnlyList<string> all)
    {
        array = Marshal.AllocCoTaskMem(Math.Max(all.Count, 1) * sizeof(nint));
        for (int i = 0; i < all.Count; i++)
        {
            ((byte**)array)[i] = Add(all[i]);
        }
        return (byte**)array;
    }

    public void Dispose()
    {
        texts.ForEach(Marshal.FreeCoTaskMem);
        texts.Clear();
        Marshal.FreeCoTaskMem(array);
        array = 0;
    }
}

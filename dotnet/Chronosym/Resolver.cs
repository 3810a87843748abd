using System.Runtime.InteropServices;
using System.Text;

namespace Chronosym;

/// <summary>An address of a process at a time.</summary>
[StructLayout(LayoutKind.Sequential)]
public struct Query
{
    /// <summary>The address, as a stack has it.</summary>
    public ulong Address;
    /// <summary>ns since the trace began.</summary>
    public ulong TimeNs;
    /// <summary>The process id.</summary>
    public uint Pid;
    /// <summary>1 for a return address, 0 for the address of an instruction.</summary>
    public uint IsReturn;
}

/// <summary>A distinct frame. Texts are numbers for <see cref="Rows.Text"/>; 0 is the empty text, which stands for none.</summary>
[StructLayout(LayoutKind.Sequential)]
public struct FrameRow
{
    /// <summary>Text: simple name of the module or image.</summary>
    public uint Module;
    /// <summary>Text: the method with namespace and type; of native code the demangled symbol.</summary>
    public uint Method;
    /// <summary>Text: the signature as the runtime spells it.</summary>
    public uint Signature;
    /// <summary>Text: the source file.</summary>
    public uint File;
    /// <summary>The source line from 1, or 0.</summary>
    public uint Line;
    /// <summary>The column in the source line from 1, or 0.</summary>
    public uint Column;
    /// <summary>The number of the process if the code is a code body.</summary>
    public uint Process;
    /// <summary>The number of the code body in its process.</summary>
    public uint Body;
    /// <summary>1 if the frame is inlined into the next one that is not.</summary>
    public byte Inlined;
    private readonly byte tier;
    private readonly byte evidence;
    private readonly byte certainty;
    private readonly byte nameReason;
    private readonly byte lineReason;
    private readonly ushort reserved0;
    private readonly ulong reserved1;

    /// <summary>How the code was compiled, or the empty text.</summary>
    public string Tier => Name(5, tier);
    /// <summary>What the answer rests on, or the empty text.</summary>
    public string Evidence => Name(1, evidence);
    /// <summary>How sure the answer is, or the empty text.</summary>
    public string Certainty => Name(2, certainty);
    /// <summary>Why there is no name, or not all of it, or the empty text.</summary>
    public string NameReason => Name(3, nameReason);
    /// <summary>Why a frame with a name has no line, or the empty text.</summary>
    public string LineReason => Name(4, lineReason);

    private static unsafe string Name(uint list, byte value)
    {
        byte* name = Native.chronosym_name(list, value);
        return name == null ? "" : string.Intern(Marshal.PtrToStringUTF8((nint)name)!);
    }
}

/// <summary>The answers to a batch, valid until the next call with the same resolver.</summary>
public readonly unsafe ref struct Rows
{
    private readonly Native.Rows rows;
    private readonly Resolver resolver;

    internal Rows(in Native.Rows rows, Resolver resolver)
    {
        this.rows = rows;
        this.resolver = resolver;
    }

    /// <summary>Number of queries.</summary>
    public int Count => (int)rows.Count;

    /// <summary>The distinct frames of the resolver so far.</summary>
    public ReadOnlySpan<FrameRow> Table => new(rows.Table, (int)rows.TableCount);

    /// <summary>Returns the frames of a query, innermost first: positions in <see cref="Table"/>.</summary>
    public ReadOnlySpan<uint> FramesOf(int query)
    {
        if ((uint)query >= (uint)Count)
        {
            throw new ArgumentOutOfRangeException(nameof(query));
        }
        return new(rows.Frames + rows.Offsets[query], (int)(rows.Offsets[query + 1] - rows.Offsets[query]));
    }

    /// <summary>Returns a text in UTF-8, without an allocation.</summary>
    public ReadOnlySpan<byte> Utf8(uint text)
    {
        if (text >= rows.TextCount)
        {
            throw new ArgumentOutOfRangeException(nameof(text));
        }
        ulong start = rows.TextOffsets[text];
        return new(rows.Texts + start, (int)(rows.TextOffsets[text + 1] - start - 1));
    }

    /// <summary>Returns a text, which is made once for each resolver.</summary>
    public string Text(uint text) => resolver.Text(text, Utf8(text));
}

/// <summary>Resolves addresses of a timeline. One thread at a time can use it.</summary>
public sealed unsafe class Resolver : Owner
{
    private readonly List<string?> texts = new();

    private Resolver(Native.Handle handle) : base(handle.Id) { }

    private protected override void Free(Native.Handle handle) => Native.chronosym_resolver_free(handle);

    /// <summary>Creates a resolver, with names and lines of <paramref name="symbols"/>, or only those in the trace.</summary>
    public static Resolver Create(Timeline timeline, Symbols? symbols = null)
    {
        Native.Handle resolver = default;
        Native.Check(Native.chronosym_resolver_new(timeline.Handle, symbols?.Handle ?? default, &resolver));
        GC.KeepAlive(timeline);
        GC.KeepAlive(symbols);
        return new Resolver(resolver);
    }

    /// <summary>Resolves addresses. Large batches use all cores, and nothing is allocated for each query.</summary>
    public Rows Resolve(ReadOnlySpan<Query> queries)
    {
        Native.Rows rows = default;
        rows.Size = (nuint)sizeof(Native.Rows);
        fixed (Query* first = queries)
        {
            Native.Check(Native.chronosym_resolve(Handle, first, (nuint)queries.Length, &rows));
        }
        return new Rows(rows, this);
    }

    /// <summary>Continues with a later timeline of the same live session.</summary>
    public void Advance(Timeline timeline)
    {
        Native.Check(Native.chronosym_resolver_advance(Handle, timeline.Handle));
        GC.KeepAlive(timeline);
    }

    internal string Text(uint number, ReadOnlySpan<byte> utf8)
    {
        while (texts.Count <= number)
        {
            texts.Add(null);
        }
        return texts[(int)number] ??= Encoding.UTF8.GetString(utf8);
    }
}

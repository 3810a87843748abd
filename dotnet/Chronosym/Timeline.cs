using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;

namespace Chronosym;

/// <summary>A process of a timeline.</summary>
/// <param name="Pid">The process id, if it is known.</param>
/// <param name="Name">The program's name, or the empty text.</param>
/// <param name="CommandLine">The command line, or the empty text.</param>
/// <param name="IsManaged">Whether a CLR runs in it.</param>
public sealed record ProcessInfo(uint? Pid, string Name, string CommandLine, bool IsManaged);

/// <summary>The recorded lifetimes of all code of a trace. Any number of threads can use it.</summary>
public sealed unsafe class Timeline : Owner
{
    internal Timeline(Native.Handle handle) : base(handle.Id) { }

    private protected override void Free(Native.Handle handle) => Native.chronosym_timeline_free(handle);

    /// <summary>Reads a trace, or several files of one recording.</summary>
    /// <param name="paths">The files.</param>
    /// <param name="progress">
    /// Receives bytes read, and bytes of all inputs or <see cref="ulong.MaxValue"/>. False stops the reading, and an
    /// exception leaves this call. It may be called by another thread.
    /// </param>
    /// <param name="withSamples">Whether samples are kept.</param>
    /// <param name="trustTracePaths">Whether files at the paths in the trace are opened.</param>
    /// <exception cref="ChronosymException">The trace cannot be read.</exception>
    public static Timeline Open(
        IReadOnlyList<string> paths,
        Func<ulong, ulong, bool>? progress = null,
        bool withSamples = true,
        bool trustTracePaths = false)
    {
        using CTexts texts = new();
        Watch watch = new(progress);
        GCHandle pinned = GCHandle.Alloc(watch);
        try
        {
            Native.OpenOptions options = default;
            options.Size = (nuint)sizeof(Native.OpenOptions);
            options.Flags = (trustTracePaths ? 1u : 0u) | (withSamples ? 0u : 2u);
            if (progress != null)
            {
                options.Progress = &Watch.Report;
                options.ProgressData = (void*)GCHandle.ToIntPtr(pinned);
            }
            Native.Handle timeline = default;
            int status = Native.chronosym_open(texts.Add(paths), (nuint)paths.Count, &options, &timeline);
            if (status != 0)
            {
                watch.Thrown?.Throw();
            }
            Native.Check(status);
            return new Timeline(timeline);
        }
        finally
        {
            pinned.Free();
        }
    }

    /// <summary>Reads a trace.</summary>
    /// <param name="path">The file.</param>
    public static Timeline Open(string path) => Open(new[] { path });

    /// <summary>A callback, and what it threw: no exception may leave it.</summary>
    private sealed class Watch
    {
        private readonly Func<ulong, ulong, bool>? progress;

        internal Watch(Func<ulong, ulong, bool>? progress) => this.progress = progress;

        internal ExceptionDispatchInfo? Thrown { get; private set; }

        [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
        internal static byte Report(void* data, ulong read, ulong total)
        {
            var watch = (Watch)GCHandle.FromIntPtr((nint)data).Target!;
            try
            {
                return watch.Thrown == null && watch.progress!(read, total) ? (byte)1 : (byte)0;
            }
            catch (Exception exception)
            {
                watch.Thrown = ExceptionDispatchInfo.Capture(exception);
                return 0;
            }
        }
    }

    /// <summary>Saves the timeline in a small file, which <see cref="Open(string)"/> reads.</summary>
    /// <param name="path">The file, which is replaced if it exists.</param>
    /// <param name="withSamples">Whether samples are saved, too.</param>
    public void Save(string path, bool withSamples = false)
    {
        using CTexts texts = new();
        Native.Check(Native.chronosym_timeline_save(Handle, texts.Add(path), withSamples ? (byte)1 : (byte)0));
        GC.KeepAlive(this);
    }

    /// <summary>Returns the processes.</summary>
    public IReadOnlyList<ProcessInfo> GetProcesses()
    {
        nuint count = 0;
        Native.Check(Native.chronosym_timeline_processes(Handle, null, 0, &count));
        var all = new Native.Process[count];
        fixed (Native.Process* first = all)
        {
            Native.Check(Native.chronosym_timeline_processes(Handle, first, count, &count));
        }
        var processes = all.Select(it => new ProcessInfo(
            it.Pid == uint.MaxValue ? null : it.Pid, it.Name.ToString(), it.CommandLine.ToString(), it.IsManaged != 0));
        var list = processes.ToList();
        GC.KeepAlive(this);
        return list;
    }

    /// <summary>Returns what was wrong with the recording.</summary>
    public IReadOnlyList<string> GetDiagnostics()
    {
        nuint count = 0;
        Native.Check(Native.chronosym_timeline_diagnostics(Handle, null, 0, &count));
        var all = new Native.Diagnostic[count];
        fixed (Native.Diagnostic* first = all)
        {
            Native.Check(Native.chronosym_timeline_diagnostics(Handle, first, count, &count));
        }
        var list = all.Select(it => it.Message.ToString()).ToList();
        GC.KeepAlive(this);
        return list;
    }
}

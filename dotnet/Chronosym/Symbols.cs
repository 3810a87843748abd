namespace Chronosym;

/// <summary>Where names and lines beyond the trace come from. Any number of threads and resolvers can use one.</summary>
public sealed unsafe class Symbols : Owner
{
    private Symbols(Native.Handle handle) : base(handle.Id) { }

    private protected override void Free(Native.Handle handle) => Native.chronosym_symbols_free(handle);

    /// <summary>Creates a source that searches folders, and then the elements of a symbol path.</summary>
    /// <param name="folders">Folders or files.</param>
    /// <param name="symbolPath">As <c>_NT_SYMBOL_PATH</c>.</param>
    /// <param name="debuginfodUrls">As <c>DEBUGINFOD_URLS</c>.</param>
    /// <param name="cache">The folder in which fetched files are kept.</param>
    /// <param name="offline">Whether no server is queried.</param>
    public static Symbols Create(
        IReadOnlyList<string> folders,
        string? symbolPath = null,
        string? debuginfodUrls = null,
        string? cache = null,
        bool offline = false)
    {
        using CTexts texts = new();
        Native.SymbolOptions options = default;
        options.Size = (nuint)sizeof(Native.SymbolOptions);
        options.Folders = texts.Add(folders);
        options.FolderCount = (nuint)folders.Count;
        options.SymbolPath = texts.Add(symbolPath);
        options.DebuginfodUrls = texts.Add(debuginfodUrls);
        options.Cache = texts.Add(cache);
        options.Flags = offline ? 1u : 0u;
        Native.Handle symbols = default;
        Native.Check(Native.chronosym_symbols_new(&options, &symbols));
        return new Symbols(symbols);
    }
}

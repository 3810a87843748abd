using System;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;

/// Requests that start and stop activities and await within them, and a call from inlined code. What
/// a request takes on a processor is known by construction, and so are the callers of `Spin`.
[EventSource(Name = "Requests")]
sealed class RequestSource : EventSource
{
    public static readonly RequestSource Log = new RequestSource();
    [Event(1)] public void RequestStart(string path) { WriteEvent(1, path); }
    [Event(2)] public void RequestStop() { WriteEvent(2); }
}

public static class Requests
{
    static long spun;

    public static async Task<int> Main(string[] args)
    {
        int rounds = args.Length > 0 ? int.Parse(args[0]) : 40;
        for (int i = 0; i < rounds; i++) await Task.WhenAll(Request("/slow", 16), Request("/fast", 4));
        Inlined(rounds);
        return 0;
    }

    // Main > Request > Load > Spin
    static async Task Request(string path, int milliseconds)
    {
        await Task.Yield();
        RequestSource.Log.RequestStart(path);
        long spun = Spin(milliseconds);
        await Task.Delay(2);
        spun += await Load(milliseconds);
        RequestSource.Log.RequestStop();
        Console.WriteLine($"{path} {spun}");
    }

    static async Task<long> Load(int milliseconds)
    {
        await Task.Delay(1);
        return Spin(milliseconds);
    }

    /// Spins; returns the time in ns.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Spin(int milliseconds)
    {
        long start = Stopwatch.GetTimestamp(), end = start + milliseconds * Stopwatch.Frequency / 1000;
        while (Stopwatch.GetTimestamp() < end) spun++;
        return (Stopwatch.GetTimestamp() - start) * 1_000_000_000 / Stopwatch.Frequency;
    }

    // Main > Inlined > Middle, which is inlined > Leaf
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static void Inlined(int rounds)
    {
        for (int i = 0; i < rounds; i++) Middle(i);
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static void Middle(int i)
    {
        if (i >= 0) Leaf(5);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Leaf(int milliseconds) => Spin(milliseconds);
}

/// Runs the program within another one (DOTNET_STARTUP_HOOKS).
class StartupHook
{
    public static void Initialize()
    {
        var rounds = Environment.GetEnvironmentVariable("REQUESTS_ROUNDS");
        if (rounds != null) Environment.Exit(Requests.Main(new[] { rounds }).Result);
    }
}

using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

/// Chains of awaits whose logical callers are known by construction: each method's name says them.
public static class Chain
{
    static volatile int sink;
    static long until;

    public static async Task Main(string[] args)
    {
        until = Environment.TickCount64 + (args.Length > 0 ? int.Parse(args[0]) : 2000);
        await Task.WhenAll(Orders(), Invoices(), Offload());
    }

    // Main > Orders > LoadOrder > Parse
    static async Task Orders()
    {
        while (Environment.TickCount64 < until) sink += await LoadOrder();
    }

    static async Task<int> LoadOrder()
    {
        await Task.Delay(1);
        return await Parse();
    }

    // Main > Invoices > LoadInvoice > Parse
    static async Task Invoices()
    {
        while (Environment.TickCount64 < until) sink += await LoadInvoice();
    }

    static async Task<int> LoadInvoice()
    {
        await Task.Yield();
        return await Parse();
    }

    static async Task<int> Parse()
    {
        await Task.Delay(2);
        return Spin(5);
    }

    // Main > Offload > lambda > Work
    static async Task Offload()
    {
        while (Environment.TickCount64 < until)
        {
            sink += await Task.Run(() => Work());
            await Task.Delay(1);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Work() => Spin(5);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Spin(int milliseconds)
    {
        long end = Stopwatch.GetTimestamp() + milliseconds * Stopwatch.Frequency / 1000;
        int n = 0;
        while (Stopwatch.GetTimestamp() < end) n++;
        return n;
    }
}

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;

sealed class KnownA { public long a, b, c, d; }
sealed class KnownB { public long a; }
class KnownError : Exception { public KnownError(string m) : base(m) {} }
static class Known
{
    static object keep; static long sink;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AllocateA(int n) { for (int i = 0; i < n; i++) keep = new KnownA(); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AllocateB(int n) { for (int i = 0; i < n; i++) keep = new KnownB(); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AllocateLarge(int n) { for (int i = 0; i < n; i++) keep = new byte[1 << 20]; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw(int i) { if (i % 3 == 0) throw new KnownError("known"); if (i % 3 == 1) throw new InvalidOperationException("op"); throw new ArgumentException("arg"); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Catch(int n)
    {
        for (int i = 0; i < n; i++)
            try { Throw(i); }
            catch (KnownError) { }
            catch (InvalidOperationException) { try { throw; } catch (InvalidOperationException) { } }
            catch (ArgumentException) { try { } finally { sink++; } }
    }
    static readonly object gate = new object();
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Contend(int times)
    {
        long waited = 0;
        for (int i = 0; i < times; i++)
        {
            using var held = new ManualResetEventSlim();
            var holder = new Thread(() => { lock (gate) { held.Set(); Thread.Sleep(30); } });
            holder.Start(); held.Wait();
            long t = Stopwatch.GetTimestamp();
            lock (gate) { }
            waited += Stopwatch.GetTimestamp() - t;
            holder.Join();
        }
        return waited * 1000000000L / Stopwatch.Frequency;
    }
    struct Vec { public double x, y; public double Dot(Vec o) => x * o.x + y * o.y; }
    interface IShape { double Area(double k); }
    sealed class Square : IShape { public double Area(double k) => k * k; }
    sealed class Circle : IShape { public double Area(double k) => 3 * k * k; }
    static int Small(int i) => i * 31 + 7;
    [MethodImpl(MethodImplOptions.NoInlining)] static int Never(int i) => i ^ 0x55;
    static int Big(int i)
    {
        int s = 0;
        try { for (int k = 0; k < 8; k++) { s += (i >> k) * k; if ((s & 7) == 3) s ^= i; s += k % 3 == 0 ? i : -i; } } finally { sink++; }
        return s;
    }
    static int Recurse(int n) => n <= 0 ? 1 : Recurse(n - 1) + Small(n);
    static int Tail(int n, int acc) => n == 0 ? acc : TailB(n - 1, acc + n);
    static int TailB(int n, int acc) => n == 0 ? acc : Tail(n - 1, acc ^ n);
    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Hot(int n, IShape[] shapes)
    {
        double s = 0; var v = new Vec { x = 1, y = 2 };
        for (int i = 0; i < n; i++)
        {
            v.x = Small(i); v.y = Never(i);
            s += v.Dot(v) + Big(i) + shapes[i & 1].Area(i) + Recurse(i & 15) + Tail(i & 31, 0);
        }
        return s;
    }
    static int Main(string[] args)
    {
        int seconds = args.Length > 0 ? int.Parse(args[0]) : 3;
        AllocateA(1); AllocateB(1); Thread.Sleep(300);
        int nA = 4000000, nB = 3000000, nL = 64, nE = 3000, nC = 8;
        int g0 = GC.CollectionCount(0);
        AllocateA(nA); AllocateB(nB); AllocateLarge(nL);
        GC.Collect(0, GCCollectionMode.Forced, true); GC.Collect(1, GCCollectionMode.Forced, true); GC.Collect(2, GCCollectionMode.Forced, true, true); GC.Collect(2, GCCollectionMode.Optimized, false);
        Catch(nE);
        long waited = Contend(nC);
        var shapes = new IShape[] { new Square(), new Circle() };
        var until = Stopwatch.StartNew(); double r = 0; int rounds = 0;
        while (until.Elapsed.TotalSeconds < seconds) { r += Hot(200000, shapes); rounds++; }
        Console.WriteLine($"{{\"pid\":{Environment.ProcessId},\"gen0\":{GC.CollectionCount(0)},\"gen1\":{GC.CollectionCount(1)},\"gen2\":{GC.CollectionCount(2)},\"pause_ns\":{(long)GC.GetTotalPauseDuration().TotalNanoseconds},\"bytes_a\":{nA * 48L},\"bytes_b\":{nB * 24L},\"bytes_l\":{nL * ((1L << 20) + 24)},\"allocated\":{GC.GetTotalAllocatedBytes(true)},\"known\":{(nE + 2) / 3},\"invalid\":{2 * ((nE + 1) / 3)},\"argument\":{nE / 3},\"waits\":{nC},\"waited_ns\":{waited},\"jitted\":{System.Runtime.JitInfo.GetCompiledMethodCount()},\"jit_ns\":{(long)System.Runtime.JitInfo.GetCompilationTime().TotalNanoseconds},\"r\":{rounds}}}");
        return 0;
    }
}

// Misuse is an exception; objects are freed once: misuse TRACE.
using System;
using System.Linq;
using System.Threading;
using Chronosym;

static T Throws<T>(Action work) where T : Exception
{
    try
    {
        work();
    }
    catch (T thrown)
    {
        return thrown;
    }
    throw new Exception($"no {typeof(T).Name}");
}

static void Require(bool condition, string what)
{
    if (!condition)
    {
        throw new Exception($"not {what}");
    }
}

string trace = args[0];
var missing = Throws<ChronosymException>(() => Timeline.Open("/nowhere"));
Require(missing.Status == Status.NotFound && missing.Path == "/nowhere" && missing.Offset == null, "an error with its path");
var cancelled = Throws<ChronosymException>(() => Timeline.Open(new[] { trace }, (_, _) => false));
Require(cancelled.Status == Status.Cancelled, "cancelled");
var mine = Throws<InvalidCastException>(() => Timeline.Open(new[] { trace }, (_, _) => throw new InvalidCastException("mine")));
Require(mine.Message == "mine", "the exception of the callback");
Throws<ArgumentException>(() => Timeline.Open("zero\0character"));
var inputs = Throws<ChronosymException>(() => Timeline.Open(Array.Empty<string>()));
Require(inputs.Status == Status.Inputs, "nothing to open");

ulong calls = 0;
Timeline timeline = Timeline.Open(new[] { trace }, (read, total) => ++calls > 0);
Require(calls > 0, "progress");
Require(timeline.GetProcesses().Any(it => it.IsManaged && it.Pid != null), "a managed process");
Resolver resolver = Resolver.Create(timeline);
timeline.Dispose();
timeline.Dispose();
Throws<ObjectDisposedException>(() => timeline.GetProcesses());
Throws<ObjectDisposedException>(() => Resolver.Create(timeline));
Query[] queries = { new() { Address = 1, Pid = 1 } };
Require(resolver.Resolve(queries).FramesOf(0).Length == 1, "an answer after the timeline is disposed");
Require(resolver.Resolve(default).Count == 0, "an empty batch");
Throws<ArgumentOutOfRangeException>(() => resolver.Resolve(queries).FramesOf(1));
Throws<ArgumentOutOfRangeException>(() => resolver.Resolve(queries).Utf8(uint.MaxValue));
queries[0].IsReturn = 7;
var argument = Throws<ChronosymException>(() => resolver.Resolve(queries));
Require(argument.Status == Status.InvalidArgument, "an unknown position");
resolver.Dispose();
Throws<ObjectDisposedException>(() => resolver.Resolve(queries));

// One thread feeds, others read.
const ulong second = 1_000_000_000;
using LiveSession live = new();
live.Process(0, 42, "app");
live.Module(0, 42, 7, "/app/Day.dll");
bool done = false;
Thread reader = new(() =>
{
    while (!Volatile.Read(ref done))
    {
        live.GetTimeline().Dispose();
    }
});
reader.Start();
for (ulong now = 1; now <= 600; now++)
{
    live.Method(now * second, 42, now, 0x1000 + now % 8 * 0x100, 64, "Day", "Sécond", "void ()", module: 7, thread: 1);
    live.Advance(now * second);
    live.Publish();
    live.ForgetBefore(now > 60 ? (now - 60) * second : 0);
}
Volatile.Write(ref done, true);
reader.Join();
using Timeline latest = live.GetTimeline();
using Resolver names = Resolver.Create(latest, Symbols.Create(new[] { "." }, offline: true));
Query[] last = { new() { Address = 0x1010, TimeNs = 600 * second, Pid = 42 } };
Rows rows = names.Resolve(last);
FrameRow found = rows.Table[(int)rows.FramesOf(0)[0]];
Require(rows.Text(found.Method) == "Day.Sécond" && rows.Text(found.Module) == "Day", "the last method");
Require(found.Evidence == "Load" && found.NameReason == "", "its evidence");
live.Finish().Dispose();
Require(Throws<ChronosymException>(() => live.Publish()).Status == Status.State, "a finished session");
// Objects that are never disposed.
for (int i = 0; i < 100; i++)
{
    _ = new LiveSession();
}
GC.Collect();
GC.WaitForPendingFinalizers();
Console.WriteLine("every misuse was refused");

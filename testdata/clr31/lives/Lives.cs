using System;
using System.Diagnostics;
using System.IO;
using System.IO.Pipes;
using System.Net;
using System.Net.Sockets;
using System.Reflection;
using System.Threading;
using System.Threading.Tasks;

// Threads whose activity is known. Each states at its end what the kernel counted for it: ns on a
// processor, ns ready for one, and its duration.
static class Lives
{
    static readonly object gate = new object();
    static volatile bool over;
    static long sink;

    static void Report(string name, Stopwatch wall)
    {
        var stat = File.ReadAllText("/proc/thread-self/stat");
        var counted = File.ReadAllText("/proc/thread-self/schedstat").Split(' ');
        var text = $"{stat.Split(' ')[0]} {name} {counted[0]} {counted[1]} {wall.Elapsed.Ticks * 100}";
        lock (Console.Out) Console.WriteLine(text);
    }

    static Thread Start(string name, Action body)
    {
        var thread = new Thread(() => { var wall = Stopwatch.StartNew(); body(); Report(name, wall); });
        thread.Name = name;
        thread.Start();
        return thread;
    }

    static void Spin()
    {
        long sum = 0;
        while (!over) for (int i = 0; i < 100000; i++) sum += sum % 7 + i;
        sink += sum;
    }

    public static int Main(string[] args)
    {
        int ms = int.Parse(args[0]);
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        var client = new TcpClient();
        client.Connect((IPEndPoint)listener.LocalEndpoint);
        var server = listener.AcceptSocket();
        var pipe = new AnonymousPipeServerStream(PipeDirection.Out);
        var reader = new AnonymousPipeClientStream(PipeDirection.In, pipe.ClientSafePipeHandle);
        var never = new ManualResetEvent(false);
        var slim = new ManualResetEventSlim();
        var tick = new AutoResetEvent(false);
        var timer = new Timer(_ => tick.Set(), null, 50, 50);
        Monitor.Enter(gate);
        var threads = new[]
        {
            Start("spin", Spin),
            Start("sleep", () => Thread.Sleep(ms)),
            Start("lock", () => { lock (gate) sink++; }),
            Start("event", () => never.WaitOne(ms)),
            Start("slim", () => slim.Wait(ms)),
            Start("delay", () => Task.Delay(ms).Wait()),
            Start("timer", () => { while (!over) tick.WaitOne(); }),
            Start("socket", () => { var bytes = new byte[1]; server.Receive(bytes); }),
            Start("pipe", () => reader.ReadByte()),
        };
        Thread.Sleep(ms);
        over = true;
        Monitor.Exit(gate);
        slim.Set();
        client.GetStream().WriteByte(1);
        pipe.WriteByte(1);
        foreach (var thread in threads) thread.Join();
        return 0;
    }
}

// Runs the program within another one (DOTNET_STARTUP_HOOKS).
class StartupHook
{
    public static void Initialize()
    {
        var milliseconds = Environment.GetEnvironmentVariable("LIVES_MS");
        if (milliseconds != null) Environment.Exit(Lives.Main(new[] { milliseconds }));
    }
}

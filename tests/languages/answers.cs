// As answers.c.
using System;
using System.Diagnostics;
using System.IO;
using System.Runtime.InteropServices;
using System.Text;
using Chronosym;

using Timeline timeline = Timeline.Open(args[0]);
using Resolver resolver = Resolver.Create(timeline);
Query[] queries = MemoryMarshal.Cast<byte, Query>(File.ReadAllBytes(args[1])).ToArray();
using (Stream output = Console.OpenStandardOutput())
using (StreamWriter writer = new(output, new UTF8Encoding(false), 1 << 16))
{
    Rows rows = resolver.Resolve(queries);
    for (int query = 0; query < rows.Count; query++)
    {
        foreach (uint frame in rows.FramesOf(query))
        {
            FrameRow it = rows.Table[(int)frame];
            writer.Write($"{rows.Text(it.Module)}!{rows.Text(it.Method)}|{rows.Text(it.Signature)}|{rows.Text(it.File)}:{it.Line}:{it.Column}");
            writer.Write($"|{it.Inlined}|{it.Tier}|{it.Evidence}|{it.Certainty}|{it.NameReason}|{it.LineReason}\t");
        }
        writer.Write('\n');
    }
}
if (args.Length > 2)
{
    TimeSpan best = TimeSpan.MaxValue;
    for (int round = int.Parse(args[2]); round > 0; round--)
    {
        Stopwatch watch = Stopwatch.StartNew();
        resolver.Resolve(queries);
        best = watch.Elapsed < best ? watch.Elapsed : best;
    }
    Console.Error.WriteLine((best.TotalMilliseconds * 1e6 / queries.Length).ToString("F2"));
}

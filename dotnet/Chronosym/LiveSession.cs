using System.Text;

namespace Chronosym;

/// <summary>What happened.</summary>
public enum FactAction
{
    /// <summary>The lifetime starts.</summary>
    Load = 0,
    /// <summary>The lifetime ends.</summary>
    Unload = 1,
    /// <summary>Alive when the recording begins.</summary>
    ListedAtStart = 2,
    /// <summary>Alive when the recording ends.</summary>
    ListedAtEnd = 3,
}

/// <summary>A session that resolves while facts still arrive. One thread feeds it; any thread gets timelines.</summary>
public sealed unsafe class LiveSession : Owner
{
    /// <summary>Creates a session without facts.</summary>
    public LiveSession() : base(New()) { }

    private static ulong New()
    {
        Native.Handle session = default;
        Native.Check(Native.chronosym_session_new_live(&session));
        return session.Id;
    }

    private protected override void Free(Native.Handle handle) => Native.chronosym_session_free(handle);

    private void Apply(Native.Fact fact, string first, string second = "", string third = "")
    {
        fixed (byte* first8 = Encoding.UTF8.GetBytes(first), second8 = Encoding.UTF8.GetBytes(second), third8 = Encoding.UTF8.GetBytes(third))
        {
            fact.Name0 = Text(first8, first);
            fact.Name1 = Text(second8, second);
            fact.Name2 = Text(third8, third);
            Native.Check(Native.chronosym_session_apply(Handle, &fact, 1));
        }
    }

    private static Native.Text Text(byte* data, string text) =>
        new() { Data = data, Length = (nuint)Encoding.UTF8.GetByteCount(text) };

    /// <summary>States a process; times are in ns since the session began.</summary>
    public void Process(ulong timeNs, uint pid, string name, FactAction action = FactAction.Load) =>
        Apply(new Native.Fact { Kind = 1, Action = (uint)action, TimeNs = timeNs, Pid = pid }, name);

    /// <summary>States a mapped file.</summary>
    public void Image(ulong timeNs, uint pid, ulong address, ulong size, string path, FactAction action = FactAction.Load) =>
        Apply(new Native.Fact { Kind = 5, Action = (uint)action, TimeNs = timeNs, Pid = pid, Address = address, Size = size }, path);

    /// <summary>States a module of the CLR.</summary>
    public void Module(ulong timeNs, uint pid, ulong id, string path, FactAction action = FactAction.Load) =>
        Apply(new Native.Fact { Kind = 6, Action = (uint)action, TimeNs = timeNs, Pid = pid, Id = id }, path);

    /// <summary>States a jitted code body, <paramref name="size"/> in bytes.</summary>
    public void Method(
        ulong timeNs, uint pid, ulong id, ulong address, uint size, string typeName, string name, string signature,
        ulong module = 0, uint token = 0, ulong thread = 0, FactAction action = FactAction.Load)
    {
        const uint jitted = 8;
        Native.Fact fact = new()
        {
            Kind = 7, Action = (uint)action, TimeNs = timeNs, Pid = pid, Flags = jitted, Thread = thread, Id = id,
            ModuleId = module, Address = address, Size = size, Token = token,
        };
        Apply(fact, typeName, name, signature);
    }

    /// <summary>States that no event of an earlier time follows.</summary>
    public void Advance(ulong watermarkNs) => Native.Check(Native.chronosym_session_advance(Handle, watermarkNs));

    /// <summary>Shows readers all that was stated.</summary>
    public void Publish() => Native.Check(Native.chronosym_session_publish(Handle));

    /// <summary>Drops what ended before a time. Returns the number of code bodies.</summary>
    public ulong ForgetBefore(ulong horizonNs)
    {
        nuint dropped = 0;
        Native.Check(Native.chronosym_session_forget_before(Handle, horizonNs, &dropped));
        return dropped;
    }

    /// <summary>Returns the timeline as it was last published. Never waits for the thread that feeds.</summary>
    public Timeline GetTimeline()
    {
        Native.Handle timeline = default;
        Native.Check(Native.chronosym_session_timeline(Handle, &timeline));
        return new Timeline(timeline);
    }

    /// <summary>Finishes the session, and returns its timeline.</summary>
    public Timeline Finish()
    {
        Native.Handle timeline = default;
        Native.Check(Native.chronosym_session_finish(Handle, &timeline));
        return new Timeline(timeline);
    }
}

namespace Chronosym;

/// <summary>Owns a handle, and frees it once.</summary>
public abstract class Owner : IDisposable
{
    private ulong id;

    private protected Owner(ulong id) => this.id = id;

    /// <summary>Frees what a garbage collection found unused.</summary>
    ~Owner() => Free();

    internal Native.Handle Handle
    {
        get
        {
            ulong current = Volatile.Read(ref id);
            ObjectDisposedException.ThrowIf(current == 0, this);
            return new Native.Handle { Id = current };
        }
    }

    private protected abstract void Free(Native.Handle handle);

    private void Free()
    {
        ulong last = Interlocked.Exchange(ref id, 0);
        if (last != 0)
        {
            Free(new Native.Handle { Id = last });
        }
    }

    /// <summary>Frees the object; others that use it keep what they need.</summary>
    public void Dispose()
    {
        Free();
        GC.SuppressFinalize(this);
    }
}

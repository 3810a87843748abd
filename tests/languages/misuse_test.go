package chronosym_test

import (
	"errors"
	"os"
	"sync"
	"testing"

	chronosym "github.com/chronosym/chronosym/crates/chronosym-c/go"
)

func status(t *testing.T, err error, want chronosym.Status) *chronosym.Error {
	t.Helper()
	var failure *chronosym.Error
	if !errors.As(err, &failure) || failure.Status != want {
		t.Fatalf("%v is not of status %d", err, want)
	}
	return failure
}

func TestMisuse(t *testing.T) {
	trace := []string{os.Getenv("CHRONOSYM_TRACE")}
	_, err := chronosym.Open([]string{"/nowhere"}, nil)
	if failure := status(t, err, chronosym.NotFound); failure.Path != "/nowhere" || failure.Offset != -1 {
		t.Fatal(failure)
	}
	_, err = chronosym.Open(trace, func(_, _ uint64) bool { return false })
	status(t, err, chronosym.Cancelled)
	func() {
		defer func() {
			if thrown := recover(); thrown != "mine" {
				t.Fatalf("%v left Open", thrown)
			}
		}()
		_, _ = chronosym.Open(trace, func(_, _ uint64) bool { panic("mine") })
	}()
	status(t, (&chronosym.Timeline{}).Close(), chronosym.InvalidHandle)

	timeline, err := chronosym.Open(trace, nil)
	if err != nil {
		t.Fatal(err)
	}
	resolver, err := chronosym.NewResolver(timeline, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := timeline.Close(); err != nil {
		t.Fatal(err)
	}
	status(t, timeline.Close(), chronosym.InvalidHandle)
	_, err = chronosym.NewResolver(timeline, nil)
	status(t, err, chronosym.InvalidHandle)
	var rows chronosym.Rows
	status(t, resolver.Resolve([]chronosym.Query{{Return: 7}}, &rows), chronosym.InvalidArgument)
	if err := resolver.Resolve(nil, &rows); err != nil || len(rows.Offsets) != 1 {
		t.Fatal(err, rows)
	}

	// Threads with timelines of their own.
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			timeline, err := chronosym.Open(trace, func(_, _ uint64) bool { return true })
			if err == nil {
				_, err = timeline.Processes()
				_ = timeline.Close()
			}
			if err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	if err := resolver.Close(); err != nil {
		t.Fatal(err)
	}
	status(t, resolver.Resolve(nil, &rows), chronosym.InvalidHandle)
}

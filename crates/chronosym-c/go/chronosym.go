// Package chronosym resolves addresses of traces: what code was at address A of process P at time T?
//
// It calls the C library, which pkg-config finds. docs/languages/go.md has examples.
package chronosym

/*
#cgo pkg-config: chronosym
#include <chronosym.h>
#include <stdlib.h>

extern bool chronosymGoProgress(uintptr_t watch, uint64_t read, uint64_t total);

static bool go_progress(void *data, uint64_t read, uint64_t total) {
	return chronosymGoProgress((uintptr_t)data, read, total);
}

static chronosym_status go_open(const char *const *paths, size_t count, uintptr_t watch, uint32_t flags, chronosym_timeline *timeline) {
	chronosym_open_options options = {.size = sizeof options, .flags = flags};
	if (watch != 0) {
		options.progress = go_progress;
		options.progress_data = (void *)watch;
	}
	return chronosym_open(paths, count, &options, timeline);
}

static chronosym_status go_symbols(const char *const *folders, size_t count, const char *path, uint32_t flags, chronosym_symbols *symbols) {
	chronosym_symbol_options options = {.size = sizeof options, .folders = folders, .folder_count = count, .symbol_path = path, .flags = flags};
	return chronosym_symbols_new(&options, symbols);
}
*/
import "C"

import (
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// Status is the kind of an Error; the values are those of chronosym_status.
type Status int32

// The kinds that programs react to most.
const (
	InvalidArgument Status = C.CHRONOSYM_STATUS_INVALID_ARGUMENT
	InvalidHandle   Status = C.CHRONOSYM_STATUS_INVALID_HANDLE
	Busy            Status = C.CHRONOSYM_STATUS_BUSY
	Cancelled       Status = C.CHRONOSYM_STATUS_CANCELLED
	NotFound        Status = C.CHRONOSYM_STATUS_NOT_FOUND
	Format          Status = C.CHRONOSYM_STATUS_FORMAT
	Damaged         Status = C.CHRONOSYM_STATUS_DAMAGED
)

// Error says why a call failed.
type Error struct {
	Status  Status
	Message string
	// Path is the file that the failure is about, or empty.
	Path string
	// Offset in the file in bytes, or -1 if it is unknown.
	Offset int64
}

func (e *Error) Error() string { return e.Message }

// call runs a call on one thread: the details of a failure belong to it.
func call(work func() uint32) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if work() == C.CHRONOSYM_STATUS_OK {
		return nil
	}
	details := C.chronosym_error{}
	details.size = C.sizeof_chronosym_error
	C.chronosym_last_error(&details)
	failure := &Error{Status: Status(details.status), Message: C.GoString(details.message), Offset: -1}
	if details.path != nil {
		failure.Path = C.GoString(details.path)
	}
	if details.offset != C.UINT64_MAX {
		failure.Offset = int64(details.offset)
	}
	return failure
}

// Version of the C library.
func Version() string { return C.GoString(C.chronosym_version()) }

// texts returns C texts in C memory, and a function that frees them.
func texts(all []string) (**C.char, func()) {
	if len(all) == 0 {
		return nil, func() {}
	}
	memory := C.malloc(C.size_t(len(all)) * C.size_t(unsafe.Sizeof((*C.char)(nil))))
	array := unsafe.Slice((**C.char)(memory), len(all))
	for i, text := range all {
		array[i] = C.CString(text)
	}
	return (**C.char)(memory), func() {
		for _, text := range array {
			C.free(unsafe.Pointer(text))
		}
		C.free(memory)
	}
}

// Timeline has the recorded lifetimes of all code. Any number of goroutines can use it.
type Timeline struct{ handle C.chronosym_timeline }

// Progress receives bytes read and bytes of all inputs; false stops the reading. A panic stops it, too, and leaves Open.
type Progress func(read, total uint64) bool

type watch struct {
	report Progress
	thrown any
}

//export chronosymGoProgress
func chronosymGoProgress(handle C.uintptr_t, read, total C.uint64_t) (goOn C.bool) {
	state := cgo.Handle(handle).Value().(*watch)
	defer func() {
		if thrown := recover(); thrown != nil {
			state.thrown, goOn = thrown, false
		}
	}()
	return C.bool(state.thrown == nil && state.report(uint64(read), uint64(total)))
}

// Open reads a trace, or several files of one recording. progress may be nil. Close the timeline when it is not needed any more.
func Open(paths []string, progress Progress) (*Timeline, error) {
	names, free := texts(paths)
	defer free()
	state := &watch{report: progress}
	var handle cgo.Handle
	if progress != nil {
		handle = cgo.NewHandle(state)
		defer handle.Delete()
	}
	var timeline C.chronosym_timeline
	err := call(func() uint32 {
		return uint32(C.go_open(names, C.size_t(len(paths)), C.uintptr_t(handle), 0, &timeline))
	})
	if state.thrown != nil {
		panic(state.thrown)
	}
	if err != nil {
		return nil, err
	}
	return &Timeline{timeline}, nil
}

// Close frees the timeline; resolvers that use it keep it.
func (t *Timeline) Close() error {
	return call(func() uint32 { return uint32(C.chronosym_timeline_free(t.handle)) })
}

// Save writes the timeline to a small file, which Open reads.
func (t *Timeline) Save(path string, withSamples bool) error {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	return call(func() uint32 {
		return uint32(C.chronosym_timeline_save(t.handle, name, C.bool(withSamples)))
	})
}

// Process of a timeline.
type Process struct {
	Name, CommandLine string
	PID               uint32
	IsManaged         bool
}

// Processes returns the processes of a timeline.
func (t *Timeline) Processes() ([]Process, error) {
	var count C.size_t
	err := call(func() uint32 {
		return uint32(C.chronosym_timeline_processes(t.handle, nil, 0, &count))
	})
	if err != nil || count == 0 {
		return nil, err
	}
	all := make([]C.chronosym_process, count)
	err = call(func() uint32 {
		return uint32(C.chronosym_timeline_processes(t.handle, &all[0], count, &count))
	})
	if err != nil {
		return nil, err
	}
	text := func(text C.chronosym_text) string { return C.GoStringN(text.data, C.int(text.length)) }
	processes := make([]Process, len(all))
	for i, it := range all {
		processes[i] = Process{text(it.name), text(it.command_line), uint32(it.pid), it.is_managed != 0}
	}
	return processes, nil
}

// Symbols is where names and lines beyond the trace come from.
type Symbols struct{ handle C.chronosym_symbols }

// NewSymbols searches folders, and then the elements of a symbol path in the syntax of _NT_SYMBOL_PATH, which may be empty.
func NewSymbols(folders []string, symbolPath string) (*Symbols, error) {
	names, free := texts(folders)
	defer free()
	path := C.CString(symbolPath)
	defer C.free(unsafe.Pointer(path))
	var symbols C.chronosym_symbols
	err := call(func() uint32 {
		return uint32(C.go_symbols(names, C.size_t(len(folders)), path, 0, &symbols))
	})
	if err != nil {
		return nil, err
	}
	return &Symbols{symbols}, nil
}

// Close frees the source; resolvers that use it keep it.
func (s *Symbols) Close() error {
	return call(func() uint32 { return uint32(C.chronosym_symbols_free(s.handle)) })
}

// Query is an address of a process at a time. It has the layout of chronosym_query.
type Query struct {
	Address uint64
	// TimeNS is in ns since the trace began.
	TimeNS uint64
	PID    uint32
	// Return is 1 for a return address, 0 for the address of an instruction.
	Return uint32
}

// Frame is what is known of the code at an address.
type Frame struct {
	Module, Method, Signature, File string
	// Line and Column are from 1, or 0.
	Line, Column uint32
	Inlined      bool
	// Evidence, Certainty, NameReason, LineReason and Tier are names of closed lists, or empty.
	Evidence, Certainty, NameReason, LineReason, Tier string
}

// Resolver resolves addresses of a timeline. One goroutine at a time can use it.
type Resolver struct {
	handle C.chronosym_resolver
	texts  []string
	frames []Frame
	rows   C.chronosym_rows
}

// NewResolver uses symbols, which may be nil, for names and lines beyond the trace.
func NewResolver(timeline *Timeline, symbols *Symbols) (*Resolver, error) {
	var from C.chronosym_symbols
	if symbols != nil {
		from = symbols.handle
	}
	resolver := &Resolver{}
	err := call(func() uint32 {
		return uint32(C.chronosym_resolver_new(timeline.handle, from, &resolver.handle))
	})
	if err != nil {
		return nil, err
	}
	return resolver, nil
}

// Close frees the resolver.
func (r *Resolver) Close() error {
	return call(func() uint32 { return uint32(C.chronosym_resolver_free(r.handle)) })
}

// Rows are the answers to a batch.
type Rows struct {
	// Offsets has the position in Frames of the first frame of each query, and the number of frames.
	Offsets []int
	// Frames are positions in Table, for each query innermost first.
	Frames []uint32
	// Table has the distinct frames of the resolver so far.
	Table []Frame
}

// FramesOf returns the frames of a query, innermost first, as positions in Table.
func (r *Rows) FramesOf(query int) []uint32 { return r.Frames[r.Offsets[query]:r.Offsets[query+1]] }

// Resolve resolves addresses. rows is filled, and used again by the next call with it.
func (r *Resolver) Resolve(queries []Query, rows *Rows) error {
	r.rows.size = C.sizeof_chronosym_rows
	var first *C.chronosym_query
	if len(queries) > 0 {
		first = (*C.chronosym_query)(unsafe.Pointer(&queries[0]))
	}
	err := call(func() uint32 {
		return uint32(C.chronosym_resolve(r.handle, first, C.size_t(len(queries)), &r.rows))
	})
	if err != nil {
		return err
	}
	// An int is as wide as a size_t.
	offsets := unsafe.Slice((*int)(unsafe.Pointer(r.rows.offsets)), len(queries)+1)
	rows.Offsets = append(rows.Offsets[:0], offsets...)
	rows.Frames = rows.Frames[:0]
	if count := offsets[len(queries)]; count > 0 {
		rows.Frames = append(rows.Frames, unsafe.Slice((*uint32)(unsafe.Pointer(r.rows.frames)), count)...)
	}
	r.addFrames()
	rows.Table = r.frames
	return nil
}

// addFrames converts the rows of the table that are new.
func (r *Resolver) addFrames() {
	if int(r.rows.table_count) == len(r.frames) {
		return
	}
	offsets := unsafe.Slice((*uint64)(unsafe.Pointer(r.rows.text_offsets)), int(r.rows.text_count)+1)
	for i := len(r.texts); i < int(r.rows.text_count); i++ {
		start := unsafe.Add(unsafe.Pointer(r.rows.texts), offsets[i])
		r.texts = append(r.texts, C.GoStringN((*C.char)(start), C.int(offsets[i+1]-offsets[i]-1)))
	}
	name := func(list C.uint32_t, value C.uint8_t) string {
		return C.GoString(C.chronosym_name(list, C.uint32_t(value)))
	}
	table := unsafe.Slice((*C.chronosym_frame)(r.rows.table), int(r.rows.table_count))
	for _, it := range table[len(r.frames):] {
		r.frames = append(r.frames, Frame{
			Module: r.texts[it.module], Method: r.texts[it.method],
			Signature: r.texts[it.signature], File: r.texts[it.file],
			Line: uint32(it.line), Column: uint32(it.column), Inlined: it.inlined != 0,
			Evidence:   name(C.CHRONOSYM_LIST_EVIDENCE, it.evidence),
			Certainty:  name(C.CHRONOSYM_LIST_CERTAINTY, it.certainty),
			NameReason: name(C.CHRONOSYM_LIST_NAME_REASON, it.name_reason),
			LineReason: name(C.CHRONOSYM_LIST_LINE_REASON, it.line_reason),
			Tier:       name(C.CHRONOSYM_LIST_TIER, it.tier),
		})
	}
}

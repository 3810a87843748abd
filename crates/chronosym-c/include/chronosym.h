/* C interface of chronosym: what code was at address A of process P at time T?
 *
 * Generated from the Rust source: `CHRONOSYM_BLESS=1 cargo test -p chronosym-c --test header`.
 * docs/languages/c.md explains ownership, threads and errors. */

#ifndef CHRONOSYM_H
#define CHRONOSYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* A text of the given characters, which end with a zero. */
#define CHRONOSYM_TEXT(characters) ((chronosym_text){(characters), strlen(characters)})

/**
 * The result of a call. Every value except `CHRONOSYM_STATUS_OK` is a failure, with details in
 * `chronosym_last_error`.
 */
typedef enum chronosym_status {
  /**
   * The call succeeded.
   */
  CHRONOSYM_STATUS_OK = 0,
  /**
   * An argument is null, misaligned or not allowed.
   */
  CHRONOSYM_STATUS_INVALID_ARGUMENT = 1,
  /**
   * A handle is null, freed, of another type, or from the parent of a forked process.
   */
  CHRONOSYM_STATUS_INVALID_HANDLE = 2,
  /**
   * Another thread is in a call with the same resolver or session.
   */
  CHRONOSYM_STATUS_BUSY = 3,
  /**
   * A callback stopped the call.
   */
  CHRONOSYM_STATUS_CANCELLED = 4,
  /**
   * A file does not exist.
   */
  CHRONOSYM_STATUS_NOT_FOUND = 5,
  /**
   * The system failed to read or write a file, or denied access.
   */
  CHRONOSYM_STATUS_IO = 6,
  /**
   * The input is not a trace, or of an unsupported version.
   */
  CHRONOSYM_STATUS_FORMAT = 7,
  /**
   * The input is a damaged trace without a readable part.
   */
  CHRONOSYM_STATUS_DAMAGED = 8,
  /**
   * A limit was reached.
   */
  CHRONOSYM_STATUS_LIMIT = 9,
  /**
   * The inputs do not belong together.
   */
  CHRONOSYM_STATUS_INPUTS = 10,
  /**
   * The call is not possible with this session: it is finished, or not a live one.
   */
  CHRONOSYM_STATUS_STATE = 11,
  /**
   * A defect of chronosym. The object of the call must be freed.
   */
  CHRONOSYM_STATUS_INTERNAL = 12,
} chronosym_status;

/**
 * The action that a fact states.
 */
typedef enum chronosym_action {
  /**
   * The lifetime starts.
   */
  CHRONOSYM_ACTION_LOAD = 0,
  /**
   * The lifetime ends.
   */
  CHRONOSYM_ACTION_UNLOAD = 1,
  /**
   * Alive when the recording begins: it started before.
   */
  CHRONOSYM_ACTION_LISTED_AT_START = 2,
  /**
   * Alive when the recording ends: it ends after.
   */
  CHRONOSYM_ACTION_LISTED_AT_END = 3,
} chronosym_action;

/**
 * The kind of a fact, and the fields of `chronosym_fact` that it uses in addition to `time_ns`,
 * `pid` and `thread`.
 */
typedef enum chronosym_fact_kind {
  /**
   * A process. `names`: program, command line.
   */
  CHRONOSYM_FACT_KIND_PROCESS = 1,
  /**
   * The process starts as a copy of another one. `id`: the pid of its parent.
   */
  CHRONOSYM_FACT_KIND_FORK = 2,
  /**
   * The process replaces its program: its mappings and code end.
   */
  CHRONOSYM_FACT_KIND_EXEC = 3,
  /**
   * The thread has a name. `names`: the name.
   */
  CHRONOSYM_FACT_KIND_THREAD_NAME = 4,
  /**
   * A file is mapped. `address`, `size`, `file_offset`, `pdb`; `names`: path, build id in hex digits.
   */
  CHRONOSYM_FACT_KIND_IMAGE = 5,
  /**
   * A module of the CLR. `id`, `pdb`; `names`: path of the IL, path of the native image.
   */
  CHRONOSYM_FACT_KIND_MODULE = 6,
  /**
   * A code body of a CLR method. `id`, `module_id`, `address`, `size`, `token`, `flags` as MethodFlags of the CLR's events
   * (8: jitted); `names`: type, method, signature.
   */
  CHRONOSYM_FACT_KIND_METHOD = 7,
  /**
   * The IL-to-native map of the body that the same thread loaded last. `id`: that of the method; `il_entries`.
   */
  CHRONOSYM_FACT_KIND_IL_MAP = 8,
  /**
   * A code body of another compiler. `address`, `size`; `names`: the function.
   */
  CHRONOSYM_FACT_KIND_NATIVE_METHOD = 9,
  /**
   * A name without a lifetime, as in a perf map. `address`, `size`; `names`: the name, the module.
   */
  CHRONOSYM_FACT_KIND_SYMBOL = 10,
  /**
   * A CPU sample; live sessions do not keep it. `addresses` innermost first, `weight_ns`.
   */
  CHRONOSYM_FACT_KIND_SAMPLE = 11,
} chronosym_fact_kind;

/**
 * Closed lists, whose values are numbered from 1. docs/resolution.md explains them.
 */
typedef enum chronosym_list {
  /**
   * The evidence of an answer: `Load`, `Image`, `PerfMap` and others.
   */
  CHRONOSYM_LIST_EVIDENCE = 1,
  /**
   * The certainty of an answer: `Exact`, `Inferred`, `Approximate`.
   */
  CHRONOSYM_LIST_CERTAINTY = 2,
  /**
   * Why a frame has no name.
   */
  CHRONOSYM_LIST_NAME_REASON = 3,
  /**
   * Why a frame with a name has no line.
   */
  CHRONOSYM_LIST_LINE_REASON = 4,
  /**
   * The optimization tier of a code body.
   */
  CHRONOSYM_LIST_TIER = 5,
  /**
   * The kind of a diagnostic: `LostEvents`, `Loss`, `CutShort`, `Damage`, `Limit`, `Unused`.
   */
  CHRONOSYM_LIST_DIAGNOSTIC = 6,
} chronosym_list;

/**
 * Bits of `chronosym_open_options.flags`.
 */
typedef enum chronosym_open_flags {
  /**
   * Open files at the paths in the trace; use for traces recorded on this machine.
   */
  CHRONOSYM_OPEN_FLAGS_TRUST_TRACE_PATHS = 1,
  /**
   * Do not keep samples; the timeline still names addresses.
   */
  CHRONOSYM_OPEN_FLAGS_WITHOUT_SAMPLES = 2,
} chronosym_open_flags;

/**
 * The kind of an address.
 */
typedef enum chronosym_position {
  /**
   * The address of an instruction: the innermost one of a CPU sample.
   */
  CHRONOSYM_POSITION_EXACT = 0,
  /**
   * A return address: every other one of a stack.
   */
  CHRONOSYM_POSITION_RETURN = 1,
} chronosym_position;

/**
 * Bits of `chronosym_symbol_options.flags`.
 */
typedef enum chronosym_symbol_flags {
  /**
   * Search folders and caches only; contact no server.
   */
  CHRONOSYM_SYMBOL_FLAGS_OFFLINE = 1,
  /**
   * Open files at the paths in the trace; use for traces recorded on this machine.
   */
  CHRONOSYM_SYMBOL_FLAGS_TRUST_TRACE_PATHS = 2,
  /**
   * Do not look up lines.
   */
  CHRONOSYM_SYMBOL_FLAGS_WITHOUT_LINES = 4,
  /**
   * Show compiler-generated names in source form.
   */
  CHRONOSYM_SYMBOL_FLAGS_PRETTY_NAMES = 8,
  /**
   * Use PDBs in `folders` even if they belong to another build.
   */
  CHRONOSYM_SYMBOL_FLAGS_ANY_PDB = 16,
} chronosym_symbol_flags;

/**
 * The details of a failure. Pointers are valid until the next failure of the same thread.
 */
typedef struct chronosym_error {
  /**
   * Set to `sizeof(chronosym_error)`.
   */
  size_t size;
  /**
   * The result of the call.
   */
  enum chronosym_status status;
  /**
   * What happened, in UTF-8; ends with a zero.
   */
  const char *message;
  /**
   * The file concerned, or null; ends with a zero.
   */
  const char *path;
  /**
   * Offset in that file in bytes, or `UINT64_MAX` if none is known.
   */
  uint64_t offset;
} chronosym_error;

/**
 * Receives the progress of reading: bytes read, and bytes of all inputs or `UINT64_MAX` if that is
 * unknown. Returning false stops the reading. It may run on another thread than the caller's, and
 * must return normally: no exception may leave it.
 */
typedef bool (*chronosym_progress)(void *data, uint64_t read, uint64_t total);

/**
 * A handle of a source of names and lines outside the trace. Any number of threads and resolvers
 * can use one.
 */
typedef struct chronosym_symbols {
  /**
   * Zero is the null handle.
   */
  uint64_t id;
} chronosym_symbols;

/**
 * Options for reading a trace. Zero bytes are the defaults.
 */
typedef struct chronosym_open_options {
  /**
   * Set to `sizeof(chronosym_open_options)`.
   */
  size_t size;
  /**
   * Called about once every few hundred KB, or null.
   */
  chronosym_progress progress;
  /**
   * Passed to `progress`.
   */
  void *progress_data;
  /**
   * Source of the image files with which stack copies are unwound, or the null handle.
   */
  struct chronosym_symbols symbols;
  /**
   * Maximum number of bytes that archives may unpack to; 0 for the default.
   */
  uint64_t unpacked_bytes;
  /**
   * Maximum number of bytes of memory for the timeline; 0 for the default.
   */
  uint64_t memory_bytes;
  /**
   * `chronosym_open_flags`.
   */
  uint32_t flags;
  /**
   * Zero.
   */
  uint32_t reserved;
} chronosym_open_options;

/**
 * A handle of a timeline, which never changes: any number of threads can use it at once.
 */
typedef struct chronosym_timeline {
  /**
   * Zero is the null handle.
   */
  uint64_t id;
} chronosym_timeline;

/**
 * A handle of a resolver, which caches answers. One thread at a time can use it: give each thread its own.
 */
typedef struct chronosym_resolver {
  /**
   * Zero is the null handle.
   */
  uint64_t id;
} chronosym_resolver;

/**
 * An address of a process at a time.
 */
typedef struct chronosym_query {
  /**
   * The address, as recorded in a stack.
   */
  uint64_t address;
  /**
   * ns since the trace began.
   */
  uint64_t time_ns;
  /**
   * The process id.
   */
  uint32_t pid;
  /**
   * A `chronosym_position`.
   */
  uint32_t position;
} chronosym_query;

/**
 * A frame: the code at an address. Texts are indexes for `chronosym_rows`; text 0 is empty and
 * means none. `chronosym_name` returns the names of list values.
 */
typedef struct chronosym_frame {
  /**
   * Text: simple name of the module or image.
   */
  uint32_t module;
  /**
   * Text: the method with namespace and type; of native code the demangled symbol.
   */
  uint32_t method;
  /**
   * Text: the signature as the runtime spells it.
   */
  uint32_t signature;
  /**
   * Text: the source file.
   */
  uint32_t file;
  /**
   * The source line from 1, or 0.
   */
  uint32_t line;
  /**
   * The column in the source line from 1, or 0.
   */
  uint32_t column;
  /**
   * The number of the process in `chronosym_timeline_processes` if the code is a code body, else `UINT32_MAX`.
   */
  uint32_t process;
  /**
   * The number of the code body in its process, or `UINT32_MAX`; of an inlinee that of the body it is inlined into.
   */
  uint32_t body;
  /**
   * 1 if the frame is inlined into the next one that is not, else 0.
   */
  uint8_t inlined;
  /**
   * A value of `CHRONOSYM_LIST_TIER`, or 0.
   */
  uint8_t tier;
  /**
   * A value of `CHRONOSYM_LIST_EVIDENCE`, or 0.
   */
  uint8_t evidence;
  /**
   * A value of `CHRONOSYM_LIST_CERTAINTY`, or 0.
   */
  uint8_t certainty;
  /**
   * A value of `CHRONOSYM_LIST_NAME_REASON`: why there is no name, or not all of it; 0 for none.
   */
  uint8_t name_reason;
  /**
   * A value of `CHRONOSYM_LIST_LINE_REASON`: why a frame with a name has no line; 0 for none.
   */
  uint8_t line_reason;
  /**
   * Zero.
   */
  uint8_t reserved[10];
} chronosym_frame;

/**
 * The results of a batch. Pointers are valid until the next call with the same resolver.
 *
 * The frames of query `q`, innermost first, are `frames[offsets[q]]` to `frames[offsets[q + 1] - 1]`: numbers of rows of
 * `table`, which has every distinct frame of the resolver so far. Text `t` begins at `texts + text_offsets[t]` and ends with
 * a zero; `text_offsets[t + 1]` is the offset after that zero.
 */
typedef struct chronosym_rows {
  /**
   * Set to `sizeof(chronosym_rows)`.
   */
  size_t size;
  /**
   * Number of queries.
   */
  size_t count;
  /**
   * Number of the first frame of each query, and the number of frames: `count + 1` elements.
   */
  const size_t *offsets;
  /**
   * Rows of `table`: `offsets[count]` elements.
   */
  const uint32_t *frames;
  /**
   * The distinct frames.
   */
  const struct chronosym_frame *table;
  /**
   * Number of rows of `table`.
   */
  size_t table_count;
  /**
   * The texts, contiguous.
   */
  const char *texts;
  /**
   * Offset of each text, and the number of bytes of all: `text_count + 1` elements.
   */
  const uint64_t *text_offsets;
  /**
   * Number of texts.
   */
  size_t text_count;
} chronosym_rows;

/**
 * A stack of a process at a time.
 */
typedef struct chronosym_stack {
  /**
   * Addresses, innermost first. All but the innermost are return addresses.
   */
  const uint64_t *addresses;
  /**
   * Number of `addresses`.
   */
  size_t address_count;
  /**
   * ns since the trace began.
   */
  uint64_t time_ns;
  /**
   * The process id.
   */
  uint32_t pid;
  /**
   * A `chronosym_position`, that of the innermost address.
   */
  uint32_t position;
} chronosym_stack;

/**
 * A handle of a session. One thread at a time can feed it; `chronosym_session_timeline` can be called by any thread at any
 * time.
 */
typedef struct chronosym_session {
  /**
   * Zero is the null handle.
   */
  uint64_t id;
} chronosym_session;

/**
 * Characters in UTF-8. A terminating zero is not counted and not required. Null with length 0 is
 * the empty text.
 */
typedef struct chronosym_text {
  /**
   * The first byte.
   */
  const char *data;
  /**
   * The number of bytes.
   */
  size_t length;
} chronosym_text;

/**
 * The identity of a PDB.
 */
typedef struct chronosym_pdb {
  /**
   * The GUID as stored in files: the first three groups are little-endian.
   */
  uint8_t guid[16];
  /**
   * Its path on the build machine.
   */
  struct chronosym_text path;
  /**
   * Its age.
   */
  uint32_t age;
  /**
   * Zero.
   */
  uint32_t reserved;
} chronosym_pdb;

/**
 * The IL offset of the native code that starts at an offset.
 */
typedef struct chronosym_il_entry {
  /**
   * IL offset; −1 no mapping, −2 prolog, −3 epilog.
   */
  int32_t il_offset;
  /**
   * Offset from the start of the body in bytes.
   */
  uint32_t native_offset;
} chronosym_il_entry;

/**
 * A statement about a process. Fields that its kind does not use are zero. All pointers are read
 * during the call only.
 */
typedef struct chronosym_fact {
  /**
   * A `chronosym_fact_kind`.
   */
  uint32_t kind;
  /**
   * A `chronosym_action`.
   */
  uint32_t action;
  /**
   * ns since the recording began.
   */
  uint64_t time_ns;
  /**
   * The process id.
   */
  uint32_t pid;
  /**
   * MethodFlags of a method.
   */
  uint32_t flags;
  /**
   * The thread id, or 0 if it is unknown.
   */
  uint64_t thread;
  /**
   * Identifies a method or module in its process.
   */
  uint64_t id;
  /**
   * The module of a method, or 0.
   */
  uint64_t module_id;
  /**
   * The first address.
   */
  uint64_t address;
  /**
   * Bytes.
   */
  uint64_t size;
  /**
   * File offset of a mapping in bytes.
   */
  uint64_t file_offset;
  /**
   * The metadata token of a method, or 0.
   */
  uint32_t token;
  /**
   * Zero.
   */
  uint32_t reserved;
  /**
   * Names, by kind.
   */
  struct chronosym_text names[3];
  /**
   * The PDB of an image or module, or null.
   */
  const struct chronosym_pdb *pdb;
  /**
   * An IL-to-native map.
   */
  const struct chronosym_il_entry *il_entries;
  /**
   * Number of `il_entries`.
   */
  size_t il_entry_count;
  /**
   * A stack, innermost first.
   */
  const uint64_t *addresses;
  /**
   * Number of `addresses`.
   */
  size_t address_count;
  /**
   * Time that a sample represents, in ns; 0 if unknown.
   */
  uint64_t weight_ns;
} chronosym_fact;

/**
 * An undecoded event.
 */
typedef struct chronosym_event {
  /**
   * ns since the recording began.
   */
  uint64_t time_ns;
  /**
   * The thread id, or 0 if it is unknown.
   */
  uint64_t thread;
  /**
   * The process id.
   */
  uint32_t pid;
  /**
   * The type, from `chronosym_session_event_type`.
   */
  uint32_t event_type;
  /**
   * The fields in order, little-endian, without padding.
   */
  const uint8_t *payload;
  /**
   * Number of bytes of `payload`.
   */
  size_t payload_size;
  /**
   * The stack, innermost first, or null. Live sessions do not keep it.
   */
  const uint64_t *addresses;
  /**
   * Number of `addresses`.
   */
  size_t address_count;
  /**
   * Bytes of a pointer on the recorded machine: 4 or 8.
   */
  uint32_t pointer_size;
  /**
   * Zero.
   */
  uint32_t reserved;
} chronosym_event;

/**
 * Writes the next bytes of a stream to `buffer` and returns their number, 0 at the end, or a
 * negative value on an error. It must return normally: no exception may leave it.
 */
typedef ptrdiff_t (*chronosym_read)(void *data, uint8_t *buffer, size_t size);

/**
 * Locations in which symbol files are searched; none by default. Zero bytes are the defaults.
 */
typedef struct chronosym_symbol_options {
  /**
   * Set to `sizeof(chronosym_symbol_options)`.
   */
  size_t size;
  /**
   * Folders or files, searched first; null if there are none.
   */
  const char *const *folders;
  /**
   * Number of `folders`.
   */
  size_t folder_count;
  /**
   * As `_NT_SYMBOL_PATH`, or null.
   */
  const char *symbol_path;
  /**
   * As `DEBUGINFOD_URLS`, or null.
   */
  const char *debuginfod_urls;
  /**
   * The folder for downloaded files, or null.
   */
  const char *cache;
  /**
   * Maximum number of bytes of cached results; 0 for the default.
   */
  uint64_t memory_bytes;
  /**
   * `chronosym_symbol_flags`.
   */
  uint32_t flags;
  /**
   * Zero.
   */
  uint32_t reserved;
} chronosym_symbol_options;

/**
 * Figures of a timeline.
 */
typedef struct chronosym_timeline_info {
  /**
   * Set to `sizeof(chronosym_timeline_info)`.
   */
  size_t size;
  /**
   * Number of processes, for `chronosym_timeline_processes`.
   */
  size_t processes;
  /**
   * Number of diagnostics, for `chronosym_timeline_diagnostics`.
   */
  size_t diagnostics;
  /**
   * Number of samples.
   */
  uint64_t samples;
  /**
   * Number of events that the recorder reported as lost.
   */
  uint64_t lost_events;
  /**
   * Time of the last event, in ns since the trace began.
   */
  uint64_t duration_ns;
  /**
   * Time up to which answers that name code are final, in ns; `UINT64_MAX` if no event follows.
   */
  uint64_t watermark_ns;
} chronosym_timeline_info;

/**
 * A process of a timeline. Texts are valid until the last handle of the timeline is freed.
 */
typedef struct chronosym_process {
  /**
   * The program's name, or the empty text.
   */
  struct chronosym_text name;
  /**
   * The command line, or the empty text.
   */
  struct chronosym_text command_line;
  /**
   * When it started, in ns since the trace began; 0 if no event states it.
   */
  uint64_t start_ns;
  /**
   * When it stopped, in ns since the trace began; `UINT64_MAX` if no event states it.
   */
  uint64_t end_ns;
  /**
   * The process id, or `UINT32_MAX` if it is unknown.
   */
  uint32_t pid;
  /**
   * 1 if a CLR runs in it, else 0.
   */
  uint32_t is_managed;
  /**
   * Zero.
   */
  uint64_t reserved[2];
} chronosym_process;

/**
 * A defect of a recording. The text is valid until the last handle of the timeline is freed.
 */
typedef struct chronosym_diagnostic {
  /**
   * What happened, with the count and the file.
   */
  struct chronosym_text text;
  /**
   * The file, or the empty text.
   */
  struct chronosym_text path;
  /**
   * Number of occurrences, or the amount lost.
   */
  uint64_t count;
  /**
   * A value of `CHRONOSYM_LIST_DIAGNOSTIC`.
   */
  uint32_t kind;
  /**
   * Zero.
   */
  uint32_t reserved;
} chronosym_diagnostic;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the details of the last failure of this thread. Without one the status is `CHRONOSYM_STATUS_OK` and the
 * message is empty.
 *
 * # Safety
 *
 * `error` is null or points to a `chronosym_error` whose `size` is set.
 */
enum chronosym_status chronosym_last_error(struct chronosym_error *error);

/**
 * Returns the name of a value of a `chronosym_list`, which ends with a zero and stays valid until
 * the process ends; null for 0 and for values that are not in the list.
 */
const char *chronosym_name(uint32_t list, uint32_t value);

/**
 * Returns the version of the library, such as `0.1.0`; ends with a zero and stays valid until the
 * process ends.
 */
const char *chronosym_version(void);

/**
 * Reads a trace, a saved timeline, or several files of one recording into a timeline. The format
 * is detected from the content. Null `options` are the defaults. Free the timeline with
 * `chronosym_timeline_free`.
 *
 * # Safety
 *
 * `paths` points to `count` texts that end with a zero; `options` is null or points to options; `timeline` is null or can
 * be written.
 */
enum chronosym_status chronosym_open(const char *const *paths,
                                     size_t count,
                                     const struct chronosym_open_options *options,
                                     struct chronosym_timeline *timeline);

/**
 * Creates a resolver of a timeline, with names and lines of `symbols`, or only those in the trace if that is the null
 * handle. Free it with `chronosym_resolver_free`.
 *
 * # Safety
 *
 * `resolver` is null or can be written.
 */
enum chronosym_status chronosym_resolver_new(struct chronosym_timeline timeline,
                                             struct chronosym_symbols symbols,
                                             struct chronosym_resolver *resolver);

/**
 * Frees a handle. Rows of the resolver are no longer valid.
 */
enum chronosym_status chronosym_resolver_free(struct chronosym_resolver resolver);

/**
 * Continues with a later timeline of the same live session. Rows of the table keep their numbers,
 * and only addresses whose answer may have changed are resolved again.
 */
enum chronosym_status chronosym_resolver_advance(struct chronosym_resolver resolver,
                                                 struct chronosym_timeline timeline);

/**
 * Resolves addresses. Large batches use all cores.
 *
 * # Safety
 *
 * `queries` points to `count` elements; `rows` is null or points to a `chronosym_rows` whose `size` is set.
 */
enum chronosym_status chronosym_resolve(struct chronosym_resolver resolver,
                                        const struct chronosym_query *queries,
                                        size_t count,
                                        struct chronosym_rows *rows);

/**
 * Resolves stacks: the rows of each are the frames of all its addresses, innermost first.
 *
 * # Safety
 *
 * `stacks` points to `count` elements with valid addresses; `rows` is null or points to a `chronosym_rows` whose `size` is
 * set.
 */
enum chronosym_status chronosym_resolve_stacks(struct chronosym_resolver resolver,
                                               const struct chronosym_stack *stacks,
                                               size_t count,
                                               struct chronosym_rows *rows);

/**
 * Creates a session that keeps samples and has a timeline when it is finished. Free it with
 * `chronosym_session_free`.
 *
 * # Safety
 *
 * `session` is null or can be written.
 */
enum chronosym_status chronosym_session_new(struct chronosym_session *session);

/**
 * Creates a live session: it has a timeline at any time, and keeps no samples. Free it with `chronosym_session_free`.
 *
 * # Safety
 *
 * `session` is null or can be written.
 */
enum chronosym_status chronosym_session_new_live(struct chronosym_session *session);

/**
 * Frees a handle. Timelines of the session stay valid.
 */
enum chronosym_status chronosym_session_free(struct chronosym_session session);

/**
 * Applies facts, in time order except samples. If one is rejected, those before it stay applied,
 * and the message states its index.
 *
 * # Safety
 *
 * `facts` points to `count` elements whose pointers are valid.
 */
enum chronosym_status chronosym_session_apply(struct chronosym_session session,
                                              const struct chronosym_fact *facts,
                                              size_t count);

/**
 * Registers an event type: a provider, by its name or GUID, with an id and a version. Equal
 * arguments return the same type.
 *
 * # Safety
 *
 * `provider` is null or ends with a zero; `event_type` is null or can be written.
 */
enum chronosym_status chronosym_session_event_type(struct chronosym_session session,
                                                   const char *provider,
                                                   uint32_t id,
                                                   uint32_t version,
                                                   uint32_t *event_type);

/**
 * Pushes undecoded events, which become the same facts. Events that describe code must come in
 * time order. If one is rejected, those before it stay pushed, and the message states its index;
 * an event whose payload cannot be decoded is counted in the diagnostics of the timeline.
 *
 * # Safety
 *
 * `events` points to `count` elements whose pointers are valid.
 */
enum chronosym_status chronosym_session_push(struct chronosym_session session,
                                             const struct chronosym_event *events,
                                             size_t count);

/**
 * Reads a nettrace stream, as sent by the .NET diagnostics port, into a live session until its
 * end, and publishes each batch, so that other threads get timelines in the meantime.
 *
 * # Safety
 *
 * `read` can be called with `data`, by any thread, until this call returns.
 */
enum chronosym_status chronosym_session_read(struct chronosym_session session,
                                             chronosym_read read,
                                             void *data);

/**
 * States that no event of an earlier time follows: answers before this time that name code are
 * final.
 */
enum chronosym_status chronosym_session_advance(struct chronosym_session session,
                                                uint64_t watermark_ns);

/**
 * Publishes everything fed so far to the readers of a live session.
 */
enum chronosym_status chronosym_session_publish(struct chronosym_session session);

/**
 * Drops processes, code, modules and images that ended before a time, in ns, from a live session.
 * `dropped` is null or receives the number of dropped code bodies.
 *
 * # Safety
 *
 * `dropped` is null or can be written.
 */
enum chronosym_status chronosym_session_forget_before(struct chronosym_session session,
                                                      uint64_t horizon_ns,
                                                      size_t *dropped);

/**
 * Returns the last published timeline of a live session. Never waits for the feeding thread.
 *
 * # Safety
 *
 * `timeline` is null or can be written.
 */
enum chronosym_status chronosym_session_timeline(struct chronosym_session session,
                                                 struct chronosym_timeline *timeline);

/**
 * Finishes a session, which takes no more facts, and returns its timeline.
 *
 * # Safety
 *
 * `timeline` is null or can be written.
 */
enum chronosym_status chronosym_session_finish(struct chronosym_session session,
                                               struct chronosym_timeline *timeline);

/**
 * Creates a source of symbols. Null `options` are the defaults. Free it with `chronosym_symbols_free`.
 *
 * # Safety
 *
 * `options` is null or points to options whose pointers are valid; `symbols` is null or can be written.
 */
enum chronosym_status chronosym_symbols_new(const struct chronosym_symbol_options *options,
                                            struct chronosym_symbols *symbols);

/**
 * Frees a handle. Resolvers that use the source keep it.
 */
enum chronosym_status chronosym_symbols_free(struct chronosym_symbols symbols);

/**
 * Frees a handle. Resolvers that use the timeline, and other handles of it, keep it.
 */
enum chronosym_status chronosym_timeline_free(struct chronosym_timeline timeline);

/**
 * Creates another handle of a timeline, so that each owner can free its own.
 *
 * # Safety
 *
 * `shared` is null or can be written.
 */
enum chronosym_status chronosym_timeline_share(struct chronosym_timeline timeline,
                                               struct chronosym_timeline *shared);

/**
 * Returns the figures of a timeline.
 *
 * # Safety
 *
 * `info` is null or points to a `chronosym_timeline_info` whose `size` is set.
 */
enum chronosym_status chronosym_timeline_summary(struct chronosym_timeline timeline,
                                                 struct chronosym_timeline_info *info);

/**
 * Writes the processes of a timeline, at most `capacity`, and their total number to `count`.
 * `processes` may be null if `capacity` is 0.
 *
 * # Safety
 *
 * `processes` has room for `capacity` elements; `count` is null or can be written.
 */
enum chronosym_status chronosym_timeline_processes(struct chronosym_timeline timeline,
                                                   struct chronosym_process *processes,
                                                   size_t capacity,
                                                   size_t *count);

/**
 * Writes the diagnostics of a recording, at most `capacity`, and their total number to `count`.
 * `diagnostics` may be null if `capacity` is 0.
 *
 * # Safety
 *
 * `diagnostics` has room for `capacity` elements; `count` is null or can be written.
 */
enum chronosym_status chronosym_timeline_diagnostics(struct chronosym_timeline timeline,
                                                     struct chronosym_diagnostic *diagnostics,
                                                     size_t capacity,
                                                     size_t *count);

/**
 * Saves a timeline in a small file, which `chronosym_open` reads like a trace. An existing file is
 * replaced.
 *
 * # Safety
 *
 * `path` is null or ends with a zero.
 */
enum chronosym_status chronosym_timeline_save(struct chronosym_timeline timeline,
                                              const char *path,
                                              bool with_samples);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CHRONOSYM_H */

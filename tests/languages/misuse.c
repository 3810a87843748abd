// Every misuse that can be detected is an error: misuse TRACE.
#include <chronosym.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(status, call)                                                                       \
    do {                                                                                           \
        chronosym_status got = (call);                                                             \
        if (got != (status)) {                                                                     \
            fprintf(stderr, "%s:%d: %s is %d\n", __FILE__, __LINE__, #call, got);                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition);                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK CHRONOSYM_STATUS_OK
#define ARGUMENT CHRONOSYM_STATUS_INVALID_ARGUMENT
#define HANDLE CHRONOSYM_STATUS_INVALID_HANDLE

static chronosym_error last(void) {
    chronosym_error error = {.size = sizeof error};
    EXPECT(OK, chronosym_last_error(&error));
    return error;
}

static bool stop(void *data, uint64_t read, uint64_t total) {
    (void)read, (void)total;
    ++*(int *)data;
    return false;
}

static void *publish(void *data) {
    EXPECT(CHRONOSYM_STATUS_BUSY, chronosym_session_publish(*(chronosym_session *)data));
    REQUIRE(strstr(last().message, "another thread"));
    chronosym_timeline timeline;
    EXPECT(OK, chronosym_session_timeline(*(chronosym_session *)data, &timeline));
    EXPECT(OK, chronosym_timeline_free(timeline));
    return NULL;
}

// The session is in a call of this thread.
static ptrdiff_t read_nothing(void *data, uint8_t *buffer, size_t size) {
    (void)buffer, (void)size;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, publish, data) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    return -1;
}

static ptrdiff_t read_too_much(void *data, uint8_t *buffer, size_t size) {
    (void)data, (void)buffer;
    return (ptrdiff_t)size + 1;
}

static void opening(const char *trace) {
    chronosym_timeline timeline;
    const char *paths[] = {trace, "/nowhere/at/all"};
    EXPECT(ARGUMENT, chronosym_open(NULL, 1, NULL, &timeline));
    EXPECT(ARGUMENT, chronosym_open(paths, 1, NULL, NULL));
    EXPECT(ARGUMENT, chronosym_open((const char *const[]){NULL}, 1, NULL, &timeline));
    EXPECT(CHRONOSYM_STATUS_INPUTS, chronosym_open(paths, 0, NULL, &timeline));
    EXPECT(CHRONOSYM_STATUS_NOT_FOUND, chronosym_open(paths + 1, 1, NULL, &timeline));
    REQUIRE(!strcmp(last().path, "/nowhere/at/all"));
    REQUIRE(last().offset == UINT64_MAX);
    EXPECT(CHRONOSYM_STATUS_FORMAT, chronosym_open((const char *const[]){"/proc/self/exe"}, 1, NULL, &timeline));
    REQUIRE(!strcmp(last().path, "/proc/self/exe"));

    int calls = 0;
    chronosym_open_options options = {.progress = stop, .progress_data = &calls};
    EXPECT(ARGUMENT, chronosym_open(paths, 1, &options, &timeline));
    REQUIRE(strstr(last().message, "sizeof"));
    options.size = sizeof options;
    EXPECT(CHRONOSYM_STATUS_CANCELLED, chronosym_open(paths, 1, &options, &timeline));
    REQUIRE(calls > 0);
    options.flags = 1u << 30;
    EXPECT(ARGUMENT, chronosym_open(paths, 1, &options, &timeline));
    // A structure of a later version, with and without a field that this one does not have.
    struct {
        chronosym_open_options known;
        uint64_t later;
    } later = {.known = {.size = sizeof later}, .later = 1};
    EXPECT(ARGUMENT, chronosym_open(paths, 1, &later.known, &timeline));
    later.later = 0;
    EXPECT(OK, chronosym_open(paths, 1, &later.known, &timeline));
    EXPECT(OK, chronosym_timeline_free(timeline));
}

static void handles(const char *trace) {
    chronosym_timeline timeline, shared, none = {0};
    EXPECT(OK, chronosym_open(&trace, 1, NULL, &timeline));
    EXPECT(HANDLE, chronosym_timeline_free(none));
    EXPECT(HANDLE, chronosym_timeline_free((chronosym_timeline){0x123456789}));
    EXPECT(HANDLE, chronosym_symbols_free((chronosym_symbols){timeline.id}));
    EXPECT(HANDLE, chronosym_session_publish((chronosym_session){timeline.id}));
    EXPECT(OK, chronosym_timeline_share(timeline, &shared));
    EXPECT(OK, chronosym_timeline_free(timeline));
    EXPECT(HANDLE, chronosym_timeline_free(timeline));
    REQUIRE(strstr(last().message, "freed"));
    size_t count;
    EXPECT(HANDLE, chronosym_timeline_processes(timeline, NULL, 0, &count));
    EXPECT(OK, chronosym_timeline_processes(shared, NULL, 0, &count));
    REQUIRE(count > 0);
    EXPECT(ARGUMENT, chronosym_timeline_processes(shared, NULL, 1, &count));
    EXPECT(ARGUMENT, chronosym_timeline_processes(shared, NULL, 0, NULL));
    EXPECT(ARGUMENT, chronosym_timeline_save(shared, NULL, false));
    EXPECT(CHRONOSYM_STATUS_NOT_FOUND, chronosym_timeline_save(shared, "/nowhere/x.chrono", false));
    REQUIRE(!strcmp(last().path, "/nowhere/x.chrono"));

    chronosym_resolver resolver;
    chronosym_symbols symbols = {0};
    EXPECT(HANDLE, chronosym_resolver_new(none, symbols, &resolver));
    EXPECT(HANDLE, chronosym_resolver_new(shared, (chronosym_symbols){shared.id}, &resolver));
    EXPECT(OK, chronosym_resolver_new(shared, symbols, &resolver));
    EXPECT(OK, chronosym_timeline_free(shared));
    chronosym_rows rows = {.size = sizeof rows};
    chronosym_query query = {.address = 1, .position = 7};
    EXPECT(ARGUMENT, chronosym_resolve(resolver, NULL, 1, &rows));
    EXPECT(ARGUMENT, chronosym_resolve(resolver, &query, SIZE_MAX, &rows));
    EXPECT(ARGUMENT, chronosym_resolve(resolver, (chronosym_query *)((char *)&query + 1), 1, &rows));
    EXPECT(ARGUMENT, chronosym_resolve(resolver, &query, 1, &rows));
    query.position = CHRONOSYM_POSITION_EXACT;
    EXPECT(ARGUMENT, chronosym_resolve(resolver, &query, 1, NULL));
    EXPECT(OK, chronosym_resolve(resolver, &query, 1, &rows));
    REQUIRE(rows.count == 1 && rows.offsets[1] == 1);
    EXPECT(OK, chronosym_resolve(resolver, NULL, 0, &rows));
    REQUIRE(rows.count == 0);
    EXPECT(ARGUMENT, chronosym_resolve_stacks(resolver, &(chronosym_stack){.address_count = 1}, 1, &rows));
    EXPECT(OK, chronosym_resolve_stacks(resolver, &(chronosym_stack){0}, 1, &rows));
    REQUIRE(rows.count == 1 && rows.offsets[1] == 0);
    EXPECT(HANDLE, chronosym_resolver_advance(resolver, shared));

    // A child has no objects, and can make its own.
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        EXPECT(HANDLE, chronosym_resolve(resolver, &query, 1, &rows));
        EXPECT(OK, chronosym_open(&trace, 1, NULL, &timeline));
        EXPECT(HANDLE, chronosym_resolver_free(resolver));
        EXPECT(OK, chronosym_timeline_free(timeline));
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(OK, chronosym_resolver_free(resolver));
    EXPECT(HANDLE, chronosym_resolve(resolver, &query, 1, &rows));
    chronosym_error small = {.size = 8};
    EXPECT(ARGUMENT, chronosym_last_error(&small));
    EXPECT(ARGUMENT, chronosym_last_error(NULL));
}

static void sessions(void) {
    chronosym_session session, live;
    chronosym_timeline timeline;
    EXPECT(ARGUMENT, chronosym_session_new(NULL));
    EXPECT(OK, chronosym_session_new(&session));
    EXPECT(CHRONOSYM_STATUS_STATE, chronosym_session_publish(session));
    EXPECT(CHRONOSYM_STATUS_STATE, chronosym_session_timeline(session, &timeline));
    chronosym_fact facts[] = {
        {.kind = CHRONOSYM_FACT_KIND_PROCESS, .pid = 7, .names = {CHRONOSYM_TEXT("app")}},
        {.kind = 99, .pid = 7},
    };
    EXPECT(ARGUMENT, chronosym_session_apply(session, facts, 2));
    REQUIRE(strstr(last().message, "fact 1"));
    facts[1] = (chronosym_fact){.kind = CHRONOSYM_FACT_KIND_PROCESS, .action = 9};
    EXPECT(ARGUMENT, chronosym_session_apply(session, facts + 1, 1));
    facts[1] = (chronosym_fact){.kind = CHRONOSYM_FACT_KIND_THREAD_NAME, .names = {CHRONOSYM_TEXT("\xff")}};
    EXPECT(ARGUMENT, chronosym_session_apply(session, facts + 1, 1));
    REQUIRE(strstr(last().message, "UTF-8"));
    facts[1] = (chronosym_fact){.kind = CHRONOSYM_FACT_KIND_METHOD, .size = 1ull << 40};
    EXPECT(ARGUMENT, chronosym_session_apply(session, facts + 1, 1));
    facts[1] = (chronosym_fact){.kind = CHRONOSYM_FACT_KIND_SYMBOL, .address = UINT64_MAX, .size = 2};
    EXPECT(ARGUMENT, chronosym_session_apply(session, facts + 1, 1));
    facts[1] = (chronosym_fact){.kind = CHRONOSYM_FACT_KIND_IL_MAP, .il_entry_count = 3};
    EXPECT(ARGUMENT, chronosym_session_apply(session, facts + 1, 1));
    uint32_t type;
    EXPECT(ARGUMENT, chronosym_session_event_type(session, NULL, 1, 1, &type));
    EXPECT(OK, chronosym_session_event_type(session, "Microsoft-Windows-DotNETRuntime", 143, 2, &type));
    chronosym_event event = {.event_type = type + 1, .pointer_size = 8};
    EXPECT(ARGUMENT, chronosym_session_push(session, &event, 1));
    event = (chronosym_event){.event_type = type, .pointer_size = 5};
    EXPECT(ARGUMENT, chronosym_session_push(session, &event, 1));
    // A payload that is cut short is counted.
    event.pointer_size = 8;
    EXPECT(OK, chronosym_session_push(session, &event, 1));
    EXPECT(OK, chronosym_session_finish(session, &timeline));
    size_t count;
    EXPECT(OK, chronosym_timeline_diagnostics(timeline, NULL, 0, &count));
    REQUIRE(count == 1);
    EXPECT(OK, chronosym_timeline_free(timeline));
    EXPECT(CHRONOSYM_STATUS_STATE, chronosym_session_finish(session, &timeline));
    EXPECT(CHRONOSYM_STATUS_STATE, chronosym_session_apply(session, facts, 1));
    EXPECT(OK, chronosym_session_free(session));
    EXPECT(HANDLE, chronosym_session_apply(session, facts, 1));

    EXPECT(OK, chronosym_session_new_live(&live));
    EXPECT(ARGUMENT, chronosym_session_read(live, NULL, NULL));
    EXPECT(CHRONOSYM_STATUS_IO, chronosym_session_read(live, read_nothing, &live));
    EXPECT(CHRONOSYM_STATUS_IO, chronosym_session_read(live, read_too_much, NULL));
    EXPECT(OK, chronosym_session_publish(live));
    EXPECT(OK, chronosym_session_free(live));
}

int main(int argc, char **argv) {
    REQUIRE(argc == 2);
    EXPECT(OK, last().status);
    opening(argv[1]);
    handles(argv[1]);
    sessions();
    REQUIRE(chronosym_name(0, 0) == NULL);
    puts("every misuse was refused");
    return 0;
}

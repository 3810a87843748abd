// Answers queries of a file, one line each, and measures batches: answers TRACE QUERIES [ROUNDS].
#include <chronosym.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(chronosym_status status) {
    if (status == CHRONOSYM_STATUS_OK) {
        return;
    }
    chronosym_error error = {.size = sizeof error};
    chronosym_last_error(&error);
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

static const char *name(chronosym_list list, uint8_t value) {
    const char *name = chronosym_name(list, value);
    return name ? name : "";
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        return 2;
    }
    const char *paths[] = {argv[1]};
    chronosym_timeline timeline;
    check(chronosym_open(paths, 1, NULL, &timeline));
    chronosym_resolver resolver;
    check(chronosym_resolver_new(timeline, (chronosym_symbols){0}, &resolver));
    FILE *file = fopen(argv[2], "rb");
    if (!file) {
        return 1;
    }
    fseek(file, 0, SEEK_END);
    size_t count = (size_t)ftell(file) / sizeof(chronosym_query);
    rewind(file);
    chronosym_query *queries = malloc(count * sizeof *queries);
    if (fread(queries, sizeof *queries, count, file) != count) {
        return 1;
    }
    fclose(file);
    chronosym_rows rows = {.size = sizeof rows};
    check(chronosym_resolve(resolver, queries, count, &rows));
    for (size_t i = 0; i < rows.count; i++) {
        for (size_t f = rows.offsets[i]; f < rows.offsets[i + 1]; f++) {
            const chronosym_frame *it = &rows.table[rows.frames[f]];
#define TEXT(number) (rows.texts + rows.text_offsets[number])
            printf("%s!%s|%s|%s:%u:%u|%d|%s|%s|%s|%s|%s\t", TEXT(it->module), TEXT(it->method),
                   TEXT(it->signature), TEXT(it->file), it->line, it->column, it->inlined,
                   name(CHRONOSYM_LIST_TIER, it->tier), name(CHRONOSYM_LIST_EVIDENCE, it->evidence),
                   name(CHRONOSYM_LIST_CERTAINTY, it->certainty),
                   name(CHRONOSYM_LIST_NAME_REASON, it->name_reason),
                   name(CHRONOSYM_LIST_LINE_REASON, it->line_reason));
        }
        putchar('\n');
    }
    double best = 1e18;
    for (int round = argc > 3 ? atoi(argv[3]) : 0; round > 0; round--) {
        double start = now();
        check(chronosym_resolve(resolver, queries, count, &rows));
        double taken = now() - start;
        best = taken < best ? taken : best;
    }
    if (argc > 3) {
        fprintf(stderr, "%.2f\n", best / (double)count);
    }
    free(queries);
    check(chronosym_resolver_free(resolver));
    check(chronosym_timeline_free(timeline));
    return 0;
}

// A small layer over chronosym.h for C++17: objects free their handles, and failures are exceptions.
//
// docs/languages/cpp.md has examples.

#ifndef CHRONOSYM_HPP
#define CHRONOSYM_HPP

#include <chronosym.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chronosym {

/// Why a call failed.
class error : public std::runtime_error {
public:
    explicit error(const chronosym_error &details)
        : std::runtime_error(details.message), status_(details.status),
          path_(details.path ? details.path : ""), offset_(details.offset) {}

    /// Returns the kind of failure.
    chronosym_status status() const noexcept { return status_; }
    /// Returns the file that the failure is about, or the empty text.
    const std::string &path() const noexcept { return path_; }
    /// Returns the offset in the file in bytes, if it is known.
    std::optional<std::uint64_t> offset() const noexcept {
        return offset_ == UINT64_MAX ? std::nullopt : std::optional(offset_);
    }

private:
    chronosym_status status_;
    std::string path_;
    std::uint64_t offset_;
};

/// Throws the last failure of this thread unless a call succeeded.
inline void check(chronosym_status status) {
    if (status == CHRONOSYM_STATUS_OK) {
        return;
    }
    chronosym_error details{};
    details.size = sizeof details;
    chronosym_last_error(&details);
    throw error(details);
}

/// Returns a text for a call: its characters must outlive the call.
inline chronosym_text text(std::string_view characters) noexcept {
    return {characters.data(), characters.size()};
}

/// Returns a text that a timeline lends.
inline std::string_view view(chronosym_text text) noexcept { return {text.data, text.length}; }

/// Owns a handle.
template <class Handle, chronosym_status (*Free)(Handle)> class owner {
public:
    owner() noexcept = default;
    explicit owner(Handle handle) noexcept : handle_(handle) {}
    owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
    owner &operator=(owner &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~owner() {
        if (handle_.id != 0) {
            Free(handle_);
        }
    }

    /// Returns the handle, which stays this object's.
    Handle get() const noexcept { return handle_; }

private:
    Handle handle_{};
};

/// Where names and lines beyond the trace come from.
class symbols : public owner<chronosym_symbols, chronosym_symbols_free> {
public:
    explicit symbols(const std::vector<std::string> &folders, std::uint32_t flags = 0) {
        std::vector<const char *> paths;
        for (const auto &folder : folders) {
            paths.push_back(folder.c_str());
        }
        chronosym_symbol_options options{};
        options.size = sizeof options;
        options.folders = paths.data();
        options.folder_count = paths.size();
        options.flags = flags;
        *this = symbols(options);
    }
    explicit symbols(const chronosym_symbol_options &options) {
        chronosym_symbols handle{};
        check(chronosym_symbols_new(&options, &handle));
        static_cast<owner &>(*this) = owner(handle);
    }
};

/// The recorded lifetimes of all code. Copies share one timeline.
class timeline : public owner<chronosym_timeline, chronosym_timeline_free> {
public:
    using owner::owner;
    timeline(timeline &&) noexcept = default;
    timeline &operator=(timeline &&) noexcept = default;
    timeline(const timeline &other) : owner(shared(other.get())) {}
    timeline &operator=(const timeline &other) { return *this = timeline(other); }

    /// Returns what is in it.
    chronosym_timeline_info info() const {
        chronosym_timeline_info info{};
        info.size = sizeof info;
        check(chronosym_timeline_summary(get(), &info));
        return info;
    }
    /// Returns its processes, whose texts are valid as long as the timeline.
    std::vector<chronosym_process> processes() const {
        std::size_t count = 0;
        check(chronosym_timeline_processes(get(), nullptr, 0, &count));
        std::vector<chronosym_process> all(count);
        check(chronosym_timeline_processes(get(), all.data(), all.size(), &count));
        return all;
    }
    /// Returns what was wrong with the recording; texts are valid as long as the timeline.
    std::vector<chronosym_diagnostic> diagnostics() const {
        std::size_t count = 0;
        check(chronosym_timeline_diagnostics(get(), nullptr, 0, &count));
        std::vector<chronosym_diagnostic> all(count);
        check(chronosym_timeline_diagnostics(get(), all.data(), all.size(), &count));
        return all;
    }
    /// Saves it in a small file, which `open` reads.
    void save(const std::string &path, bool with_samples = false) const {
        check(chronosym_timeline_save(get(), path.c_str(), with_samples));
    }

private:
    static chronosym_timeline shared(chronosym_timeline other) {
        chronosym_timeline handle{};
        if (other.id != 0) {
            check(chronosym_timeline_share(other, &handle));
        }
        return handle;
    }
};

/// Receives bytes read and bytes of all inputs; false stops the reading. An exception stops it, too, and leaves `open`.
using progress = std::function<bool(std::uint64_t read, std::uint64_t total)>;

/// Reads a trace, or several files of one recording.
inline timeline open(const std::vector<std::string> &paths, const progress &report = {},
                     chronosym_open_options options = {}) {
    struct state {
        const progress &report;
        std::exception_ptr thrown;
    } state{report, {}};
    std::vector<const char *> names;
    for (const auto &path : paths) {
        names.push_back(path.c_str());
    }
    options.size = sizeof options;
    if (report) {
        options.progress_data = &state;
        options.progress = [](void *data, std::uint64_t read, std::uint64_t total) {
            auto &state = *static_cast<struct state *>(data);
            try {
                return !state.thrown && state.report(read, total);
            } catch (...) {
                state.thrown = std::current_exception();
                return false;
            }
        };
    }
    chronosym_timeline handle{};
    const auto status = chronosym_open(names.data(), names.size(), &options, &handle);
    timeline read(handle);
    if (state.thrown) {
        std::rethrow_exception(state.thrown);
    }
    check(status);
    return read;
}

/// The answers to a batch, valid until the next call with the same resolver.
class rows {
public:
    explicit rows(const chronosym_rows &answers) noexcept : rows_(answers) {}

    /// Returns the number of queries.
    std::size_t size() const noexcept { return rows_.count; }
    /// Returns the number of frames of a query.
    std::size_t frames_of(std::size_t query) const noexcept {
        return rows_.offsets[query + 1] - rows_.offsets[query];
    }
    /// Returns a frame of a query; 0 is the innermost one.
    const chronosym_frame &frame(std::size_t query, std::size_t index) const noexcept {
        return rows_.table[rows_.frames[rows_.offsets[query] + index]];
    }
    /// Returns a text of a frame.
    std::string_view text(std::uint32_t number) const noexcept {
        const auto *offset = rows_.text_offsets + number;
        return {rows_.texts + offset[0], static_cast<std::size_t>(offset[1] - offset[0] - 1)};
    }
    /// Returns everything, as C has it.
    const chronosym_rows &raw() const noexcept { return rows_; }

private:
    chronosym_rows rows_;
};

/// Resolves addresses and stacks of a timeline. One thread at a time can use it.
class resolver : public owner<chronosym_resolver, chronosym_resolver_free> {
public:
    explicit resolver(const timeline &of) : resolver(of, chronosym_symbols{}) {}
    resolver(const timeline &of, const symbols &from) : resolver(of, from.get()) {}

    /// Resolves addresses.
    rows resolve(const chronosym_query *queries, std::size_t count) {
        chronosym_rows answers = empty();
        check(chronosym_resolve(get(), queries, count, &answers));
        return rows(answers);
    }
    rows resolve(const std::vector<chronosym_query> &queries) {
        return resolve(queries.data(), queries.size());
    }
    /// Resolves stacks.
    rows resolve(const std::vector<chronosym_stack> &stacks) {
        chronosym_rows answers = empty();
        check(chronosym_resolve_stacks(get(), stacks.data(), stacks.size(), &answers));
        return rows(answers);
    }
    /// Continues with a later timeline of the same live session.
    void advance(const timeline &later) { check(chronosym_resolver_advance(get(), later.get())); }

private:
    resolver(const timeline &of, chronosym_symbols from) {
        chronosym_resolver handle{};
        check(chronosym_resolver_new(of.get(), from, &handle));
        static_cast<owner &>(*this) = owner(handle);
    }
    static chronosym_rows empty() noexcept {
        chronosym_rows answers{};
        answers.size = sizeof answers;
        return answers;
    }
};

/// A live session: one thread feeds it, any thread gets timelines.
class live_session : public owner<chronosym_session, chronosym_session_free> {
public:
    live_session() {
        chronosym_session handle{};
        check(chronosym_session_new_live(&handle));
        static_cast<owner &>(*this) = owner(handle);
    }

    /// Applies facts in time order.
    void apply(const std::vector<chronosym_fact> &facts) {
        check(chronosym_session_apply(get(), facts.data(), facts.size()));
    }
    /// Shows readers all that was applied.
    void publish() { check(chronosym_session_publish(get())); }
    /// Promises that no earlier event is to come.
    void advance(std::uint64_t watermark_ns) {
        check(chronosym_session_advance(get(), watermark_ns));
    }
    /// Drops what ended before a time. Returns the number of code bodies.
    std::size_t forget_before(std::uint64_t horizon_ns) {
        std::size_t dropped = 0;
        check(chronosym_session_forget_before(get(), horizon_ns, &dropped));
        return dropped;
    }
    /// Returns the timeline as it was last published.
    timeline latest() const {
        chronosym_timeline handle{};
        check(chronosym_session_timeline(get(), &handle));
        return timeline(handle);
    }
    /// Finishes the session, and returns its timeline.
    timeline finish() {
        chronosym_timeline handle{};
        check(chronosym_session_finish(get(), &handle));
        return timeline(handle);
    }
};

} // namespace chronosym

#endif

// Exceptions reach the caller, moved and copied objects are freed once: misuse TRACE.
#include <chronosym.hpp>
#include <cstdio>
#include <cstdlib>

static void require(bool condition, const char *what) {
    if (!condition) {
        std::fprintf(stderr, "not %s\n", what);
        std::exit(1);
    }
}

int main(int argc, char **argv) {
    require(argc == 2, "one argument");
    bool caught = false;
    try {
        chronosym::open({argv[1]}, [](std::uint64_t, std::uint64_t) -> bool {
            throw std::string("mine");
        });
    } catch (const std::string &text) {
        caught = text == "mine";
    }
    require(caught, "the exception of the callback");
    caught = false;
    try {
        chronosym::open({"/nowhere"});
    } catch (const chronosym::error &error) {
        caught = error.status() == CHRONOSYM_STATUS_NOT_FOUND && error.path() == "/nowhere" &&
                 !error.offset();
    }
    require(caught, "an error with its path");

    auto first = chronosym::open({argv[1]});
    auto second = first;
    const auto third = std::move(first);
    second = third;
    require(!second.processes().empty(), "a process");
    chronosym::resolver resolver(second, chronosym::symbols({"."}));
    second = {};
    require(resolver.resolve(std::vector<chronosym_query>{{1, 1, 1, 0}}).size() == 1, "an answer");
    caught = false;
    try {
        resolver.advance(second);
    } catch (const chronosym::error &error) {
        caught = error.status() == CHRONOSYM_STATUS_INVALID_HANDLE;
    }
    require(caught, "a refused null handle");
    chronosym::live_session live;
    live.publish();
    require(live.finish().processes().empty(), "no process");
    std::puts("every exception was caught");
}

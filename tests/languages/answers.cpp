// As answers.c.
#include <chronosym.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

static const char *name(chronosym_list list, std::uint8_t value) {
    const char *name = chronosym_name(list, value);
    return name ? name : "";
}

int main(int argc, char **argv) {
    if (argc < 3) {
        return 2;
    }
    const auto timeline = chronosym::open({argv[1]});
    chronosym::resolver resolver(timeline);
    std::ifstream file(argv[2], std::ios::binary | std::ios::ate);
    std::vector<chronosym_query> queries(static_cast<std::size_t>(file.tellg()) /
                                         sizeof(chronosym_query));
    file.seekg(0);
    file.read(reinterpret_cast<char *>(queries.data()),
              static_cast<std::streamsize>(queries.size() * sizeof(chronosym_query)));
    const auto rows = resolver.resolve(queries);
    for (std::size_t query = 0; query < rows.size(); query++) {
        for (std::size_t frame = 0; frame < rows.frames_of(query); frame++) {
            const auto &it = rows.frame(query, frame);
            const auto text = [&](std::uint32_t number) { return rows.text(number).data(); };
            std::printf("%s!%s|%s|%s:%u:%u|%d|%s|%s|%s|%s|%s\t", text(it.module), text(it.method),
                        text(it.signature), text(it.file), it.line, it.column, it.inlined,
                        name(CHRONOSYM_LIST_TIER, it.tier),
                        name(CHRONOSYM_LIST_EVIDENCE, it.evidence),
                        name(CHRONOSYM_LIST_CERTAINTY, it.certainty),
                        name(CHRONOSYM_LIST_NAME_REASON, it.name_reason),
                        name(CHRONOSYM_LIST_LINE_REASON, it.line_reason));
        }
        std::putchar('\n');
    }
    if (argc > 3) {
        double best = 1e18;
        for (int round = std::stoi(argv[3]); round > 0; round--) {
            const auto start = std::chrono::steady_clock::now();
            resolver.resolve(queries);
            const std::chrono::duration<double, std::nano> taken =
                std::chrono::steady_clock::now() - start;
            best = std::min(best, taken.count());
        }
        std::fprintf(stderr, "%.2f\n", best / static_cast<double>(queries.size()));
    }
}

// Goal: whatever becomes of its file, an LMDB index either is what it was after some change that
// was made, or says that it is not.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/random.h"
#include "tests/store/index_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

Errc error_of(const Result<void>& result) {
    REQUIRE(!result.has_value());
    return result.error().code;
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// What the change with a number does: a few entries come, and those of an earlier one go.
void change(std::uint64_t number, Changes& changes) {
    for (int i = 0; i < 40; ++i) {
        changes["k" + std::to_string(number % 7) + "/" + std::to_string(i)] =
            std::string(60, static_cast<char>('a' + number % 26));
        changes["k" + std::to_string((number + 3) % 7) + "/" + std::to_string(i)] = std::nullopt;
    }
    changes["big"] = std::string(1000 + number, 'b');
}

Entries after_changes(std::uint64_t count) {
    Entries entries;
    for (std::uint64_t number = 1; number <= count; ++number) {
        Changes changes;
        change(number, changes);
        for (const auto& [key, value] : changes) {
            if (value) {
                entries[key] = *value;
            } else {
                entries.erase(key);
            }
        }
    }
    return entries;
}

void make_changes(IndexStage& stage, std::uint64_t count) {
    for (std::uint64_t number = 1; number <= count; ++number) {
        Changes changes;
        change(number, changes);
        REQUIRE(stage.apply(changes, number).has_value());
    }
}

// True when it opened, and then it is what it was at some time.
bool opens_whole(IndexStage& stage, std::uint64_t applied_max) {
    const auto opened = stage.open();
    if (!opened) {
        const auto code = opened.error().code;
        REQUIRE((code == Errc::kCorrupt || code == Errc::kUnsupported || code == Errc::kInvalid));
        return false;
    }
    REQUIRE(stage.index().applied() <= applied_max);
    REQUIRE(stage.all() == after_changes(stage.index().applied()));
    stage.close();
    return true;
}

}  // namespace

TEST_CASE("store lmdb index: without its file it is not found", "[store]") {
    IndexStage stage(IndexKind::kLmdb);
    stage.close();
    std::filesystem::remove(stage.file());

    REQUIRE(error_of(stage.open()) == Errc::kNotFound);
}

TEST_CASE("store lmdb index: it knows whose it is", "[store]") {
    IndexStage stage(IndexKind::kLmdb);
    stage.close();
    stage.options().disk_id.fill(std::byte{8});

    REQUIRE(error_of(stage.open()) == Errc::kInvalid);
}

TEST_CASE("store lmdb index: an older one is made again, a newer one is left alone", "[store]") {
    IndexStage stage(IndexKind::kLmdb);
    stage.close();
    const std::uint32_t written = stage.options().schema_version;

    stage.options().schema_version = written + 1;
    REQUIRE(error_of(stage.open()) == Errc::kInvalid);
    stage.options().schema_version = written - 1;
    REQUIRE(error_of(stage.open()) == Errc::kUnsupported);
}

TEST_CASE("store lmdb index: other files are corrupt, and are replaced when told so", "[store]") {
    const std::string content = GENERATE(std::string(), std::string("no index"),
                                         std::string(100'000, '\0'), std::string(100'000, 'x'));
    IndexStage stage(IndexKind::kLmdb);
    stage.close();
    write_file(stage.file(), content);

    REQUIRE(error_of(stage.open()) == Errc::kCorrupt);
    REQUIRE(read_file(stage.file()) == content);
    REQUIRE(stage.create().has_value());
    REQUIRE(stage.all().empty());
}

TEST_CASE("store lmdb index: where the file ends too early it is corrupt", "[store]") {
    IndexStage stage(IndexKind::kLmdb);
    make_changes(stage, 10);
    stage.close();
    const auto whole = read_file(stage.file());
    bool seen_corrupt = false;
    for (std::size_t size = 0; size < whole.size(); size += 2048) {
        write_file(stage.file(), whole.substr(0, size));
        seen_corrupt = !opens_whole(stage, 10) || seen_corrupt;
    }
    REQUIRE(seen_corrupt);
    write_file(stage.file(), whole);
    REQUIRE(opens_whole(stage, 10));
}

TEST_CASE("store lmdb index: a flipped bit is found, or does not matter", "[store]") {
    IndexStage stage(IndexKind::kLmdb);
    make_changes(stage, 12);
    stage.close();
    const auto whole = read_file(stage.file());
    core::Random random(1);
    int found = 0;
    for (int i = 0; i < 400; ++i) {
        auto damaged = whole;
        // Every other time where pages have their heads.
        auto at = random.below(whole.size());
        if (i % 2 == 0) at = at / 4096 * 4096 + random.below(200);
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
        INFO("byte " << at);
        write_file(stage.file(), damaged);
        if (!opens_whole(stage, 12)) ++found;
    }
    // The rest was where nobody looks.
    REQUIRE(found > 20);
}

TEST_CASE("store lmdb index: the file system keeps blocks for it beyond its end", "[store]") {
    IndexStage stage(IndexKind::kLmdb);
    REQUIRE(stage.apply({{"a", "1"}}, 1).has_value());
    REQUIRE(stage.index().has_reserve());
    struct stat file{};
    REQUIRE(::stat(stage.file().c_str(), &file) == 0);
    REQUIRE(static_cast<std::uint64_t>(file.st_blocks) * 512 >=
            static_cast<std::uint64_t>(file.st_size) + (3UL << 20));
    stage.close();
    REQUIRE(stage.open().has_value());
    REQUIRE(stage.index().has_reserve());
}

TEST_CASE("store lmdb index: blocks beyond its end that it has used are given to it again",
          "[store]") {
    IndexStage stage(IndexKind::kLmdb);
    Changes changes;
    for (int i = 1000; i < 2000; ++i) changes[std::to_string(i)] = std::string(1500, 'v');
    REQUIRE(stage.apply(changes, 1).has_value());
    struct stat file{};
    REQUIRE(::stat(stage.file().c_str(), &file) == 0);
    REQUIRE(file.st_size > (1L << 20));
    REQUIRE(static_cast<std::uint64_t>(file.st_blocks) * 512 >=
            static_cast<std::uint64_t>(file.st_size) + (7UL << 19));
}

TEST_CASE("store lmdb index: after a kill it is what it was after a change", "[store]") {
    for (unsigned round = 0; round < 5; ++round) {
        IndexStage stage(IndexKind::kLmdb);
        stage.close();
        std::array<int, 2> pipe_ends{};
        REQUIRE(::pipe(pipe_ends.data()) == 0);
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            // No assertion here: the child has a copy of the whole test.
            if (!stage.open()) ::_exit(1);
            for (std::uint64_t number = 1;; ++number) {
                Changes changes;
                change(number, changes);
                if (!stage.apply(changes, number)) ::_exit(1);
                const char done = 'd';
                if (::write(pipe_ends[1], &done, 1) != 1) ::_exit(1);
            }
        }
        std::uint64_t acknowledged = 0;
        for (char done = 0; acknowledged < 7 + 5 * round; ++acknowledged) {
            REQUIRE(::read(pipe_ends[0], &done, 1) == 1);
        }
        REQUIRE(::kill(child, SIGKILL) == 0);
        REQUIRE(::waitpid(child, nullptr, 0) == child);
        ::close(pipe_ends[1]);
        for (char done = 0; ::read(pipe_ends[0], &done, 1) == 1;) ++acknowledged;
        ::close(pipe_ends[0]);

        REQUIRE(stage.open().has_value());
        REQUIRE(stage.index().applied() >= acknowledged);
        REQUIRE(stage.index().applied() <= acknowledged + 1);
        REQUIRE(stage.all() == after_changes(stage.index().applied()));
        make_changes(stage, 20);
        stage.close();
    }
}

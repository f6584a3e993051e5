// Goal: what the journal returns was written to it, whatever has happened to its file: the program
// was killed in a line, or something else is in it. Method: real files, damaged by hand.
#include "client/put_journal.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <sys/stat.h>

#include "tests/catch.h"
#include "tests/temp_dir.h"

namespace fopd::client::testing {

namespace {

namespace fs = std::filesystem;
using Access = PutJournal::Access;

constexpr fop::Fid kFid{.high = 1ULL << 48, .low = 7};
constexpr FileStamp kStamp{.size_bytes = 5, .inode = 11, .modified_ns = -3, .changed_ns = 40};

class JournalDirectory {
public:
    std::string path() const { return temp_ / "a.journal"; }
    std::unique_ptr<PutJournal> open(Access access = Access::kWrite) const {
        auto journal = PutJournal::open(path(), access);
        if (!journal) FAIL(journal.error());
        return std::move(*journal);
    }
    std::string text() const {
        std::ifstream file(path(), std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void write(const std::string& text) const {
        std::ofstream(path(), std::ios::binary | std::ios::trunc) << text;
    }

private:
    TempDir temp_;
};

}  // namespace

TEST_CASE("client put journal: what was stored is known to the next program", "[client]") {
    const JournalDirectory directory;
    directory.open()->add("d/a b", {.stamp = kStamp, .fid = kFid});

    const auto journal = directory.open(GENERATE(Access::kWrite, Access::kRead));
    const auto* const found = journal->find("d/a b");
    REQUIRE(found != nullptr);
    REQUIRE(found->stamp == kStamp);
    REQUIRE(found->fid == kFid);
    REQUIRE(journal->find("d/a") == nullptr);
    struct stat info{};
    REQUIRE(::stat(directory.path().c_str(), &info) == 0);
    REQUIRE((info.st_mode & 0777) == 0600);
}

TEST_CASE("client put journal: an upload is known with its windows until the file is stored",
          "[client]") {
    const JournalDirectory directory;
    {
        const auto journal = directory.open();
        journal->add_upload(
            "a",
            {.stamp = kStamp, .group = "staff", .upload = {.fid = kFid, .window_bytes = 4096}});
        journal->add_upload("b", {.stamp = kStamp,
                                  .group = "staff",
                                  .collection = "run-7",
                                  .upload = {.fid = {.high = 2, .low = 2}}});
        journal->add_sent(kFid, {.index = 3, .incarnation = 9});
        journal->add_sent({.high = 1, .low = 1}, {.index = 4, .incarnation = 9});
    }
    {
        const auto journal = directory.open();
        const auto* const begun = journal->find_upload("a");
        REQUIRE(begun != nullptr);
        REQUIRE(begun->stamp == kStamp);
        REQUIRE(begun->group == "staff");
        REQUIRE(begun->collection.empty());
        const auto* const collected = journal->find_upload("b");
        REQUIRE(collected != nullptr);
        REQUIRE(collected->group == "staff");
        REQUIRE(collected->collection == "run-7");
        REQUIRE(begun->upload.fid == kFid);
        REQUIRE(begun->upload.window_bytes == 4096);
        REQUIRE(begun->upload.windows.size() == 1);
        REQUIRE(begun->upload.windows[0].index == 3);
        REQUIRE(begun->upload.windows[0].incarnation == 9);
        journal->add("a", {.stamp = kStamp, .fid = kFid});
    }
    REQUIRE(directory.open()->find_upload("a") == nullptr);
}

TEST_CASE("client put journal: a line that was cut off is ignored, and those after it are not",
          "[client]") {
    const JournalDirectory directory;
    directory.open()->add("a", {.stamp = kStamp, .fid = kFid});
    const std::string whole = directory.text();
    directory.open()->add("b", {.stamp = kStamp, .fid = kFid});
    const std::string both = directory.text();
    for (std::size_t size = 0; size < both.size(); ++size) {
        CAPTURE(size);
        directory.write(both.substr(0, size));
        const auto journal = directory.open();
        REQUIRE((journal->find("a") != nullptr) == (size >= whole.size()));
        REQUIRE(journal->find("b") == nullptr);
        journal->add("c", {.stamp = kStamp, .fid = kFid});
        REQUIRE(directory.open(Access::kRead)->find("c") != nullptr);
    }
}

TEST_CASE("client put journal: what is no journal has no files in it", "[client]") {
    const JournalDirectory directory;
    const auto text = GENERATE(std::string("\0\0\0\n", 4), std::string("stored\tx\n"),
                               std::string("fopctl put journal 1\nstored\t1\t2\n\nsent\n"
                                           "stored\t00\t1\t2\t3\t4\ta\nbegun\t\t\t\t\t\t\t\ta\n"));
    directory.write(text);
    const auto journal = directory.open();
    REQUIRE(journal->find("a") == nullptr);
    REQUIRE(journal->find_upload("a") == nullptr);
}

TEST_CASE("client put journal: one program writes to it at a time", "[client]") {
    const JournalDirectory directory;
    const auto journal = directory.open();
    journal->add("a", {.stamp = kStamp, .fid = kFid});
    const auto second = PutJournal::open(directory.path(), Access::kWrite);
    REQUIRE_FALSE(second.has_value());
    REQUIRE(second.error().find("another fopctl") != std::string::npos);
    REQUIRE(directory.open(Access::kRead)->find("a") != nullptr);
}

TEST_CASE("client put journal: files that are gone are forgotten, and the file is short again",
          "[client]") {
    const JournalDirectory directory;
    {
        const auto journal = directory.open();
        for (int i = 0; i < 3000; ++i) journal->add("same", {.stamp = kStamp, .fid = kFid});
        journal->add("gone", {.stamp = kStamp, .fid = kFid});
    }
    const std::size_t long_size = directory.text().size();
    {
        const auto journal = directory.open();
        REQUIRE(directory.text().size() < long_size / 100);
        REQUIRE(journal->find("same") != nullptr);
        journal->forget_others();
        journal->add("new", {.stamp = kStamp, .fid = kFid});
    }
    const auto journal = directory.open(Access::kRead);
    REQUIRE(journal->find("same") != nullptr);
    REQUIRE(journal->find("new") != nullptr);
    REQUIRE(journal->find("gone") == nullptr);
}

TEST_CASE("client put journal: uploads of files that are gone are forgotten", "[client]") {
    const JournalDirectory directory;
    const fop::Fid other{.high = 1ULL << 48, .low = 8};
    {
        const auto journal = directory.open();
        journal->add_upload("gone", {.stamp = kStamp, .upload = {.fid = kFid}});
        journal->add_sent(kFid, {.index = 1, .incarnation = 9});
        journal->add_upload("there", {.stamp = kStamp, .upload = {.fid = other}});
    }
    {
        const auto journal = directory.open();
        REQUIRE(journal->find("there") == nullptr);
        journal->forget_others();
        REQUIRE(journal->find_upload("gone") == nullptr);
        // Its windows are of no upload any more.
        journal->add_sent(kFid, {.index = 2, .incarnation = 9});
    }
    const auto journal = directory.open(Access::kRead);
    REQUIRE(journal->find_upload("gone") == nullptr);
    REQUIRE(journal->find_upload("there") != nullptr);
}

// Each program replaces the file while the other one opens it.
TEST_CASE("client put journal: a file that was replaced is not locked in place of the new one",
          "[client]") {
    constexpr int kTurns = 3000;
    const JournalDirectory directory;
    std::atomic<int> holders = 0;
    std::atomic<int> most = 0;
    const auto work = [&] {
        for (int i = 0; i < kTurns; ++i) {
            auto journal = PutJournal::open(directory.path(), Access::kWrite);
            if (!journal) continue;
            const int now = ++holders;
            if (now > most) most = now;
            if (now == 1) (*journal)->add("gone", {.stamp = kStamp, .fid = kFid});
            --holders;
            journal->reset();
            journal = PutJournal::open(directory.path(), Access::kWrite);
            if (!journal) continue;
            const int again = ++holders;
            if (again > most) most = again;
            (*journal)->forget_others();
            --holders;
        }
    };
    {
        const std::jthread first(work);
        const std::jthread second(work);
    }
    REQUIRE(most == 1);
}

TEST_CASE("client put journal: reading makes no file", "[client]") {
    const JournalDirectory directory;
    REQUIRE(directory.open(Access::kRead)->find("a") == nullptr);
    REQUIRE_FALSE(fs::exists(directory.path()));
}

}  // namespace fopd::client::testing

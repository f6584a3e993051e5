// Goal: nothing outside of a local tree is read or written, whatever names and links there are, and
// all that is in it is visited. Method: real directories, with what an attacker would put there.
#include "client/local_tree.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/virtual_world.h"
#include "tests/catch.h"
#include "tests/fabric/rpc_stage.h"
#include "tests/temp_dir.h"

namespace fopd::client::testing {

namespace {

namespace fs = std::filesystem;

void write_file(const std::string& path, std::string_view text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// A destination, and beside it what must stay as it is.
class Destination {
public:
    Destination() {
        write_file(outside(), "mine");
        fs::create_directory(temp_ / "top");
        auto opened = LocalTree::open(temp_ / "top", LocalTree::Missing::kProblem);
        REQUIRE(opened.has_value());
        tree = std::move(*opened);
    }
    std::string outside() const { return temp_ / "outside/file"; }
    std::string in(const std::string& path) const { return temp_ / ("top/" + path); }
    LocalWorld world() { return {.reactor = *reactor_, .offload = *offload_, .cancel = cancel_}; }

    // Returns the reason why it failed; empty: it did not.
    std::string write(const std::string& path, const std::string& text) {
        auto sink = tree->open_sink(world(), path);
        if (!sink) return sink.error();
        const auto written = world_.run(*reactor_, (*sink)->write(std::as_bytes(std::span(text))));
        REQUIRE(written.has_value());
        REQUIRE(written->has_value());
        const auto done = tree->finish(**sink);
        return done ? "" : done.error().words;
    }
    // All regular files of the destination, and of its surroundings.
    std::size_t files() const {
        std::size_t count = 0;
        for (const auto& each : fs::recursive_directory_iterator(temp_.path())) {
            if (each.symlink_status().type() == fs::file_type::regular) ++count;
        }
        return count;
    }

    std::unique_ptr<LocalTree> tree;

private:
    TempDir temp_;
    fabric::testing::ReplayedWorld world_{7};
    std::unique_ptr<core::Reactor> reactor_ = world_.make_reactor();
    std::unique_ptr<core::Offload> offload_ = core::make_virtual_offload(world_, {});
    core::CancelSource cancel_;
};

std::vector<std::pair<LocalEntry::Kind, std::string>> all_of(const LocalTree& tree,
                                                             std::size_t path_bytes_max = 480) {
    LocalWalk walk(tree, path_bytes_max);
    std::vector<std::pair<LocalEntry::Kind, std::string>> all;
    while (auto entry = walk.next()) all.emplace_back(entry->kind, entry->path);
    return all;
}

}  // namespace

TEST_CASE("client local tree: names that are no path below it are refused", "[client]") {
    Destination destination;
    const std::size_t files = destination.files();
    const std::vector<std::string> bad{"",
                                       "/",
                                       "/etc/x",
                                       ".",
                                       "..",
                                       "../outside/file",
                                       "a/../../outside/file",
                                       "a/..",
                                       "a/./b",
                                       "a//b",
                                       "a/",
                                       std::string("a\0b", 3),
                                       std::string("../outside/file\0x", 17),
                                       std::string(256, 'x')};
    for (const std::string& path : bad) {
        CAPTURE(path);
        REQUIRE_FALSE(fault_of_path(path).empty());
        REQUIRE_FALSE(destination.write(path, "theirs").empty());
        REQUIRE_FALSE(destination.tree->open_source(destination.world(), path).has_value());
    }
    REQUIRE(destination.files() == files);
    REQUIRE(read_file(destination.outside()) == "mine");
    for (const std::string& path :
         std::vector<std::string>{"...", "a", "a/b", "-", "..a", " ", std::string(255, 'x')}) {
        REQUIRE(fault_of_path(path).empty());
    }
}

TEST_CASE("client local tree: a symbolic link in it is never followed", "[client]") {
    const auto link = GENERATE(std::string("d"), std::string("a/d"));
    const bool is_absolute = GENERATE(true, false);
    Destination destination;
    fs::create_directories(destination.in("a"));
    const fs::path outside = fs::path(destination.outside()).parent_path();
    const fs::path target =
        is_absolute ? outside : fs::relative(outside, fs::path(destination.in(link)).parent_path());
    fs::create_directory_symlink(target, destination.in(link));
    REQUIRE(read_file(destination.in(link) + "/file") == "mine");
    const std::size_t files = destination.files();

    for (const std::string& path : {link + "/file", link + "/new", link + "/new/new", link}) {
        CAPTURE(path);
        REQUIRE_FALSE(destination.write(path, "theirs").empty());
        REQUIRE_FALSE(destination.tree->open_source(destination.world(), path).has_value());
    }

    REQUIRE(destination.files() == files);
    REQUIRE(read_file(destination.outside()) == "mine");
    REQUIRE(fs::is_symlink(destination.in(link)));
}

TEST_CASE("client local tree: a link to a file is not written through, nor replaced", "[client]") {
    Destination destination;
    fs::create_symlink(destination.outside(), destination.in("a"));
    REQUIRE_FALSE(destination.write("a", "theirs").empty());
    REQUIRE(fs::is_symlink(destination.in("a")));
    REQUIRE(read_file(destination.outside()) == "mine");
}

TEST_CASE("client local tree: a link that comes while a file is written is not followed",
          "[client]") {
    Destination destination;
    auto sink = destination.tree->open_sink(destination.world(), "a/b");
    REQUIRE(sink.has_value());
    fs::create_symlink(destination.outside(), destination.in("a/b"));
    REQUIRE(destination.tree->finish(**sink).has_value());
    REQUIRE(read_file(destination.outside()) == "mine");
    REQUIRE(fs::is_regular_file(fs::symlink_status(destination.in("a/b"))));

    auto other = destination.tree->open_sink(destination.world(), "a/c");
    REQUIRE(other.has_value());
    fs::rename(destination.in("a"), destination.in("away"));
    fs::create_directory_symlink(fs::path(destination.outside()).parent_path(),
                                 destination.in("a"));
    REQUIRE(destination.tree->finish(**other).has_value());
    REQUIRE_FALSE(fs::exists(destination.in("a/c")));
    REQUIRE(fs::exists(destination.in("away/c")));
}

TEST_CASE("client local tree: a file is there as a whole, with its directories", "[client]") {
    Destination destination;
    {
        auto sink = destination.tree->open_sink(destination.world(), "a/b/c");
        REQUIRE(sink.has_value());
        REQUIRE(fs::is_empty(destination.in("a/b")));
    }
    REQUIRE(fs::is_empty(destination.in("a/b")));
    REQUIRE(destination.write("a/b/c", "one") == "");
    REQUIRE(read_file(destination.in("a/b/c")) == "one");
    REQUIRE(destination.write(std::string(255, 'x'), "long") == "");
}

TEST_CASE("client local tree: an existing file is replaced and keeps its mode", "[client]") {
    Destination destination;
    write_file(destination.in("a"), "old");
    fs::permissions(destination.in("a"), fs::perms(0751));
    REQUIRE(destination.write("a", "new") == "");
    REQUIRE(read_file(destination.in("a")) == "new");
    REQUIRE(fs::status(destination.in("a")).permissions() == fs::perms(0751));
}

TEST_CASE("client local file: setuid, setgid and sticky of what is replaced are not kept",
          "[client]") {
    const auto mode = GENERATE(fs::perms(04751), fs::perms(02751), fs::perms(01751));
    Destination destination;
    write_file(destination.in("a"), "old");
    fs::permissions(destination.in("a"), mode);
    REQUIRE(fs::status(destination.in("a")).permissions() == mode);

    SECTION("in a tree") {
        REQUIRE(destination.write("a", "new") == "");
    }
    SECTION("alone") {
        const auto sink = LocalSink::open(destination.world(), destination.in("a"));
        REQUIRE(sink.has_value());
        REQUIRE((*sink)->finish().has_value());
    }

    REQUIRE(read_file(destination.in("a")) != "old");
    REQUIRE(fs::status(destination.in("a")).permissions() == fs::perms(0751));
}

TEST_CASE("client local tree: a file is not replaced by another one of the same tree", "[client]") {
    Destination destination;
    REQUIRE(destination.write("a", "one") == "");
    REQUIRE(destination.write("a", "two").find("just written") != std::string::npos);
    REQUIRE(read_file(destination.in("a")) == "one");
}

TEST_CASE("client local tree: files and directories do not take each other's places", "[client]") {
    Destination destination;
    REQUIRE(destination.write("a", "file") == "");
    REQUIRE_FALSE(destination.write("a/b", "below").empty());
    REQUIRE(destination.write("d/b", "file") == "");
    REQUIRE_FALSE(destination.write("d", "above").empty());
    REQUIRE(read_file(destination.in("a")) == "file");
    REQUIRE(read_file(destination.in("d/b")) == "file");
}

TEST_CASE("client local tree: a missing directory is made if that is wanted", "[client]") {
    TempDir temp;
    REQUIRE_FALSE(LocalTree::open(temp / "new", LocalTree::Missing::kProblem).has_value());
    REQUIRE(LocalTree::open(temp / "new", LocalTree::Missing::kMake).has_value());
    REQUIRE(fs::is_directory(temp / "new"));
    REQUIRE(LocalTree::open(temp / "new", LocalTree::Missing::kMake).has_value());
    write_file(temp / "file", "");
    REQUIRE_FALSE(LocalTree::open(temp / "file", LocalTree::Missing::kMake).has_value());
}

TEST_CASE("client local walk: everything is visited in order, and links are not followed",
          "[client]") {
    using Kind = LocalEntry::Kind;
    Destination destination;
    write_file(destination.in("b"), "1");
    write_file(destination.in("d/e/f"), "2");
    write_file(destination.in("d/a"), "3");
    fs::create_directories(destination.in("none/at/all"));
    fs::create_symlink("b", destination.in("link"));
    fs::create_directory_symlink("../outside", destination.in("links"));
    fs::create_symlink("..", destination.in("d/up"));
    REQUIRE(mkfifo(destination.in("pipe").c_str(), 0600) == 0);
    const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string name = destination.in("socket");
    REQUIRE(name.size() < sizeof address.sun_path);
    name.copy(address.sun_path, name.size());
    REQUIRE(bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    close(listening);

    REQUIRE(all_of(*destination.tree) ==
            std::vector<std::pair<Kind, std::string>>{{Kind::kFile, "b"},
                                                      {Kind::kFile, "d/a"},
                                                      {Kind::kFile, "d/e/f"},
                                                      {Kind::kSkipped, "d/up"},
                                                      {Kind::kSkipped, "link"},
                                                      {Kind::kSkipped, "links"},
                                                      {Kind::kEmptyDirectory, "none/at/all"},
                                                      {Kind::kSkipped, "pipe"},
                                                      {Kind::kSkipped, "socket"}});
}

TEST_CASE("client local walk: an empty tree is one empty directory", "[client]") {
    Destination destination;
    REQUIRE(all_of(*destination.tree) == std::vector<std::pair<LocalEntry::Kind, std::string>>{
                                             {LocalEntry::Kind::kEmptyDirectory, ""}});
}

TEST_CASE("client local walk: directories too deep for names of objects are reported once",
          "[client]") {
    using Kind = LocalEntry::Kind;
    Destination destination;
    write_file(destination.in("abc/d"), "");
    write_file(destination.in("abc/e"), "");
    write_file(destination.in("abc/fg/h"), "");
    REQUIRE(all_of(*destination.tree, 4) ==
            std::vector<std::pair<Kind, std::string>>{{Kind::kFailed, "abc"}});
    REQUIRE(all_of(*destination.tree, 7) ==
            std::vector<std::pair<Kind, std::string>>{
                {Kind::kFile, "abc/d"}, {Kind::kFile, "abc/e"}, {Kind::kFailed, "abc/fg"}});
}

TEST_CASE("client local walk: what has vanished since its directory was read is reported",
          "[client]") {
    using Kind = LocalEntry::Kind;
    Destination destination;
    for (const std::string path : {"d/a", "d/b", "d/c/e", "f"})
        write_file(destination.in(path), path);
    LocalWalk walk(*destination.tree, 480);
    REQUIRE(walk.next()->path == "d/a");

    SECTION("a file") {
        fs::remove(destination.in("d/b"));
        const auto vanished = walk.next();
        REQUIRE(vanished->kind == Kind::kFailed);
        REQUIRE(vanished->path == "d/b");
        REQUIRE(vanished->words.find("No such file") != std::string::npos);
        REQUIRE(walk.next()->path == "d/c/e");
    }
    SECTION("all that is in a directory, when it gets another name") {
        fs::rename(destination.in("d"), destination.in("z"));
        for (const std::string path : {"d/b", "d/c"}) {
            const auto vanished = walk.next();
            REQUIRE(vanished->kind == Kind::kFailed);
            REQUIRE(vanished->path == path);
        }
    }

    const auto last = walk.next();
    REQUIRE(last->kind == Kind::kFile);
    REQUIRE(last->path == "f");
    REQUIRE_FALSE(walk.next().has_value());
}

TEST_CASE("client local walk: what has become no file is not opened", "[client]") {
    Destination destination;
    write_file(destination.in("a"), "1");
    fs::remove(destination.in("a"));
    REQUIRE(mkfifo(destination.in("a").c_str(), 0600) == 0);
    const auto source = destination.tree->open_source(destination.world(), "a");
    REQUIRE_FALSE(source.has_value());
    REQUIRE(source.error().find("not a regular file any more") != std::string::npos);
}

}  // namespace fopd::client::testing

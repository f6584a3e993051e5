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
class Place {
public:
    Place() {
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
    Place place;
    const std::size_t files = place.files();
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
        REQUIRE_FALSE(place.write(path, "theirs").empty());
        REQUIRE_FALSE(place.tree->open_source(place.world(), path).has_value());
    }
    REQUIRE(place.files() == files);
    REQUIRE(read_file(place.outside()) == "mine");
    for (const std::string& path :
         std::vector<std::string>{"...", "a", "a/b", "-", "..a", " ", std::string(255, 'x')}) {
        REQUIRE(fault_of_path(path).empty());
    }
}

TEST_CASE("client local tree: a symbolic link in it is never followed", "[client]") {
    const auto link = GENERATE(std::string("d"), std::string("a/d"));
    const bool is_absolute = GENERATE(true, false);
    Place place;
    fs::create_directories(place.in("a"));
    const fs::path outside = fs::path(place.outside()).parent_path();
    const fs::path target =
        is_absolute ? outside : fs::relative(outside, fs::path(place.in(link)).parent_path());
    fs::create_directory_symlink(target, place.in(link));
    REQUIRE(read_file(place.in(link) + "/file") == "mine");
    const std::size_t files = place.files();

    for (const std::string& path : {link + "/file", link + "/new", link + "/new/new", link}) {
        CAPTURE(path);
        REQUIRE_FALSE(place.write(path, "theirs").empty());
        REQUIRE_FALSE(place.tree->open_source(place.world(), path).has_value());
    }

    REQUIRE(place.files() == files);
    REQUIRE(read_file(place.outside()) == "mine");
    REQUIRE(fs::is_symlink(place.in(link)));
}

TEST_CASE("client local tree: a link to a file is not written through, nor replaced", "[client]") {
    Place place;
    fs::create_symlink(place.outside(), place.in("a"));
    REQUIRE_FALSE(place.write("a", "theirs").empty());
    REQUIRE(fs::is_symlink(place.in("a")));
    REQUIRE(read_file(place.outside()) == "mine");
}

TEST_CASE("client local tree: a link that comes while a file is written is not followed",
          "[client]") {
    Place place;
    auto sink = place.tree->open_sink(place.world(), "a/b");
    REQUIRE(sink.has_value());
    fs::create_symlink(place.outside(), place.in("a/b"));
    REQUIRE(place.tree->finish(**sink).has_value());
    REQUIRE(read_file(place.outside()) == "mine");
    REQUIRE(fs::is_regular_file(fs::symlink_status(place.in("a/b"))));

    auto other = place.tree->open_sink(place.world(), "a/c");
    REQUIRE(other.has_value());
    fs::rename(place.in("a"), place.in("away"));
    fs::create_directory_symlink(fs::path(place.outside()).parent_path(), place.in("a"));
    REQUIRE(place.tree->finish(**other).has_value());
    REQUIRE_FALSE(fs::exists(place.in("a/c")));
    REQUIRE(fs::exists(place.in("away/c")));
}

TEST_CASE("client local tree: a file is there as a whole, with its directories", "[client]") {
    Place place;
    {
        auto sink = place.tree->open_sink(place.world(), "a/b/c");
        REQUIRE(sink.has_value());
        REQUIRE(fs::is_empty(place.in("a/b")));
    }
    REQUIRE(fs::is_empty(place.in("a/b")));
    REQUIRE(place.write("a/b/c", "one") == "");
    REQUIRE(read_file(place.in("a/b/c")) == "one");
    REQUIRE(place.write(std::string(255, 'x'), "long") == "");
}

TEST_CASE("client local tree: an existing file is replaced and keeps its mode", "[client]") {
    Place place;
    write_file(place.in("a"), "old");
    fs::permissions(place.in("a"), fs::perms(0751));
    REQUIRE(place.write("a", "new") == "");
    REQUIRE(read_file(place.in("a")) == "new");
    REQUIRE(fs::status(place.in("a")).permissions() == fs::perms(0751));
}

TEST_CASE("client local file: setuid, setgid and sticky of what is replaced are not kept",
          "[client]") {
    const auto mode = GENERATE(fs::perms(04751), fs::perms(02751), fs::perms(01751));
    Place place;
    write_file(place.in("a"), "old");
    fs::permissions(place.in("a"), mode);
    REQUIRE(fs::status(place.in("a")).permissions() == mode);

    SECTION("in a tree") {
        REQUIRE(place.write("a", "new") == "");
    }
    SECTION("alone") {
        const auto sink = LocalSink::open(place.world(), place.in("a"));
        REQUIRE(sink.has_value());
        REQUIRE((*sink)->finish().has_value());
    }

    REQUIRE(read_file(place.in("a")) != "old");
    REQUIRE(fs::status(place.in("a")).permissions() == fs::perms(0751));
}

TEST_CASE("client local tree: a file is not replaced by another one of the same tree", "[client]") {
    Place place;
    REQUIRE(place.write("a", "one") == "");
    REQUIRE(place.write("a", "two").find("just written") != std::string::npos);
    REQUIRE(read_file(place.in("a")) == "one");
}

TEST_CASE("client local tree: files and directories do not take each other's places", "[client]") {
    Place place;
    REQUIRE(place.write("a", "file") == "");
    REQUIRE_FALSE(place.write("a/b", "below").empty());
    REQUIRE(place.write("d/b", "file") == "");
    REQUIRE_FALSE(place.write("d", "above").empty());
    REQUIRE(read_file(place.in("a")) == "file");
    REQUIRE(read_file(place.in("d/b")) == "file");
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
    Place place;
    write_file(place.in("b"), "1");
    write_file(place.in("d/e/f"), "2");
    write_file(place.in("d/a"), "3");
    fs::create_directories(place.in("none/at/all"));
    fs::create_symlink("b", place.in("link"));
    fs::create_directory_symlink("../outside", place.in("links"));
    fs::create_symlink("..", place.in("d/up"));
    REQUIRE(mkfifo(place.in("pipe").c_str(), 0600) == 0);
    const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string name = place.in("socket");
    REQUIRE(name.size() < sizeof address.sun_path);
    name.copy(address.sun_path, name.size());
    REQUIRE(bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    close(listening);

    REQUIRE(all_of(*place.tree) ==
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
    Place place;
    REQUIRE(all_of(*place.tree) == std::vector<std::pair<LocalEntry::Kind, std::string>>{
                                       {LocalEntry::Kind::kEmptyDirectory, ""}});
}

TEST_CASE("client local walk: directories too deep for names of objects are reported once",
          "[client]") {
    using Kind = LocalEntry::Kind;
    Place place;
    write_file(place.in("abc/d"), "");
    write_file(place.in("abc/e"), "");
    write_file(place.in("abc/fg/h"), "");
    REQUIRE(all_of(*place.tree, 4) ==
            std::vector<std::pair<Kind, std::string>>{{Kind::kFailed, "abc"}});
    REQUIRE(all_of(*place.tree, 7) ==
            std::vector<std::pair<Kind, std::string>>{
                {Kind::kFile, "abc/d"}, {Kind::kFile, "abc/e"}, {Kind::kFailed, "abc/fg"}});
}

TEST_CASE("client local walk: what has vanished since its directory was read is reported",
          "[client]") {
    using Kind = LocalEntry::Kind;
    Place place;
    for (const std::string path : {"d/a", "d/b", "d/c/e", "f"}) write_file(place.in(path), path);
    LocalWalk walk(*place.tree, 480);
    REQUIRE(walk.next()->path == "d/a");

    SECTION("a file") {
        fs::remove(place.in("d/b"));
        const auto vanished = walk.next();
        REQUIRE(vanished->kind == Kind::kFailed);
        REQUIRE(vanished->path == "d/b");
        REQUIRE(vanished->words.find("No such file") != std::string::npos);
        REQUIRE(walk.next()->path == "d/c/e");
    }
    SECTION("all that is in a directory, when it gets another name") {
        fs::rename(place.in("d"), place.in("z"));
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
    Place place;
    write_file(place.in("a"), "1");
    fs::remove(place.in("a"));
    REQUIRE(mkfifo(place.in("a").c_str(), 0600) == 0);
    const auto source = place.tree->open_source(place.world(), "a");
    REQUIRE_FALSE(source.has_value());
    REQUIRE(source.error().find("not a regular file any more") != std::string::npos);
}

}  // namespace fopd::client::testing

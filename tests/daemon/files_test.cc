// Goal: the files a start depends on are taken only when they are right, and a refusal says which
// file and why.

#include <fstream>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

#include "daemon/access.h"
#include "daemon/data_dir.h"
#include "daemon/dev_setup.h"
#include "daemon/durable_file.h"
#include "daemon/node_id.h"
#include "daemon/secret_file.h"
#include "tests/catch.h"
#include "tests/temp_dir.h"

using namespace fopd;
using namespace fopd::daemon;

namespace {

const std::string kDigits(64, 'a');

std::string write(const std::string& path, const std::string& text, mode_t mode) {
    std::ofstream(path) << text;
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    return path;
}

std::string contents(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

mode_t mode_of(const std::string& path) {
    struct stat info{};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    return info.st_mode & 07777;
}

}  // namespace

TEST_CASE("daemon key file: 64 digits, with or without a newline", "[daemon]") {
    const TempDir dir;
    const auto bare = read_key_file(write(dir / "a", kDigits, 0600));
    const auto with_newline = read_key_file(write(dir / "b", kDigits + "\n", 0400));

    REQUIRE(bare.has_value());
    REQUIRE(with_newline.has_value());
    REQUIRE(*bare == *with_newline);
    REQUIRE(bare->bytes()[0] == std::byte{0xaa});
}

TEST_CASE("daemon key file: anything else is refused, and never shown", "[daemon]") {
    const TempDir dir;
    const std::string secret = kDigits.substr(0, 63);
    for (const std::string& text :
         {std::string(), secret, secret + "g", kDigits + "\n\n", kDigits + "aa",
          std::string(4096, 'a'), std::string(64, '\0')}) {
        const auto key = read_key_file(write(dir / "key", text, 0600));

        REQUIRE_FALSE(key.has_value());
        REQUIRE(key.error().exit_code == kExitKeyFile);
        REQUIRE(key.error().message ==
                "key file " + (dir / "key") + ": 64 hexadecimal digits are expected");
    }
}

TEST_CASE("daemon key file: one that others can read is refused, and its mode named", "[daemon]") {
    const TempDir dir;
    for (const mode_t mode : {0644U, 0604U, 0602U, 0620U, 0601U}) {
        const auto key = read_key_file(write(dir / "key", kDigits, mode));

        REQUIRE_FALSE(key.has_value());
        REQUIRE(key.error().exit_code == kExitKeyFile);
        REQUIRE_THAT(key.error().message, ContainsSubstring("mode 06"));
    }
}

TEST_CASE("daemon key file: a pipe, a directory and nothing at all are refused at once",
          "[daemon]") {
    const TempDir dir;
    REQUIRE(::mkfifo((dir / "fifo").c_str(), 0600) == 0);

    for (const std::string& path : {dir / "fifo", dir.path(), dir / "nothing"}) {
        const auto key = read_key_file(path);
        REQUIRE_FALSE(key.has_value());
        REQUIRE(key.error().exit_code == kExitKeyFile);
    }
}

TEST_CASE("daemon data dir: one at a time, and the holder is named", "[daemon]") {
    const TempDir dir;
    auto first = DataDir::open(dir.path());
    REQUIRE(first.has_value());

    const auto second = DataDir::open(dir.path());
    REQUIRE_FALSE(second.has_value());
    REQUIRE(second.error().exit_code == kExitInUse);
    REQUIRE(second.error().message == "data directory " + dir.path() +
                                          " is in use by another fopd (pid " +
                                          std::to_string(::getpid()) + ")");

    first->reset();
    REQUIRE(::access((dir / "fopd.lock").c_str(), F_OK) != 0);
    REQUIRE(DataDir::open(dir.path()).has_value());
}

TEST_CASE("daemon data dir: a lock file that nobody holds is taken over", "[daemon]") {
    const TempDir dir;
    write(dir / "fopd.lock", "4711\n", 0644);

    const auto opened = DataDir::open(dir.path());

    REQUIRE(opened.has_value());
    REQUIRE(contents(dir / "fopd.lock") == std::to_string(::getpid()) + "\n");
}

TEST_CASE("daemon data dir: a path that is not a directory is refused", "[daemon]") {
    const TempDir dir;
    write(dir / "file", "", 0600);
    REQUIRE(::symlink("/dev/null", (dir / "fopd.lock").c_str()) == 0);

    for (const std::string& path : {dir / "missing", dir / "file", dir.path()}) {
        const auto opened = DataDir::open(path);
        REQUIRE_FALSE(opened.has_value());
        REQUIRE(opened.error().exit_code == kExitDataDir);
        REQUIRE_THAT(opened.error().message, ContainsSubstring(path));
    }
}

TEST_CASE("daemon dev setup: makes everything once, and keeps what was edited", "[daemon]") {
    const TempDir dir;
    const std::string home = dir / "it's here";
    REQUIRE(make_dev_setup(home).has_value());
    const std::string key = contents(home + "/peer.key");
    std::ofstream(home + "/fopd.yaml") << "log: { level: debug }\n";

    const auto again = make_dev_setup(home);

    REQUIRE(again.has_value());
    REQUIRE(again->config_file == home + "/fopd.yaml");
    REQUIRE(contents(home + "/fopd.yaml") == "log: { level: debug }\n");
    REQUIRE(contents(home + "/peer.key") == key);
    REQUIRE(read_key_file(home + "/peer.key").has_value());
    REQUIRE(mode_of(home) == 0700);
    REQUIRE(mode_of(home + "/peer.key") == 0600);
    REQUIRE(mode_of(home + "/client.key") == 0600);
    REQUIRE(mode_of(home + "/issuer.key") == 0600);
    REQUIRE(mode_of(home + "/principals.yaml") == 0600);
    const auto access = load_access({.principals = home + "/principals.yaml"});
    REQUIRE(access.has_value());
    REQUIRE((*access)->principal_count == 1);
    REQUIRE(write_dev_environment(*again, "tcp://127.0.0.1:1").has_value());
    const std::string quoted = "'" + dir.path() + "/it'\\''s here/";
    REQUIRE(contents(home + "/env.sh") == "export FOPD_ADMIN=" + quoted +
                                              "admin.sock'\n"
                                              "export FOPD_SERVER='tcp://127.0.0.1:1'\n"
                                              "export FOPD_KEY=" +
                                              quoted +
                                              "client.key'\n"
                                              "export FOPD_PRINCIPALS=" +
                                              quoted + "principals.yaml'\n");
}

TEST_CASE("daemon dev setup: a directory that was there keeps its mode", "[daemon]") {
    const TempDir dir;
    REQUIRE(::chmod(dir.path().c_str(), 0755) == 0);

    REQUIRE(make_dev_setup(dir.path()).has_value());

    REQUIRE(mode_of(dir.path()) == 0755);
}

TEST_CASE("daemon dev setup: a place that cannot be used is refused", "[daemon]") {
    const TempDir dir;
    write(dir / "file", "", 0600);

    const auto setup = make_dev_setup(dir / "file");

    REQUIRE_FALSE(setup.has_value());
    REQUIRE(setup.error().exit_code == kExitDataDir);
}

TEST_CASE("daemon node id: it is made once, and is the same from then on", "[daemon]") {
    const TempDir dir;
    core::SeededEntropy entropy(1);
    const mode_t umask_before = ::umask(0077);
    const auto first = load_node_id(dir.path(), {}, entropy);
    ::umask(umask_before);

    REQUIRE(first.has_value());
    REQUIRE(contents(dir / "node.id") == devices::format_id(*first) + "\n");
    REQUIRE(mode_of(dir / "node.id") == 0644);
    REQUIRE(load_node_id(dir.path(), {}, entropy) == *first);

    const TempDir other;
    REQUIRE(load_node_id(other.path(), {}, entropy) != *first);
}

TEST_CASE("daemon node id: a damaged file is refused, not replaced", "[daemon]") {
    const TempDir dir;
    core::SeededEntropy entropy(1);
    for (const std::string& text : {std::string(), std::string("0123"), std::string(33, 'a'),
                                    std::string(32, 'g'), kDigits.substr(0, 32) + "\n\n"}) {
        write(dir / "node.id", text, 0644);
        const auto refused = load_node_id(dir.path(), {}, entropy);

        REQUIRE_FALSE(refused.has_value());
        REQUIRE(refused.error().exit_code == kExitDataDir);
        REQUIRE_THAT(refused.error().message, ContainsSubstring(dir / "node.id"));
        REQUIRE(contents(dir / "node.id") == text);
    }
    REQUIRE(::unlink((dir / "node.id").c_str()) == 0);
    REQUIRE(::mkfifo((dir / "node.id").c_str(), 0644) == 0);
    REQUIRE_FALSE(load_node_id(dir.path(), {}, entropy).has_value());
}

TEST_CASE("daemon node id: a lost file is not replaced", "[daemon]") {
    const TempDir dir;
    core::SeededEntropy entropy(1);
    const auto words_of = [&](const std::vector<std::string>& disks) {
        const auto id = load_node_id(dir.path(), disks, entropy);
        if (id) REQUIRE(::unlink((dir / "node.id").c_str()) == 0);
        return id ? "" : id.error().message;
    };
    devices::Label label{.generation = 4, .size_bytes = 1 << 20, .slot = 1, .pool = "fast"};
    label.owner.fill(std::byte{0xab});
    label.segment_bytes = 1 << 20;
    const auto disk_with = [&](devices::LabelState state) {
        std::string image(2 * devices::kBlockBytes, '\0');
        label.state = state;
        std::array<std::byte, devices::kBlockBytes> block{};
        write_label(label, block);
        std::memcpy(image.data() + label.offset(), block.data(), block.size());
        write(dir / "disk", image, 0600);
    };

    REQUIRE(words_of({dir / "none"}).empty());
    write(dir / "disk", std::string(100, 'x'), 0600);
    REQUIRE(words_of({dir / "disk"}).empty());
    disk_with(devices::LabelState::kReleased);
    REQUIRE(words_of({dir / "disk"}).empty());
    disk_with(devices::LabelState::kActive);
    REQUIRE_THAT(words_of({dir / "none", dir / "disk"}),
                 ContainsSubstring("disk " + (dir / "disk") + " belongs to node abab"));
    write(dir / "slots", "", 0644);
    REQUIRE_THAT(words_of({}), ContainsSubstring("the file slots"));
}

TEST_CASE("daemon durable file: it is replaced as a whole, or not at all", "[daemon]") {
    const TempDir dir;
    const std::string path = dir / "file";
    REQUIRE(read_small_file(path).error().code == Errc::kNotFound);
    REQUIRE(replace_file(path, "one", 0600).has_value());
    REQUIRE(replace_file(path, "two", 0644).has_value());
    REQUIRE(*read_small_file(path) == "two");
    REQUIRE(mode_of(path) == 0644);

    REQUIRE(::mkdir((path + ".new").c_str(), 0700) == 0);
    REQUIRE_FALSE(replace_file(path, "three", 0644).has_value());
    REQUIRE(*read_small_file(path) == "two");

    REQUIRE(read_small_file(dir.path()).error().code == Errc::kInvalid);
    std::filesystem::resize_file(path, 2UL << 20);
    REQUIRE(read_small_file(path).error().code == Errc::kInvalid);
}

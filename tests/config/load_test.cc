// Goal: good files give what they say and the defaults for the rest; what is printed reads back.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

#include "config/schema.h"
#include "tests/catch.h"
#include "tests/config/example_schema.h"

namespace load_test {

using namespace fopd;
using namespace fopd::config;

namespace {

const Schema kSchema = example::schema();

SnapshotPtr load(std::string_view text) {
    const auto loaded = kSchema.load_text(text, "f.yaml");
    if (!loaded) FAIL(to_string(loaded.error().front()));
    return *loaded;
}

constexpr std::string_view kEverything = R"(
node:
  name: node-7
  data_dir: "/srv/my data"
  drain_timeout: 1min
  motto: 'it''s: "fine" \o/'
  verbose: true
  metrics: "[::1]:0"
  key_file: /etc/fopd/peer.key
limits: { nice: -20, foms_max: 7, buffers: 1GiB, block: 8k, cores: 3, rate: 50MB/s, mode: none,
          tape: { order: optional, wait_min: 250ms, wait_max: 1h } }
storage:
  pools:
    - { name: fast, quota: 100TiB }
    - name: cold
      family: "tape: \"LTO\""
      age_max: 2d
  listen: []
)";

class TemporaryDirectory {
public:
    TemporaryDirectory() {
        std::string name = (std::filesystem::temp_directory_path() / "fopd_config_XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    std::string file(const char* name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

// The one line a file gives that cannot be read, without its name.
std::string file_problem(const std::string& file_name) {
    const auto loaded = kSchema.load_file(file_name);
    if (loaded) return "loaded";
    REQUIRE(loaded.error().size() == 1);
    const std::string line = to_string(loaded.error().front());
    REQUIRE(line.starts_with(file_name + ":1:1: file: "));
    return line.substr((file_name + ":1:1: file: ").size());
}

}  // namespace

TEST_CASE("config load: an empty file gives every default", "[config]") {
    for (const char* text : {"", "\n", "# only a comment", "---", "--- # empty\n...\n", "{}", "~",
                             "node:\nlimits:\nstorage:\n", "node: {}", "limits: {tape: }"}) {
        CAPTURE(text);
        const auto snapshot = load(text);

        const auto& node = snapshot->get<example::Node>();
        REQUIRE(node.name == "node-a");
        REQUIRE(node.data_dir == "/var/lib/fopd");
        REQUIRE(node.drain_timeout == 30s);
        REQUIRE(node.metrics == Address{"127.0.0.1", 9420});
        REQUIRE_FALSE(node.key_file.has_value());
        REQUIRE(snapshot->get<example::Limits>().tape.wait_max == 30min);
        REQUIRE(snapshot->get<example::Storage>().pools.empty());
    }
}

TEST_CASE("config load: every type of key gives its value", "[config]") {
    std::string text(kEverything.substr(0, kEverything.find("  listen:")));
    text += "  listen: [\"tcp://a:1\", verbs://b:2]\n";
    text += "  weights:\n  - 1\n  - 2\n  - 0\n";
    text += "  peers: [\"a:1\", \"b:1\"]\n";

    const auto snapshot = load(text);

    const auto& node = snapshot->get<example::Node>();
    REQUIRE(node.name == "node-7");
    REQUIRE(node.data_dir == "/srv/my data");
    REQUIRE(node.drain_timeout == 60s);
    REQUIRE(node.motto == R"(it's: "fine" \o/)");
    REQUIRE(node.verbose);
    REQUIRE(node.metrics == Address{"::1", 0});
    REQUIRE(node.key_file == "/etc/fopd/peer.key");
    const auto& limits = snapshot->get<example::Limits>();
    REQUIRE(limits.nice == -20);
    REQUIRE(limits.foms_max == 7);
    REQUIRE(limits.buffers == std::uint64_t{1} << 30);
    REQUIRE(limits.block == 8192);
    REQUIRE(limits.cores == 3U);
    REQUIRE(limits.rate == Rate{50'000'000, Rate::Unit::kBytes});
    REQUIRE(limits.mode == example::Mode::kNone);
    REQUIRE(limits.tape.order == example::Mode::kOptional);
    REQUIRE(limits.tape.wait_min == 250ms);
    REQUIRE(limits.tape.wait_max == 1h);
    const auto& storage = snapshot->get<example::Storage>();
    REQUIRE(storage.pools.size() == 2);
    REQUIRE(storage.pools[0].name == "fast");
    REQUIRE(storage.pools[0].quota == std::uint64_t{100} << 40);
    REQUIRE(storage.pools[0].family == "disk");
    REQUIRE(storage.pools[1].family == "tape: \"LTO\"");
    REQUIRE(storage.pools[1].age_max == 48h);
    REQUIRE(storage.listen == std::vector<std::string>{"tcp://a:1", "verbs://b:2"});
    REQUIRE(storage.weights == std::vector<std::uint32_t>{1, 2, 0});
    REQUIRE(storage.peers == std::vector<Address>{{"a", 1}, {"b", 1}});
}

TEST_CASE("config load: text stays text, without YAML's conversions", "[config]") {
    for (const char* word : {"no", "123", "0x1f", "1e3", "true", "2026-11-21", "node.a", "-"}) {
        CAPTURE(word);
        const auto snapshot = load(std::string("node: {name: \"") + word + "\"}");

        REQUIRE(snapshot->get<example::Node>().name == word);
        REQUIRE(load(print_effective(*snapshot))->get<example::Node>().name == word);
    }
    REQUIRE(load("node: {name: 123}")->get<example::Node>().name == "123");
    REQUIRE(load("node: {name: no}")->get<example::Node>().name == "no");
    REQUIRE(load("node: {motto: \"null\"}")->get<example::Node>().motto == "null");
    REQUIRE(load("node: {motto: \"\\u00e4\\\"\"}")->get<example::Node>().motto == "\xc3\xa4\"");
    REQUIRE(load("node:\n  motto: >-\n    a\n    b\n")->get<example::Node>().motto == "a b");
    REQUIRE(load("node: {motto: 'a\n  b'}")->get<example::Node>().motto == "a b");
}

TEST_CASE("config load: a word in place of a value", "[config]") {
    REQUIRE(load("limits: {cores: 2}")->get<example::Limits>().cores == 2U);
    REQUIRE_FALSE(load("limits: {cores: auto}")->get<example::Limits>().cores.has_value());
    REQUIRE_FALSE(load("node: {key_file: none}")->get<example::Node>().key_file.has_value());
}

TEST_CASE("config load: Windows line ends do no harm", "[config]") {
    const auto snapshot = load("node:\r\n  name: b\r\nlimits:\r\n  mode: none\r\n");

    REQUIRE(snapshot->get<example::Node>().name == "b");
    REQUIRE(snapshot->get<example::Limits>().mode == example::Mode::kNone);
}

TEST_CASE("config load: a printed configuration loads as the same one", "[config]") {
    std::string long_list = "storage: {peers: [";
    for (int port = 1; port <= 100; ++port)
        long_list += "\"peer.example:" + std::to_string(port) + "\", ";
    const std::string everything(kEverything.substr(0, kEverything.find("  listen:")));
    for (const std::string& text :
         {std::string(), everything, long_list + "]}",
          std::string("storage: {pools: [{name: a}, {name: \"1\", family: \"\"}], listen: [\"#\", "
                      "\": \"]}"),
          std::string(
              "node: {motto: \"a, b] }: {c #d\"}\nlimits: {rate: 1B/s, buffers: 1048577}")}) {
        CAPTURE(text);
        const auto snapshot = load(text);
        const std::string printed = print_effective(*snapshot);

        const auto again = load(printed);

        REQUIRE(print_effective(*again) == printed);
        REQUIRE(hash(*again) == hash(*snapshot));
        REQUIRE(merge(snapshot, again).changes.empty());
    }
}

TEST_CASE("config load: the printed form holds every key, readable", "[config]") {
    const auto snapshot =
        load("node: {motto: hi there}\nstorage: {pools: [{name: a}, {name: b, quota: 1TiB}]}");

    REQUIRE(print_effective(*snapshot) == R"(node:
  name: node-a
  data_dir: /var/lib/fopd
  drain_timeout: 30s
  motto: "hi there"
  verbose: false
  metrics: "127.0.0.1:9420"
  key_file: none
limits:
  nice: 0
  foms_max: 128
  buffers: 64MiB
  block: 4KiB
  cores: auto
  rate: 200/s
  mode: required
  tape:
    order: none
    wait_min: 1s
    wait_max: 30min
storage:
  pools:
    - name: a
      quota: 0B
      age_max: 1h
      family: disk
    - name: b
      quota: 1TiB
      age_max: 1h
      family: disk
  listen: ["tcp://0.0.0.0:31470"]
  weights: [40, 40, 20]
  peers: []
)");
}

TEST_CASE("config load: the hash is that of the values, not of their spelling", "[config]") {
    const std::string defaults = hash(*load(""));

    REQUIRE(defaults == "3eb835adda86ad8a");
    REQUIRE(hash(*load("limits: {buffers: 65536KiB} # the same")) == defaults);
    REQUIRE(hash(*load("limits: {buffers: 65MiB}")) != defaults);
}

TEST_CASE("config load: a schema without sections takes an empty file", "[config]") {
    const auto snapshot = Schema().load_text("", "f.yaml");

    REQUIRE(snapshot.has_value());
    REQUIRE(print_effective(**snapshot).empty());
}

TEST_CASE("config load: a file is read from disk", "[config]") {
    const TemporaryDirectory directory;
    const std::string name = directory.file("fopd.yaml");
    std::ofstream(name) << "node: {name: disk}\n";

    const auto loaded = kSchema.load_file(name);

    REQUIRE(loaded.has_value());
    REQUIRE((*loaded)->get<example::Node>().name == "disk");
    std::ofstream(name) << "node: {name: ''}\n";
    REQUIRE(to_string(kSchema.load_file(name).error().front()).starts_with(name + ":1:14: "));
}

TEST_CASE("config load: a file that cannot be read is one clear problem", "[config]") {
    const TemporaryDirectory directory;
    const std::string right = ", name a file that can be read";

    REQUIRE(file_problem(directory.file("missing")) ==
            "cannot be opened: No such file or directory" + right);
    REQUIRE(file_problem("") == "cannot be opened: No such file or directory" + right);
    REQUIRE(file_problem(directory.file("")) == "a directory" + right);
    REQUIRE(file_problem(directory.file("x/") + std::string(5000, 'a')) ==
            "cannot be opened: File name too long" + right);
    REQUIRE(file_problem("/dev/null") == "not a regular file" + right);

    const std::string loop = directory.file("loop");
    std::filesystem::create_symlink(loop, loop);
    REQUIRE(file_problem(loop) == "cannot be opened: Too many levels of symbolic links" + right);

    const std::string pipe = directory.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    REQUIRE(file_problem(pipe) == "not a regular file" + right);

    const std::string large = directory.file("large");
    std::ofstream(large) << "# ";
    std::filesystem::resize_file(large, std::uintmax_t{1} << 40);
    REQUIRE(file_problem(large) == "larger than 1MiB, a configuration is a few KiB");

    if (::geteuid() != 0) {
        const std::string secret = directory.file("secret");
        std::ofstream(secret) << "node: {}\n";
        std::filesystem::permissions(secret, std::filesystem::perms::none);
        REQUIRE(file_problem(secret) == "cannot be opened: Permission denied" + right);
    }
}

TEST_CASE("config load: a rule between sections is asked once each is right by itself",
          "[config]") {
    Schema schema = example::schema();
    std::size_t asked = 0;
    schema.rule("limits", {"node"}, [&asked](const Snapshot& settings) -> std::vector<Mistake> {
        ++asked;
        if (settings.get<example::Node>().verbose) return {};
        return {{.wrong = "too quiet", .right = "be verbose"},
                {.wrong = "sad", .right = "be glad"}};
    });

    const auto wrong = schema.load_text("node: { nope: 1 }\n", "f.yaml");
    REQUIRE_FALSE(wrong.has_value());
    REQUIRE(asked == 0);
    // What is wrong elsewhere does not hide it.
    const auto beside = schema.load_text("node: {}\nstorage: { pools: 3 }\n", "f.yaml");
    REQUIRE_FALSE(beside.has_value());
    REQUIRE(beside.error().size() == 3);
    REQUIRE(asked == 1);
    asked = 0;

    const auto refused = schema.load_text("node: {}\nlimits:\n  nice: 3\n", "f.yaml");
    REQUIRE_FALSE(refused.has_value());
    REQUIRE(refused.error().size() == 2);
    REQUIRE(to_string(refused.error()[0]) == "f.yaml:3:3: limits: too quiet, be verbose");
    REQUIRE(to_string(refused.error()[1]) == "f.yaml:3:3: limits: sad, be glad");

    REQUIRE(to_string(schema.load_text("", "f.yaml").error().front()) ==
            "f.yaml:1:1: limits: too quiet, be verbose");
    REQUIRE(schema.load_text("node: { verbose: true }\n", "f.yaml").has_value());
}

}  // namespace load_test

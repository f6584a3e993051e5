// Goal: what users read about the configuration is what the program does.

#include "daemon/settings.h"

#include <fstream>
#include <sstream>

#include "config/sample.h"
#include "daemon/configuration.h"
#include "io_sched/settings.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::daemon;

namespace {

// Tests run in the project's folder.
std::string text_of(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

config::SnapshotPtr load(const std::string& text) {
    auto snapshot = make_schema().load_text(text, "test.yaml");
    REQUIRE(snapshot.has_value());
    return *snapshot;
}

// A configuration whose source is a string the test changes.
std::unique_ptr<Configuration> configuration_of(const std::string* text) {
    auto opened = Configuration::open("test.yaml", [text, schema = make_schema()] {
        return schema.load_text(*text, "test.yaml");
    });
    REQUIRE(opened.has_value());
    return std::move(*opened);
}

// What a running node could say against it.
const Configuration::Check kNothingElse = [](const config::Snapshot&) {
    return std::vector<std::string>();
};

}  // namespace

TEST_CASE("daemon settings: the sample file is what the declarations say", "[daemon]") {
    // To mend: build/release/bin/fopd --sample-config > systemd/fopd.yaml
    REQUIRE(text_of("systemd/fopd.yaml") == config::annotated_sample(make_schema()));
}

TEST_CASE("daemon settings: the sample file is valid, and has the defaults but for tape drives",
          "[daemon]") {
    const config::SnapshotPtr sample = load(text_of("systemd/fopd.yaml"));

    const config::SnapshotPtr with_tape =
        load("io_sched: { tape: { read_algo: grouped_read, write_algo: grouped_write } }\n");
    REQUIRE(config::print_effective(*sample) == config::print_effective(*with_tape));
    REQUIRE(load("")->get<io_sched::IoSchedSettings>().tape == io_sched::TapeSettings{});
}

TEST_CASE("daemon settings: the manual page has every key", "[daemon]") {
    const std::string page = text_of("docs/man/fopd.yaml.5");

    const config::Schema schema = make_schema();
    for (const auto& section : schema.sections()) {
        const config::KeyDescription described = section->describe();
        for (const config::KeyDescription& key : described.keys) {
            const std::string item = ".It Cm " + section->name() + "." + key.key + "\n";
            INFO(item);
            REQUIRE(page.find(item) != std::string::npos);
        }
    }
}

TEST_CASE("daemon settings: a device of an unknown pool is refused at its section", "[daemon]") {
    const auto refused = make_schema().load_text(
        "pools: [ { name: fast } ]\n"
        "devices:\n"
        "  - { name: d0, path: /a, pool: slow }\n",
        "test.yaml");

    REQUIRE_FALSE(refused.has_value());
    REQUIRE(refused.error().size() == 1);
    REQUIRE(to_string(refused.error().front()) ==
            "test.yaml:3:3: devices: device d0 is of pool slow, which pools does not have, each "
            "device is of a disk pool in pools, and has a path of its own");
}

TEST_CASE("daemon settings: an admin socket whose path no socket can have is refused", "[daemon]") {
    const auto load_path = [](std::size_t bytes) {
        const std::string path = "/" + std::string(bytes - 1, 's');
        return make_schema().load_text("admin: { socket: " + path + " }", "test.yaml");
    };
    REQUIRE(load_path(107).has_value());

    const auto refused = load_path(108);

    REQUIRE_FALSE(refused.has_value());
    REQUIRE(to_string(refused.error().front()) ==
            "test.yaml:1:18: admin.socket: it has 108 bytes, the path of a socket has at most 107");
}

TEST_CASE("daemon configuration: devices and quotas need no restart", "[daemon]") {
    std::string text =
        "pools: [ { name: fast, quota: 1GiB } ]\n"
        "devices: [ { name: d0, path: /a, pool: fast } ]\n";
    const auto configuration = configuration_of(&text);

    text =
        "pools: [ { name: fast, quota: 2GiB } ]\n"
        "devices: [ { name: d0, path: /b, pool: fast } ]\n";
    const auto reloaded = configuration->reload(kNothingElse);

    REQUIRE(reloaded.has_value());
    REQUIRE(keys_in_force(reloaded->changes) ==
            std::vector<std::string>{"pools[0].quota", "devices[0].path"});
    REQUIRE(reloaded->needs_restart.empty());
}

TEST_CASE("daemon configuration: a quota does not wait for the restart that a new pool needs",
          "[daemon]") {
    std::string text = "pools: [ { name: fast, quota: 1GiB } ]\n";
    const auto configuration = configuration_of(&text);

    text = "pools: [ { name: slow }, { name: fast, quota: 2GiB } ]\n";
    const auto reloaded = configuration->reload(kNothingElse);

    REQUIRE(reloaded.has_value());
    REQUIRE(keys_in_force(reloaded->changes) == std::vector<std::string>{"pools[1].quota"});
    REQUIRE(reloaded->needs_restart == std::vector<std::string>{"pools"});
    const auto& pools = configuration->current()->get<std::vector<devices::PoolSettings>>();
    REQUIRE(pools.size() == 1);
    REQUIRE(pools[0].quota_bytes == std::uint64_t{2} << 30);
}

TEST_CASE("daemon configuration: access rules change without a restart", "[daemon]") {
    std::string text = "auth: { mode: none, peer_key: /old.key }\n";
    const auto configuration = configuration_of(&text);
    const auto keys = [&] { return configuration->current()->get<AuthSettings>().peer_keys; };
    REQUIRE(keys() == std::vector<std::string>{"/old.key"});

    text = "auth: { mode: required, peer_key: [ /new.key, /old.key ] }\n";
    const auto reloaded = configuration->reload(kNothingElse);

    REQUIRE(reloaded.has_value());
    REQUIRE(keys_in_force(reloaded->changes) ==
            std::vector<std::string>{"auth.mode", "auth.peer_key"});
    REQUIRE(reloaded->needs_restart.empty());
    REQUIRE(keys() == std::vector<std::string>{"/new.key", "/old.key"});
    text = "auth: { peer_key: none }\n";
    REQUIRE(configuration->reload(kNothingElse).has_value());
    REQUIRE(keys().empty());
}

TEST_CASE(
    "daemon configuration: settings of I/O schedulers change by hand as in the file, all or none",
    "[daemon]") {
    const std::string text = "io_sched: { tape: { grouped_read_max_wait: 5min } }\n";
    const auto configuration = configuration_of(&text);
    const auto tape = [&] {
        return configuration->current()->get<io_sched::IoSchedSettings>().tape;
    };
    const auto set = [&](std::vector<SectionValue> values) {
        return configuration->set_io_sched(values);
    };

    const auto changed =
        set({{"read_algo", "elevator"},
             {"tape.read_algo", "grouped_read"},
             {"tape.fair_share_limits", "[{technology: lto9, min: '0,0,0', max: '2,2,1'}]"}});

    REQUIRE(changed.has_value());
    const std::vector<std::string> keys{"io_sched.read_algo", "io_sched.tape.read_algo",
                                        "io_sched.tape.fair_share_limits"};
    CHECK(keys_in_force(*changed) == keys);
    CHECK(tape().read_algo->name == "grouped_read");
    CHECK(tape().grouped_read_max_wait == 5min);
    CHECK(tape().fair_share_limits.size() == 1);
    CHECK(configuration->differing_keys() == keys);

    const std::vector<SectionValue> wrong{
        {"tape.read_algo", "grouped_write"},
        {"tape.read_algo", "fifo\n  write_algo: grouped_write"},
        {"tape.grouped_read_max_wait", "soon"},
        {"dispatch_algo", "fair_share"},
        {"depth_max", "64"},  // Needs a restart.
        {"tape", "{}"},
        {"tape.order", "scan"},
    };
    for (const SectionValue& each : wrong) {
        CAPTURE(each.key, each.value);
        CHECK_FALSE(set({{"tape.write_algo", "grouped_write"}, each}).has_value());
        CHECK(tape().write_algo->name == "fifo");
    }

    REQUIRE(configuration->reload(kNothingElse).has_value());
    CHECK(tape().read_algo->name == "fifo");
    CHECK(configuration->differing_keys().empty());
}

TEST_CASE(
    "daemon settings: mistakes between pools, libraries and drives are reported at their keys",
    "[daemon]") {
    const std::string pools =
        "pools:\n"
        "  - { name: fast }\n"
        "  - { name: cold, family: tape, staging: fast }\n";
    const std::string library =
        "libraries:\n"
        "  - { name: vtl0, path: /vtl, pool: cold, model: lto8 }\n";
    const auto complaint_of = [](const std::string& text) {
        const auto loaded = make_schema().load_text(text, "f");
        if (loaded) return std::string();
        const config::Problem& problem = loaded.error().front();
        return std::to_string(problem.position.line) + " " + problem.key;
    };
    CHECK(complaint_of(pools + library).empty());
    // A tape pool without a library, or without staging.
    CHECK(complaint_of(pools) == "3 pools[1]");
    CHECK(complaint_of("pools:\n  - { name: fast }\n  - name: cold\n    family: tape\n" +
                       library) == "3 pools[1].staging");
    CHECK(complaint_of("pools:\n  - name: cold\n    family: tape\n    staging: slow\n" + library) ==
          "4 pools[0].staging");
    CHECK(complaint_of("pools:\n"
                       "  - { name: cold, family: tape, staging: deep }\n"
                       "  - name: deep\n    family: tape\n    staging: cold\n" +
                       library) == "2 pools[0].staging");
    // A library whose pool is none, or has no tapes.
    CHECK(complaint_of("pools: [ { name: fast } ]\n" + library) == "3 libraries[0].pool");
    CHECK(complaint_of("pools: [ { name: cold } ]\n" + library) == "3 libraries[0].pool");
    // More copies than the library can write at the same time.
    CHECK(complaint_of("pools:\n"
                       "  - { name: fast }\n"
                       "  - { name: cold, family: tape, staging: fast, copies: 3 }\n"
                       "libraries:\n"
                       "  - name: vtl0\n    path: /vtl\n    pool: cold\n    drives: 2\n") ==
          "8 libraries[0].drives");
    // Limits for drives that the library does not have, and none for those that it has.
    const auto limits = [](const std::string& technology) {
        return "io_sched:\n  tape:\n    dispatch_algo: fair_share\n    fair_share_limits:\n"
               "      - { technology: " +
               technology + ", min: '0,0,0', max: '1,1,1' }\n";
    };
    CHECK(complaint_of(pools + library + limits("lto8")).empty());
    CHECK(complaint_of(limits("lto9") + pools + library) == "5 io_sched.tape.fair_share_limits");
    CHECK(complaint_of(limits("lto9")).empty());
}

TEST_CASE("daemon settings: a wrong peer key is refused where it stands", "[daemon]") {
    const auto problem_in = [](const std::string& value) {
        const auto loaded = make_schema().load_text("auth:\n  peer_key: " + value + "\n", "f");
        REQUIRE_FALSE(loaded.has_value());
        return to_string(loaded.error().front());
    };
    REQUIRE_THAT(problem_in("relative"), ContainsSubstring("f:2:13: auth.peer_key"));
    REQUIRE_THAT(problem_in("[ /a, relative ]"), ContainsSubstring("f:2:19: auth.peer_key[1]"));
    REQUIRE_THAT(problem_in("{ a: b }"), ContainsSubstring("f:2:13: auth.peer_key"));
}

TEST_CASE("daemon configuration: a reload undoes settings made by hand", "[daemon]") {
    const std::string text = "log: { level: warn }\n";
    const auto configuration = configuration_of(&text);
    configuration->set_log_level(core::Level::kDebug);
    REQUIRE(configuration->differing_keys() == std::vector<std::string>{"log.level"});

    const auto reloaded = configuration->reload(kNothingElse);

    REQUIRE(reloaded.has_value());
    REQUIRE(keys_in_force(reloaded->changes) == std::vector<std::string>{"log.level"});
    REQUIRE(configuration->log_level() == core::Level::kWarn);
    REQUIRE(configuration->differing_keys().empty());
}

TEST_CASE("daemon configuration: a key that waits for a restart is listed until it is put back",
          "[daemon]") {
    std::string text = "localities: { cores: 2 }\n";
    const auto configuration = configuration_of(&text);
    const std::string hash = configuration->hash();

    text = "localities: { cores: 3 }\n";
    REQUIRE(configuration->reload(kNothingElse).has_value());
    REQUIRE(configuration->keys_waiting_for_restart() ==
            std::vector<std::string>{"localities.cores"});
    REQUIRE(configuration->hash() == hash);
    const auto again = configuration->reload(kNothingElse);
    REQUIRE(again.has_value());
    REQUIRE(again->needs_restart == std::vector<std::string>{"localities.cores"});

    text = "localities: { cores: 2 }\n";
    REQUIRE(configuration->reload(kNothingElse).has_value());
    REQUIRE(configuration->keys_waiting_for_restart().empty());
}

TEST_CASE("daemon configuration: a bad source changes nothing", "[daemon]") {
    std::string text = "log: { level: warn }\n";
    const auto configuration = configuration_of(&text);
    configuration->set_log_level(core::Level::kDebug);

    text = "log: { level: loud }\n";
    const auto reloaded = configuration->reload(kNothingElse);

    REQUIRE_FALSE(reloaded.has_value());
    REQUIRE_FALSE(reloaded.error().busy);
    REQUIRE(reloaded.error().problems.size() == 1);
    REQUIRE(configuration->log_level() == core::Level::kDebug);
}

TEST_CASE("daemon configuration: the node may refuse a reload with its own reason", "[daemon]") {
    std::string text = "log: { level: warn }\n";
    const auto configuration = configuration_of(&text);

    text = "log: { level: debug }\n";
    const auto reloaded = configuration->reload(
        [](const config::Snapshot&) { return std::vector<std::string>{"d0 stays where it is"}; });

    REQUIRE_FALSE(reloaded.has_value());
    REQUIRE(reloaded.error().problems == std::vector<std::string>{"d0 stays where it is"});
    REQUIRE(configuration->log_level() == core::Level::kWarn);
}

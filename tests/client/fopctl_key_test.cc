// Goal: the verbs about keys and tokens leave the files as they say, or as they were.
// Method: run the program with files of the test's own, and an admin server that takes a reload or
// refuses it.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "daemon/admin_server.h"
#include "fop/hex.h"
#include "fop/key.h"
#include "fop/token.h"
#include "tests/catch.h"
#include "tests/client/run_program.h"
#include "tests/daemon/canned_handler.h"
#include "tests/temp_dir.h"

using namespace fopd;

namespace {

std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

unsigned mode_of(const std::string& path) {
    struct stat info{};
    REQUIRE(stat(path.c_str(), &info) == 0);
    return info.st_mode & 07777U;
}

bool exists(const std::string& path) {
    return access(path.c_str(), F_OK) == 0;
}

const char* const kReloaded = R"({"changed":[]})";

struct Fixture {
    Ran run(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), FOPCTL);
        return run_program(arguments, {"FOPD_ADMIN=" + socket, "FOPD_PRINCIPALS=" + file});
    }
    void start_server() {
        auto started = daemon::AdminServer::start({.socket = socket}, handler, events);
        REQUIRE(started.has_value());
        server = std::move(*started);
    }

    // A server whose daemon uses the file, and takes it.
    void start_server_of(const std::string& used) {
        handler.put("/v1/keys", 200,
                    nlohmann::json{{"file", "/etc/fopd/fopd.yaml"},
                                   {"principals", used},
                                   {"uid", geteuid()},
                                   {"gid", getegid()}}
                        .dump());
        handler.put("/v1/keys/reload", 200, kReloaded);
        start_server();
    }

    TempDir dir;
    std::string socket = dir / "admin.sock";
    std::string file = dir / "principals.yaml";
    core::NullEventSink events;
    CannedHandler handler;
    std::unique_ptr<daemon::AdminServer> server;
};

}  // namespace

TEST_CASE("fopctl keygen: a new file of its owner's only, and never over an old one", "[client]") {
    const Fixture f;
    const std::string path = f.dir / "issuer.key";

    const Ran made = f.run({"keygen", path, "--public", f.dir / "issuer.pub"});
    const std::string text = text_of(path);
    const Ran again = f.run({"keygen", path});

    REQUIRE(made.exit_code == 0);
    REQUIRE(made.out.empty());
    REQUIRE(text.size() == 65);
    REQUIRE(mode_of(path) == 0600);
    REQUIRE(again.exit_code == 1);
    REQUIRE(text_of(path) == text);
    const auto key = fop::parse_key(text);
    REQUIRE(key.has_value());
    REQUIRE(text_of(f.dir / "issuer.pub") == fop::to_text(fop::Issuer(*key).public_half()) + "\n");
}

TEST_CASE("fopctl key create: a principal, its key, and a reload", "[client]") {
    Fixture f;
    f.start_server_of(f.file);

    const Ran printed = f.run({"key", "create", "one"});
    const Ran kept = f.run({"key", "create", "two", "--rights", "read,admin", "--groups", "a,b",
                            "--delegate", "--out", f.dir / "two.key", "--json"});

    REQUIRE(printed.exit_code == 0);
    REQUIRE(printed.err.empty());
    REQUIRE(printed.out.size() == 65);
    REQUIRE(kept.exit_code == 0);
    REQUIRE(mode_of(f.dir / "two.key") == 0600);
    const std::string key = text_of(f.dir / "two.key");
    REQUIRE(text_of(f.file) ==
            "principals:\n  - name: one\n    key: " + printed.out +
                "    rights: [read, write, create, delete]\n  - name: two\n    key: " + key +
                "    rights: [read, admin]\n    groups: [a, b]\n"
                "    delegate: true\n");
    const auto json = nlohmann::json::parse(kept.out);
    REQUIRE(json.at("key_id") == fop::to_text(fop::key_id(*fop::parse_key(key))));
    REQUIRE_FALSE(json.contains("key"));
    REQUIRE((mode_of(f.file) & 07U) == 0);
    std::vector<std::string> asked;
    for (const auto& request : f.handler.requests()) asked.push_back(request.path);
    REQUIRE(asked ==
            std::vector<std::string>{"/v1/keys", "/v1/keys/reload", "/v1/keys", "/v1/keys/reload"});
}

TEST_CASE("fopctl key create: says that a quota is rounded down to whole blocks", "[client]") {
    Fixture f;
    f.start_server_of(f.file);

    const Ran rounded = f.run({"key", "create", "one", "--quota", "fast=1MB,7", "--quota",
                               "slow=1MiB", "--out", f.dir / "one.key"});
    const Ran even = f.run({"key", "create", "two", "--quota", "fast=,7", "--out", f.dir / "two"});

    REQUIRE(rounded.exit_code == 0);
    REQUIRE(rounded.err ==
            "fopctl: key create: space is counted in blocks of 4096 bytes: the quota in pool fast "
            "is 999424 bytes, not 1000000\n");
    REQUIRE(even.exit_code == 0);
    REQUIRE(even.err.empty());
}

TEST_CASE("fopctl key create: changes the file that the daemon uses, or none", "[client]") {
    Fixture f;
    const std::string used = f.dir / "used.yaml";
    f.start_server_of(used);

    const Ran other = f.run({"key", "create", "one", "--out", f.dir / "one.key"});
    const Ran unnamed =
        run_program({FOPCTL, "key", "create", "one", "--quiet"}, {"FOPD_ADMIN=" + f.socket});
    // The daemon does not choose which file root changes.
    const bool is_root = geteuid() == 0;
    REQUIRE(unnamed.exit_code == (is_root ? 1 : 0));
    REQUIRE(exists(used) != is_root);
    if (is_root) REQUIRE_THAT(unnamed.err, ContainsSubstring("name it with --principals"));
    const Ran ran = run_program({FOPCTL, "key", "create", "two", "--quiet", "--principals", used},
                                {"FOPD_ADMIN=" + f.socket});

    REQUIRE(other.exit_code == 1);
    REQUIRE_THAT(other.err, ContainsSubstring("fopd uses " + used));
    REQUIRE_FALSE(exists(f.file));
    REQUIRE_FALSE(exists(f.dir / "one.key"));
    REQUIRE(ran.exit_code == 0);
    REQUIRE_THAT(text_of(used), ContainsSubstring("name: two"));
}

TEST_CASE("fopctl key create, token revoke: fail if the daemon uses no file", "[client]") {
    Fixture f;
    f.handler.put("/v1/keys", 200,
                  R"({"file":"/etc/fopd/fopd.yaml","principals":null,"uid":0,"gid":0})");
    f.start_server();

    const Ran created = f.run({"key", "create", "one"});
    const Ran revoked = f.run({"token", "revoke", std::string(32, 'a')});

    for (const Ran& each : {created, revoked}) {
        REQUIRE(each.exit_code == 1);
        REQUIRE_THAT(each.err, ContainsSubstring("auth.principals in /etc/fopd/fopd.yaml"));
    }
    REQUIRE_FALSE(exists(f.file));
}

TEST_CASE("fopctl key create: the daemon's user can read the file", "[client]") {
    if (geteuid() != 0) return;
    Fixture f;
    f.handler.put(
        "/v1/keys", 200,
        nlohmann::json{{"file", "x"}, {"principals", f.file}, {"uid", 4711}, {"gid", 4712}}.dump());
    f.handler.put("/v1/keys/reload", 200, kReloaded);
    f.start_server();
    // As earlier versions made it.
    const bool was_there = GENERATE(false, true);
    if (was_there) {
        std::ofstream(f.file) << "principals: []\n";
        REQUIRE(chmod(f.file.c_str(), 0640) == 0);
    }

    REQUIRE(f.run({"key", "create", "one"}).exit_code == 0);

    struct stat info{};
    REQUIRE(stat(f.file.c_str(), &info) == 0);
    REQUIRE(info.st_uid == 0);
    REQUIRE(info.st_gid == 4712);
    REQUIRE(mode_of(f.file) == 0640);
}

TEST_CASE("fopctl key create: without a daemon it takes effect at the next start", "[client]") {
    const Fixture f;

    const Ran ran = f.run({"key", "create", "one"});
    const Ran again = f.run({"key", "create", "one"});

    REQUIRE(ran.exit_code == 0);
    REQUIRE_THAT(ran.err, ContainsSubstring("takes effect when fopd starts, if auth.principals"));
    REQUIRE(again.exit_code == 1);
    REQUIRE_THAT(again.err, ContainsSubstring("one exists already; man fopctl says"));
}

TEST_CASE("fopctl key create, token revoke: without a daemon its configuration names the file",
          "[client]") {
    const Fixture f;
    const std::string config = f.dir / "fopd.yaml";
    const std::string used = f.dir / "used.yaml";
    std::ofstream(config) << "node: { data_dir: " << f.dir.path()
                          << " }\nauth: { principals: " << used << " }\n";
    // Without the variable.
    const auto run = [&](std::vector<std::string> words) {
        words.insert(words.begin(), FOPCTL);
        words.insert(words.end(), {"--config", config});
        return run_program(words, {"FOPD_ADMIN=" + f.socket, "FOPD_PRINCIPALS="});
    };

    const Ran created = run({"key", "create", "one"});
    CHECK(created.exit_code == 0);
    CHECK(created.err ==
          "fopctl: no fopd is running here; the change takes effect when fopd starts\n");
    CHECK(run({"token", "revoke", std::string(32, 'a')}).exit_code == 0);
    CHECK_THAT(text_of(used), ContainsSubstring("name: one"));
    CHECK_THAT(text_of(used), ContainsSubstring(std::string(32, 'a')));

    const std::string other = f.dir / "other.yaml";
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"key", "create", "two", "--principals", other},
          std::vector<std::string>{"token", "revoke", std::string(32, 'b'), "--principals",
                                   other}}) {
        const Ran refused = run(words);
        CHECK(refused.exit_code == 1);
        CHECK_THAT(refused.err, ContainsSubstring(config + " has " + used +
                                                  " as auth.principals, not " + other));
    }
    CHECK_FALSE(exists(other));
    CHECK(run({"key", "create", "two", "--principals", used}).exit_code == 0);
    std::filesystem::remove(config);
    CHECK(run({"key", "create", "three"}).exit_code == 78);
}

TEST_CASE("fopctl key create: without a daemon the owner of its data directory can read the file",
          "[client]") {
    if (geteuid() != 0 || getpwnam("fopd") != nullptr) return;
    const Fixture f;
    const std::string config = f.dir / "fopd.yaml";
    std::filesystem::create_directory(f.dir / "data");
    REQUIRE(chown((f.dir / "data").c_str(), 4711, 4712) == 0);
    std::ofstream(config) << "node: { data_dir: " << (f.dir / "data")
                          << " }\nauth: { principals: " << f.file << " }\n";

    const Ran ran = f.run({"key", "create", "one", "--config", config});

    REQUIRE(ran.exit_code == 0);
    struct stat info{};
    REQUIRE(stat(f.file.c_str(), &info) == 0);
    CHECK(info.st_uid == 0);
    CHECK(info.st_gid == 4712);
    CHECK(mode_of(f.file) == 0640);
    CHECK_THAT(ran.err, !ContainsSubstring("only root"));

    // Nobody is found.
    std::ofstream(config) << "node: { data_dir: " << (f.dir / "missing") << " }\n";
    const Ran alone =
        f.run({"key", "create", "two", "--config", config, "--principals", f.dir / "alone.yaml"});
    CHECK(alone.exit_code == 0);
    CHECK_THAT(alone.err, ContainsSubstring("only root"));
}

TEST_CASE("fopctl key create: a directory that is missing is named", "[client]") {
    const Fixture f;
    const std::string missing = f.dir / "missing";

    const Ran key = f.run({"key", "create", "ann", "--out", missing + "/ann.key"});
    const Ran file = f.run({"key", "create", "ann", "--principals", missing + "/principals.yaml"});

    for (const Ran& each : {key, file}) {
        CHECK(each.exit_code == 1);
        CHECK_THAT(each.err, ContainsSubstring("the directory " + missing + " does not exist"));
    }
}

TEST_CASE("fopctl key create: a refusal by the daemon restores the file", "[client]") {
    Fixture f;
    f.handler.put("/v1/keys/reload", 422, R"({"error":"bad","problems":["f:1:2: a: b"]})");
    f.start_server_of(f.file);
    const std::string before = GENERATE(as<std::string>{}, "", "principals: []\n");
    if (!before.empty()) std::ofstream(f.file) << before;

    const Ran ran = f.run({"key", "create", "one", "--out", f.dir / "one.key"});

    REQUIRE(ran.exit_code == 78);
    REQUIRE_THAT(ran.err, ContainsSubstring("f:1:2: a: b"));
    REQUIRE_THAT(ran.err, ContainsSubstring("the file is as it was"));
    REQUIRE(text_of(f.file) == before);
    REQUIRE(exists(f.file) == !before.empty());
    REQUIRE_FALSE(exists(f.dir / "one.key"));
    REQUIRE_FALSE(exists(f.file + ".new"));
}

TEST_CASE("fopctl key create: mode, owner and link of the file are kept", "[client]") {
    const Fixture f;
    const std::string real = f.dir / "real.yaml";
    std::ofstream(real) << "principals: []\n";
    REQUIRE(chmod(real.c_str(), 0640) == 0);
    if (geteuid() == 0) REQUIRE(chown(real.c_str(), 0, 12345) == 0);
    REQUIRE(symlink(real.c_str(), f.file.c_str()) == 0);

    REQUIRE(f.run({"key", "create", "one"}).exit_code == 0);

    struct stat info{};
    REQUIRE(lstat(f.file.c_str(), &info) == 0);
    REQUIRE(S_ISLNK(info.st_mode));
    REQUIRE(stat(real.c_str(), &info) == 0);
    REQUIRE((info.st_mode & 07777U) == 0640);
    if (geteuid() == 0) REQUIRE(info.st_gid == 12345);
    REQUIRE_THAT(text_of(real), ContainsSubstring("name: one"));
}

TEST_CASE("fopctl key create: a file of another style is left alone", "[client]") {
    const Fixture f;
    const std::string text = "principals: [{name: a}]\n";
    std::ofstream(f.file) << text;

    const Ran ran = f.run({"key", "create", "one", "--out", f.dir / "one.key"});

    REQUIRE(ran.exit_code == 1);
    REQUIRE_THAT(ran.err, ContainsSubstring("line 1: "));
    REQUIRE(text_of(f.file) == text);
    REQUIRE_FALSE(exists(f.dir / "one.key"));
}

TEST_CASE("fopctl key create: a concurrent change of the file is reported", "[client]") {
    const Fixture f;
    const int directory = open(f.dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(flock(directory, LOCK_EX) == 0);

    const Ran ran = f.run({"key", "create", "one"});
    close(directory);

    REQUIRE(ran.exit_code == 75);
    REQUIRE_FALSE(exists(f.file));
}

TEST_CASE("fopctl key list: everything but the keys", "[client]") {
    const Fixture f;
    const std::string key = f.run({"key", "create", "one", "--quiet"}).out;
    const std::string id = fop::to_text(fop::key_id(*fop::parse_key(key)));

    const Ran page = f.run({"key", "list"});
    const Ran json = f.run({"key", "list", "--json"});

    REQUIRE(page.exit_code == 0);
    REQUIRE_THAT(page.out, ContainsSubstring("one"));
    REQUIRE_THAT(page.out, ContainsSubstring("read, write, create, delete"));
    REQUIRE(nlohmann::json::parse(json.out).at("principals").at(0).at("key_id") == id);
    const std::string digits = key.substr(0, 64);
    REQUIRE(page.out.find(digits) == std::string::npos);
    REQUIRE(json.out.find(digits) == std::string::npos);
}

TEST_CASE("fopctl key revoke: removes the principal, and reports an unknown one", "[client]") {
    const Fixture f;
    REQUIRE(f.run({"key", "create", "one"}).exit_code == 0);
    REQUIRE(f.run({"key", "create", "two"}).exit_code == 0);

    const Ran ran = f.run({"key", "revoke", "one"});
    const Ran again = f.run({"key", "revoke", "one"});

    REQUIRE(ran.exit_code == 0);
    REQUIRE(text_of(f.file).find("one") == std::string::npos);
    REQUIRE_THAT(text_of(f.file), ContainsSubstring("name: two"));
    REQUIRE(again.exit_code == 66);
}

TEST_CASE("fopctl token: a token has the requested rights, and can be revoked", "[client]") {
    const Fixture f;
    const std::string issuer = f.dir / "issuer.key";
    REQUIRE(f.run({"keygen", issuer}).exit_code == 0);

    const Ran made =
        f.run({"token", "create", "--issuer", issuer, "--rights", "read,write", "--principal",
               "one", "--pool", "fast", "--expires", "15min", "--generation", "3"});
    const Ran revoked = f.run({"token", "revoke", made.out.substr(0, made.out.size() - 1)});

    REQUIRE(made.exit_code == 0);
    const auto bytes = fop::parse_token_text(made.out);
    REQUIRE(bytes.has_value());
    const fop::TokenChecker checker(
        {.issuer = fop::Issuer(*fop::parse_key(text_of(issuer))).public_half()});
    constexpr auto kMinute = std::int64_t{60} * 1'000'000'000;
    const auto in_a_while = core::PosixClock().wall().unix_ns + 14 * kMinute;
    const auto token = checker.check(*bytes, {.now = {.unix_ns = in_a_while}, .principal = "one"});
    REQUIRE(token.has_value());
    REQUIRE(token->rights == (fop::kRead | fop::kWrite));
    REQUIRE(token->pool == "fast");
    REQUIRE(token->generation == 3);
    const auto later = in_a_while + 2 * kMinute;
    REQUIRE_FALSE(checker.check(*bytes, {.now = {.unix_ns = later}, .principal = "one"}));
    REQUIRE(revoked.exit_code == 0);
    const std::string id = made.err.substr(made.err.find("token ") + 6, 32);
    REQUIRE(text_of(f.file) == "revoked:\n  tokens:\n    - " + id + "\n");
}

TEST_CASE("fopctl token: one for an object is kept in a file, and revoked by it", "[client]") {
    const Fixture f;
    const std::string issuer = f.dir / "issuer.key";
    const std::string file = f.dir / "token";
    REQUIRE(f.run({"keygen", issuer}).exit_code == 0);

    const Ran made = f.run({"token", "create", "--issuer", issuer, "--rights", "read", "--fid",
                            "0003000000000001000000000000002A", "--out", file});
    const Ran again =
        f.run({"token", "create", "--issuer", issuer, "--rights", "read", "--out", file});
    const Ran revoked = f.run({"token", "revoke", file});

    REQUIRE(made.exit_code == 0);
    REQUIRE(made.out.empty());
    struct stat status{};
    REQUIRE(::stat(file.c_str(), &status) == 0);
    REQUIRE((status.st_mode & 0777) == 0600);
    const auto bytes = fop::parse_token_text(text_of(file));
    REQUIRE(bytes.has_value());
    const auto token = fop::read_unverified(*bytes);
    REQUIRE(token.has_value());
    REQUIRE(fop::fid_of(token->object) ==
            fop::Fid{.high = (std::uint64_t{3} << 48) | 1, .low = 42});
    REQUIRE(again.exit_code == 1);
    REQUIRE(revoked.exit_code == 0);
    REQUIRE(text_of(f.file) == "revoked:\n  tokens:\n    - " + fop::to_hex(token->id) + "\n");
}

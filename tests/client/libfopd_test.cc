// Goal: libfopd does for its callers what fopd.h says: in any number of threads, whatever the
// server does, and without harm to the program it lives in.
// Method: the C++ interface, which goes through the C one, against a server of the same process
// over the loopback device; the C one alone in a program of its own.
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <new>
#include <thread>

#include <pthread.h>

#include "client/fopd.hpp"
#include "client/session_thread.h"
#include "fop/token.h"
#include "tests/catch.h"
#include "tests/client/rpc_server.h"
#include "tests/client/run_program.h"
#include "tests/slowness.h"
#include "tests/temp_dir.h"

namespace fopd::client::testing::libfopd_test {

namespace {

using libfopd::Client;
using libfopd::Outcome;
using libfopd::Status;

const fop::Key kKey = fabric::testing::key_of(7);

fabric::Admission tester() {
    return {.keys = fabric::testing::ring_of({fabric::testing::principal("tester", {kKey})}),
            .unauthenticated = {}};
}

struct Fixture {
    Fixture() : key_file(dir / "key") { write_key(kKey); }

    void write_key(const fop::Key& key) const {
        std::ofstream(key_file) << fop::to_text(key);
        std::filesystem::permissions(key_file, std::filesystem::perms{0600});
    }
    libfopd::Options options(const std::string& address) const {
        libfopd::Options options;
        options.server = address;
        options.key_file = key_file;
        return options;
    }
    Client open() const { return open(options(server.address())); }
    static Client open(const libfopd::Options& options) {
        Client client;
        const Outcome opened = Client::open(options, client);
        CAPTURE(opened.words);
        REQUIRE(opened.status == Status::kOk);
        return client;
    }

    TempDir dir;
    std::string key_file;
    RpcServer server{tester()};
};

// A call that takes a Done, and its outcome.
class Pending {
public:
    libfopd::Done done() {
        return [this](const Outcome& outcome) { promise_.set_value(outcome); };
    }
    bool wait() {
        return future_.wait_for(30s * fopd::testing::kSlowness) == std::future_status::ready;
    }
    Outcome get() {
        REQUIRE(wait());
        return future_.get();
    }
    // For threads: assertions are for one only.
    bool succeeds() { return wait() && future_.get(); }

private:
    std::promise<Outcome> promise_;
    std::future<Outcome> future_ = promise_.get_future();
};

}  // namespace

TEST_CASE("libfopd calls: they wait for their answer, and data comes back", "[client]") {
    const Fixture f;
    const Client client = f.open();
    const std::string from(3000, 'e');
    const std::string large(1'000'000, 'b');
    std::string into(from.size(), '?');
    std::string large_into(large.size(), '?');

    const Outcome connected = client.connected();
    const Outcome pinged = client.ping();
    const Outcome echoed = client.echo(from.data(), into.data(), from.size());
    const Outcome bulk = client.bulk_echo(large.data(), large_into.data(), large.size());

    CAPTURE(connected.words, pinged.words, echoed.words, bulk.words);
    REQUIRE(connected);
    REQUIRE(pinged);
    REQUIRE(echoed);
    REQUIRE(echoed.bytes == from.size());
    REQUIRE(into == from);
    REQUIRE(bulk);
    REQUIRE(bulk.bytes == large.size());
    REQUIRE(large_into == large);
}

TEST_CASE("libfopd calls: many at a time from several threads, each with its own answer",
          "[client]") {
    const Fixture f;
    const Client client = f.open();
    constexpr std::size_t kThreads = 4;
    constexpr std::size_t kEach = 300;
    std::atomic<std::size_t> right = 0;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            std::vector<std::string> from(kEach);
            std::vector<std::string> into(kEach);
            std::vector<Pending> pending(kEach);
            for (std::size_t i = 0; i < kEach; ++i) {
                from[i] = std::string(i % 700, 'x') + std::to_string(t * kEach + i);
                into[i].resize(from[i].size());
                client.echo(from[i].data(), into[i].data(), from[i].size(), {}, pending[i].done());
            }
            for (std::size_t i = 0; i < kEach; ++i) {
                if (pending[i].succeeds() && into[i] == from[i]) ++right;
            }
        });
    }
    for (std::thread& each : threads) each.join();

    REQUIRE(right == kThreads * kEach);
    REQUIRE(f.server.address().starts_with("tcp://127.0.0.1:"));
}

TEST_CASE("libfopd calls: a completion may start the next call", "[client]") {
    const Fixture f;
    const Client client = f.open();
    Pending last;
    Outcome waited;

    client.ping({}, [&](const Outcome&) {
        waited = client.ping();
        client.ping({}, last.done());
    });

    REQUIRE(last.get());
    REQUIRE(waited.status == Status::kInvalid);
}

TEST_CASE("libfopd address: a name is looked up, and each of its addresses is tried", "[client]") {
    const Fixture f;
    const std::string port = f.server.address().substr(f.server.address().rfind(':'));
    const Client client = Fixture::open(f.options("tcp://localhost" + port));

    const Outcome connected = client.connected();

    CAPTURE(connected.words);
    REQUIRE(connected);
}

TEST_CASE("libfopd address: no listener or an unknown host is unreachable, with the address",
          "[client]") {
    const Fixture f;
    const std::string address =
        GENERATE(as<std::string>{}, "tcp://127.0.0.1:1", "tcp://no-such-host.invalid:31470");
    const Client client = Fixture::open(f.options(address));

    const Outcome connected = client.connected();
    libfopd::Call short_call;
    short_call.timeout = std::chrono::milliseconds(50);
    const Outcome pinged = client.ping(short_call);

    REQUIRE(connected.status == Status::kUnreachable);
    REQUIRE(connected.words.starts_with(address + ": "));
    REQUIRE(pinged.status == Status::kUnreachable);
}

TEST_CASE("libfopd options: invalid options are refused at once", "[client]") {
    Fixture f;
    struct Row {
        const char* server;
        const char* user;
        const char* job;
        const char* words;
    };
    const Row row = GENERATE(Row{"", "", "", "scheme"}, Row{"127.0.0.1", "", "", "scheme"},
                             Row{"mem://host:1", "", "", "tcp://"},
                             Row{"tcp://127.0.0.1:1", "a\nb", "", "user"},
                             Row{"tcp://127.0.0.1:1", "", "a\nb", "job"});
    libfopd::Options options = f.options(row.server);
    options.user = row.user;
    options.job = row.job;
    Client client;

    const Outcome opened = Client::open(options, client);

    CAPTURE(row.server, opened.words);
    REQUIRE(opened.status == Status::kInvalid);
    REQUIRE_FALSE(opened.words.empty());
    REQUIRE(client.ping().status == Status::kInvalid);
}

TEST_CASE("libfopd texts: one with a NUL in it is refused, and not taken for a shorter one",
          "[client]") {
    const Fixture f;
    const Client client = f.open();
    const std::string text("a\0b", 3);
    const auto is_refused = [](const Outcome& outcome, const std::string& what) {
        CHECK(outcome.status == Status::kInvalid);
        CHECK(outcome.words == "the " + what + " has a NUL in it");
    };
    libfopd::Object object;
    libfopd::Listing of_pool;
    of_pool.pool = text;
    libfopd::Listing of_prefix;
    of_prefix.prefix = text;
    libfopd::NewObject named;
    named.name = text;
    libfopd::NewObject grouped;
    grouped.name = "name";
    grouped.group = text;
    libfopd::Attributes owner;
    owner.owner = text;
    libfopd::Attributes group;
    group.group = text;
    libfopd::Call of_job;
    of_job.job = text;
    libfopd::Space space;
    std::vector<libfopd::QuotaUse> uses;
    char byte = 0;

    is_refused(client.remove("pool", text), "name");
    is_refused(client.remove(text, "name"), "pool");
    is_refused(client.rename("pool", "name", text, false), "new name");
    is_refused(client.get("pool", text, &byte, 1), "name");
    is_refused(client.lookup("pool", text, &object), "name");
    is_refused(client.put(named, &byte, 1, nullptr), "name");
    is_refused(client.put(grouped, &byte, 1, nullptr), "group");
    is_refused(client.set_attributes({1, 1}, owner), "owner");
    is_refused(client.set_attributes({1, 1}, group), "group");
    is_refused(client.list(&of_pool), "pool");
    is_refused(client.list(&of_prefix), "prefix");
    is_refused(client.statfs(text, &space), "pool");
    is_refused(client.quota(text, &uses), "pool");
    is_refused(client.ping(of_job), "job");
    Pending removed;
    client.remove("pool", text, {}, removed.done());
    is_refused(removed.get(), "name");
    Pending found;
    client.lookup("pool", text, &object, {}, found.done());
    is_refused(found.get(), "name");
    Pending counted;
    client.quota(text, &uses, {}, counted.done());
    is_refused(counted.get(), "pool");
    Client other;
    libfopd::Options options = f.options("tcp://127.0.0.1:1");
    options.user = text;
    is_refused(Client::open(options, other), "user");
}

TEST_CASE("libfopd texts: a pool or job that is no name is refused, and its words say which",
          "[client]") {
    const Fixture f;
    const Client client = f.open();
    const std::string text(256, 'p');
    libfopd::Call of_job;
    of_job.job = text;

    const Outcome removed = client.remove(text, "name");
    const Outcome pinged = client.ping(of_job);

    REQUIRE(removed.status == Status::kInvalid);
    REQUIRE(removed.words.starts_with("the pool \"ppp"));
    REQUIRE(pinged.status == Status::kInvalid);
    REQUIRE(pinged.words.starts_with("the job \"ppp"));
}

TEST_CASE("libfopd key: a bad key file names the file and quotes none of it", "[client]") {
    const Fixture f;
    const std::string text = GENERATE(as<std::string>{}, "", "secret", std::string(63, 'a'),
                                      std::string(600, 'a'), std::string(64, 'g'));
    std::ofstream(f.key_file) << text;
    Client client;

    const Outcome opened = Client::open(f.options(f.server.address()), client);

    REQUIRE(opened.status == Status::kInvalid);
    REQUIRE(opened.words.starts_with("key file " + f.key_file + ": "));
    REQUIRE((text.empty() || opened.words.find(text) == std::string::npos));
}

TEST_CASE("libfopd key: one the server does not know is denied, for good", "[client]") {
    const Fixture f;
    f.write_key(fabric::testing::key_of(8));
    const Client client = f.open();

    const Outcome connected = client.connected();
    const Outcome pinged = client.ping();

    REQUIRE(connected.status == Status::kDenied);
    REQUIRE(pinged.status == Status::kDenied);
    REQUIRE_FALSE(pinged.words.empty());
}

// -- tokens --

TEST_CASE("libfopd token: it goes with each call, given as itself or as its file", "[client]") {
    Fixture f;
    const auto token = fop::Issuer(kKey).sign({.rights = fop::kRead});
    const std::string text = fop::token_to_text(token);
    libfopd::Options options = f.options(f.server.address());
    options.token = GENERATE(true, false) ? text : std::string(f.dir / "token");
    if (options.token != text) std::ofstream(options.token) << text << '\n';
    const Client client = Fixture::open(options);
    REQUIRE(client.connected());
    f.server.hold();
    libfopd::Object object;
    libfopd::Call call;
    call.timeout = 1s;
    std::promise<void> ended;
    const auto done = [&](const Outcome&) { ended.set_value(); };

    if (GENERATE(true, false)) {
        client.ping({}, done);
    } else {
        client.lookup("", "name", &object, call, done);
    }

    REQUIRE(f.server.wait_held(1));
    REQUIRE(f.server.held_token() == token);
    f.server.release();
    ended.get_future().wait();
}

TEST_CASE("libfopd token: options of an older program, without the field, send none", "[client]") {
    Fixture f;
    const std::string server = f.server.address();
    fopd_options options;
    fopd_options_init(&options);
    options.size = offsetof(fopd_options, token);
    options.server = server.c_str();
    options.key_file = f.key_file.c_str();
    options.token = "what stands behind an older program's options";
    fopd_client* client = nullptr;
    REQUIRE(fopd_open(&options, &client, nullptr) == FOPD_OK);
    REQUIRE(fopd_ping_wait(client, nullptr, nullptr) == FOPD_OK);
    fopd_close(client);
}

TEST_CASE("libfopd token: an invalid token is reported, and not quoted", "[client]") {
    const Fixture f;
    libfopd::Options options = f.options(f.server.address());
    const std::string text = fop::token_to_text(fop::Issuer(kKey).sign({.rights = fop::kRead}));
    const std::array given{text.substr(0, 140), std::string(400, 'A'), f.dir / "none",
                           f.dir / "bad"};
    options.token = given[GENERATE(0U, 1U, 2U, 3U)];
    std::ofstream(f.dir / "bad") << text.substr(1);
    Client client;

    const Outcome opened = Client::open(options, client);

    REQUIRE(opened.status == Status::kInvalid);
    REQUIRE(opened.words.starts_with("token: "));
    const bool names_file = opened.words.find(options.token) != std::string::npos;
    REQUIRE(names_file == (options.token.front() == '/'));
    REQUIRE(opened.words.find(text.substr(1, 40)) == std::string::npos);
}

TEST_CASE("libfopd key: no key is needed by a server without authentication", "[client]") {
    fabric::Admission admission = tester();
    admission.unauthenticated = fop::kRead;
    RpcServer server(std::move(admission));
    libfopd::Options options;
    options.server = server.address();
    const Client client = Fixture::open(options);

    REQUIRE(client.ping());
}

TEST_CASE("libfopd timeout: a call ends in time, and the server's words are made safe",
          "[client]") {
    Fixture f;
    const Client client = f.open();
    REQUIRE(client.connected());
    f.server.hold();
    libfopd::Call short_call;
    // Long enough for the call to reach the server.
    short_call.timeout = 300ms * fopd::testing::kSlowness;
    std::string byte = "x";
    Pending held;

    const Outcome late = client.echo(byte.data(), byte.data(), 1, short_call);
    client.echo(byte.data(), byte.data(), 1, {}, held.done());
    REQUIRE(f.server.wait_held(2));
    f.server.release();

    REQUIRE(late.status == Status::kTimedOut);
    const Outcome busy = held.get();
    REQUIRE(busy.status == Status::kTryAgain);
    REQUIRE(busy.words == "it was \\x1b held");
}

TEST_CASE("libfopd close: calls in flight end, and all memory is freed", "[client]") {
    Fixture f;
    Client client = f.open();
    REQUIRE(client.connected());
    f.server.hold();
    std::string byte = "x";
    std::string byte_into = "y";
    std::array<Pending, 3> pending;
    client.echo(byte.data(), byte.data(), 1, {}, pending[0].done());
    client.bulk_echo(byte.data(), byte_into.data(), 1, {}, pending[1].done());
    REQUIRE(f.server.wait_held(2));
    client.echo(byte.data(), byte.data(), 1, {}, pending[2].done());

    client.close();

    for (Pending& each : pending) REQUIRE(each.get().status == Status::kClosed);
    REQUIRE(client.ping().status == Status::kInvalid);
}

TEST_CASE("libfopd close: at any moment of connecting", "[client]") {
    const Fixture f;
    for (int i = 0; i < 50; ++i) {
        Client client = f.open();
        Pending pending;
        if (i % 2 == 0) client.connected({}, pending.done());
        if (i % 3 == 0) std::this_thread::yield();
        client.close();
        if (i % 2 == 0) REQUIRE(pending.wait());
    }
}

TEST_CASE("libfopd close: from the library's own thread", "[client]") {
    Fixture f;
    Client client = f.open();
    REQUIRE(client.connected());
    f.server.hold();
    std::string byte = "x";
    Pending under_way;
    client.echo(byte.data(), byte.data(), 1, {}, under_way.done());
    REQUIRE(f.server.wait_held(1));

    client.connected({}, [&](const Outcome&) { client.close(); });

    REQUIRE(under_way.get().status == Status::kClosed);
    REQUIRE(f.server.wait_sessions(0));
}

TEST_CASE("libfopd restart: calls go on when the server is there again", "[client]") {
    Fixture f;
    const Client client = f.open();
    REQUIRE(client.ping());

    f.server.stop();
    Pending pending;
    client.ping({}, pending.done());
    f.server.start(tester(), 2, f.server.address());

    REQUIRE(pending.get());
}

TEST_CASE("libfopd host program: its signals are its own", "[client]") {
    const Fixture f;
    sigset_t before;
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    const Client client = f.open();
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    sigset_t inside;
    Pending pending;

    client.ping({}, [&, done = pending.done()](const Outcome& outcome) {
        pthread_sigmask(SIG_SETMASK, nullptr, &inside);
        done(outcome);
    });

    REQUIRE(pending.get());
    REQUIRE(sigismember(&inside, SIGTERM) == 1);
    REQUIRE(sigismember(&inside, SIGPIPE) == 1);
    REQUIRE(sigismember(&before, SIGTERM) == sigismember(&after, SIGTERM));
}

namespace {

class NoMemory final : public fabric::Transport {
public:
    const char* name() const override { return "none"; }
    Result<std::unique_ptr<fabric::TransferMachine>> make_machine(
        core::Reactor&, fabric::MessageUser&, const fabric::MachineOptions&) override {
        throw std::bad_alloc();
    }
    Result<std::unique_ptr<fabric::Acceptor>> listen(core::Reactor&, const fabric::Address&,
                                                     fabric::RequestUser&,
                                                     const fabric::AcceptorOptions&) override {
        throw std::bad_alloc();
    }
};

class Noted final : public Operation {
public:
    void done(Ended ended) noexcept override { promise.set_value(std::move(ended)); }
    std::promise<Ended> promise;
};

}  // namespace

TEST_CASE("libfopd: a program of version 0.1.0 gets no more than its options", "[client]") {
    fopd_options options;
    std::memset(&options, 0xff, sizeof(options));
    (fopd_options_init)(&options);  // The function that such a program calls, not the macro.
    REQUIRE(options.size == offsetof(fopd_options, explain));
    REQUIRE(options.explain == -1);

    fopd_options_init(&options);
    REQUIRE(options.size == sizeof(options));
    REQUIRE(options.explain == 0);
}

TEST_CASE("libfopd host program: no memory on the library's thread ends calls, not the program",
          "[client]") {
    SessionThread::World world;
    world.make_transport = [](core::EventSink&, core::Entropy&) {
        return std::make_unique<NoMemory>();
    };
    auto thread = SessionThread::start(
        {{.server = *fabric::parse_address("tcp://127.0.0.1:1"), .credentials = {}}}, world);
    REQUIRE(thread.has_value());
    Noted operation;

    (*thread)->submit(operation);
    const Ended ended = operation.promise.get_future().get();
    SessionThread::stop(*thread);

    REQUIRE(ended.status == fop::Status::kNoSpace);
}

TEST_CASE("libfopd installed: C and C++17 programs use the shared library", "[client]") {
    const Fixture f;
    const char* const program = GENERATE(LIBFOPD_C, LIBFOPD_CPP);

    const Ran ran = run_program({program, f.server.address(), f.key_file});

    CAPTURE(program, ran.out, ran.err);
    REQUIRE(ran.exit_code == 0);
}

}  // namespace fopd::client::testing::libfopd_test

// Goal: a view store never has a view that it denied, and tells when it does not know. Method: one
// suite for all kinds of stores; then a file in memory that fails before or after it has the new
// bytes, and a real one. etcd itself is in etcd_server_test.cc.

#include <optional>
#include <utility>

#include "eh/etcd/etcd_view_store.h"
#include "eh/posix_small_file.h"
#include "eh/static_view_store.h"
#include "sim/epochs/simulated_view_store.h"
#include "tests/catch.h"
#include "tests/eh/fake_etcd.h"
#include "tests/eh/memory_file.h"
#include "tests/eh/view_store_suite.h"
#include "tests/temp_dir.h"

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::testing;

namespace {

class StaticStage final : public StoreStage {
public:
    std::vector<StoreUser*> users() override { return {&life_->user}; }
    void restart() override { life_.emplace(file); }
    StoreUser& user() { return life_->user; }

    MemoryFile file;

private:
    struct Life {
        explicit Life(MemoryFile& of)
            : store(of), user(store, [&of](StoreUser&) { of.finish(); }) {}
        StaticViewStore store;
        StoreUser user;
    };
    std::optional<Life> life_{std::in_place, file};
};

class SimulatedStage final : public StoreStage {
public:
    explicit SimulatedStage(std::uint64_t seed)
        : harness_(core::testing::Kind::kVirtual), shared(*harness_.world(), seed) {
        SimulatedStage::restart();
    }
    ~SimulatedStage() override { stop(); }
    std::vector<StoreUser*> users() override { return {&lives_[0]->user, &lives_[1]->user}; }
    void restart() override {
        stop();
        for (auto& life : lives_) life.emplace(shared, harness_);
    }
    core::VirtualWorld& world() { return *harness_.world(); }

private:
    struct Life {
        Life(sim::SimulatedViewRegister& shared, core::testing::Harness& harness)
            : store(shared, harness.reactor()), user(store, [&harness](StoreUser& of) {
                  harness.run(of.answer(&harness.reactor()));
              }) {}
        sim::SimulatedViewStore store;
        StoreUser user;
    };
    void stop() {
        for (auto& life : lives_) {
            if (life) harness_.run(life->store.stop());
        }
    }

    core::testing::Harness harness_;

public:
    sim::SimulatedViewRegister shared;

private:
    std::array<std::optional<Life>, 2> lives_;
};

// The store of etcd in virtual time, over etcd as the gateway's pages describe it.
class FakeEtcdStage final : public StoreStage {
public:
    FakeEtcdStage() : harness_(core::testing::Kind::kVirtual) {
        offload_ = core::make_virtual_offload(*harness_.world(), {});
        FakeEtcdStage::restart();
    }
    ~FakeEtcdStage() override { stop(); }
    std::vector<StoreUser*> users() override { return {&lives_[0]->user, &lives_[1]->user}; }
    void restart() override {
        stop();
        for (auto& life : lives_) life.emplace(*this);
    }

private:
    struct Life {
        explicit Life(FakeEtcdStage& stage)
            : store({.endpoints = {"http://one:2379"}}, stage.etcd_, stage.clock_, stage.events_,
                    stage.harness_.reactor(), *stage.offload_),
              user(store, [&stage](StoreUser& of) {
                  stage.harness_.run(of.answer(&stage.harness_.reactor()));
              }) {}
        EtcdViewStore store;
        StoreUser user;
    };
    void stop() {
        for (auto& life : lives_) {
            if (life) CHECK(harness_.run(life->store.stop(kNever)));
        }
        etcd_.resume();
    }

    core::testing::Harness harness_;
    ManualClock clock_;
    core::NullEventSink events_;
    FakeEtcd etcd_{clock_};
    std::unique_ptr<core::Offload> offload_;
    std::array<std::optional<Life>, 2> lives_;
};

}  // namespace

TEST_CASE("eh store: each kind keeps the newest of views that follow each other", "[eh]") {
    SECTION("in a file") {
        StaticStage stage;
        check_view_store(stage, false);
    }
    SECTION("simulated") {
        SimulatedStage stage(3);
        check_view_store(stage, true);
    }
    SECTION("in etcd, simulated") {
        FakeEtcdStage stage;
        check_view_store(stage, true);
    }
}

TEST_CASE("eh store: an error says whether the view may have been written", "[eh]") {
    StaticStage stage;
    MemoryFile& file = stage.file;
    StoreUser& user = stage.user();
    REQUIRE(user.swap(0, 1) == Swapped::kYes);

    file.fails_before = true;
    CHECK(user.swap(1, 2) == Swapped::kNo);
    CHECK((*user.read())->view().writer.attempt == 1);
    file.fails_before = false;
    file.fails_after = true;
    CHECK(user.swap(1, 3) == Swapped::kUnknown);
    CHECK((*user.read())->view().writer.attempt == 3);

    file.fails_read = true;
    CHECK_FALSE(user.read());
    CHECK(user.swap(2, 4) == Swapped::kUnknown);
    file.fails_read = false;
    file.bytes->pop_back();
    CHECK(user.read().error().code == Errc::kCorrupt);
}

TEST_CASE("eh store: the simulated one fails as its seed says, and keeps its word", "[eh]") {
    std::array<std::uint64_t, 3> outcomes{};
    std::uint64_t failed_reads = 0;
    std::uint64_t late = 0;
    std::uint64_t settled = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        CAPTURE(seed);
        SimulatedStage stage(seed);
        stage.shared.set_faults({.failed_ppm = 100'000,
                                 .lost_ppm = 100'000,
                                 .unknown_ppm = 150'000,
                                 .late_ppm = 150'000});
        // What each attempt was told, by its number.
        std::vector<Swapped> told;
        ViewNumber number = 0;
        for (std::uint64_t attempt = 0; attempt < 20; ++attempt) {
            StoreUser* const user = stage.users()[attempt % 2];
            if (const auto read = user->read()) {
                number = *read == nullptr ? 0 : (*read)->number();
            } else {
                ++failed_reads;
            }
            told.push_back(user->swap(number, attempt));
            ++outcomes[static_cast<std::size_t>(told.back())];
            // It is tried once more, as whoever wants certainty does.
            if (told.back() != Swapped::kUnknown || attempt % 3 != 0) continue;
            told.back() = user->swap(number, attempt);
            settled += told.back() == Swapped::kUnknown ? 0U : 1U;
        }
        const std::size_t at_once = stage.shared.history().size();
        stage.world().run_for(20s);
        late += stage.shared.history().size() - at_once;

        std::vector<bool> is_written(told.size());
        ViewNumber last = 0;
        for (const ViewHandle& view : stage.shared.history()) {
            CHECK(view->number() == ++last);
            is_written[view->view().writer.attempt] = true;
        }
        for (std::size_t i = 0; i < told.size(); ++i) {
            CAPTURE(i);
            if (told[i] == Swapped::kYes) CHECK(is_written[i]);
            if (told[i] == Swapped::kNo) CHECK_FALSE(is_written[i]);
        }
    }
    for (const std::uint64_t outcome : outcomes) CHECK(outcome > 100);
    CHECK(failed_reads > 100);
    CHECK(late > 10);
    CHECK(settled > 100);
}

TEST_CASE("eh store: while the simulated one is away, it denies all calls", "[eh]") {
    SimulatedStage stage(1);
    stage.shared.break_until(stage.world().now() + 1s);
    CHECK_FALSE(stage.users()[0]->read());
    CHECK(stage.users()[1]->swap(0, 1) == Swapped::kNo);
    stage.world().run_for(1s);
    CHECK(stage.users()[1]->swap(0, 1) == Swapped::kYes);
    CHECK(stage.users()[0]->read().value()->number() == 1);
}

TEST_CASE("eh store: a file is replaced as a whole", "[eh]") {
    const TempDir dir;
    const std::string path = dir / "epochs";
    const auto bytes = [](std::size_t size, int value) {
        return std::vector<std::byte>(size, static_cast<std::byte>(value));
    };
    CHECK(read_small_file(path).error().code == Errc::kNotFound);
    REQUIRE(replace_small_file(path, bytes(200'000, 7)));
    CHECK(read_small_file(path).value() == bytes(200'000, 7));
    REQUIRE(replace_small_file(path, bytes(10, 8)));
    CHECK(read_small_file(path).value() == bytes(10, 8));
    const auto failed = replace_small_file(dir / "missing/epochs", bytes(1, 1));
    REQUIRE_FALSE(failed);
    CHECK(failed.error().has_old_bytes);
}

// -- a file system that hangs --

namespace {

// A thread that is stuck in its first call until it is let go.
class StuckOffload final : public core::Offload {
public:
    Result<void> grow(unsigned) override { return {}; }
    bool submit(Job& job) override {
        job_ = &job;
        return true;
    }
    void let_go() {
        Job& job = *std::exchange(job_, nullptr);
        job.run(job);
        job.home.post(job.done);
    }

private:
    Job* job_ = nullptr;
};

class NoUser final : public SmallFileUser {
public:
    void on_file_read(Result<std::vector<std::byte>>) override {}
    void on_file_replaced(Replaced replaced) override { outcome = replaced; }
    std::optional<Replaced> outcome;
};

}  // namespace

TEST_CASE("eh small file: close waits until its deadline for a call that hangs", "[eh]") {
    const TempDir directory;
    core::VirtualWorld world(1);
    const auto reactor = world.make_reactor();
    StuckOffload offload;
    NoUser user;
    PosixSmallFile file(*reactor, offload, directory / "file");
    file.replace({std::byte{7}}, user);
    world.run_for(1s);

    const Instant deadline = after(world.now(), 2s);
    const auto closed = world.run(*reactor, file.close(deadline));
    REQUIRE(closed.has_value());
    CHECK_FALSE(*closed);
    CHECK(world.now() == deadline);

    offload.let_go();
    const auto closed_later = world.run(*reactor, file.close(after(world.now(), 2s)));
    REQUIRE(closed_later.has_value());
    CHECK(*closed_later);
    CHECK(user.outcome.has_value());
}

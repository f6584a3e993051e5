#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/poll_backend.h"
#include "core/reactor.h"
#include "core/uring_backend.h"
#include "core/virtual_world.h"
#include "tests/replay.h"
#include "tests/slowness.h"

namespace fopd::fabric::testing {

// The real worlds have reactors over poll(2), or over io_uring.
enum class World : std::uint8_t { kVirtual, kReal, kRealUring };

// A reactor, and the way it is run: by the test in virtual time, or by a thread of its own. Tests
// touch objects of the reactor in run() and wait() only.
class Loop {
public:
    virtual ~Loop() = default;
    virtual core::Reactor& reactor() = 0;
    // Calls `job` on the reactor's thread, and throws an exception of `job` again here.
    virtual void run(const std::function<void()>& job) = 0;
    // Runs the reactor until `holds` is true, which is called on the reactor's thread. False: it
    // never becomes true.
    virtual bool wait(const std::function<bool()>& holds) = 0;
    // The reactor has no turn until resume(); what is sent to it waits.
    virtual void pause() = 0;
    virtual void resume() = 0;
};

// The world of a test: its failures say how to have them again.
class ReplayedWorld final : fopd::testing::Replay, public core::VirtualWorld {
public:
    explicit ReplayedWorld(std::uint64_t seed) : Replay(seed), VirtualWorld(seed) {}
};

class VirtualLoop final : public Loop {
public:
    explicit VirtualLoop(core::VirtualWorld& world)
        : world_(world), reactor_(world.make_reactor()) {}

    core::Reactor& reactor() override { return *reactor_; }
    void run(const std::function<void()>& job) override { job(); }
    bool wait(const std::function<bool()>& holds) override {
        const Instant limit = after(world_.now(), 1000s);
        while (!holds()) {
            if (!world_.step(limit)) return holds();
        }
        return true;
    }
    void pause() override { world_.stall(*reactor_, kNever); }
    void resume() override { world_.stall(*reactor_, Instant::min()); }

private:
    core::VirtualWorld& world_;
    std::unique_ptr<core::Reactor> reactor_;
};

class RealLoop final : public Loop {
public:
    explicit RealLoop(World world = World::kReal)
        : reactor_(make_reactor(world)), thread_([this] { reactor_->run(); }) {}
    ~RealLoop() override {
        run([this] { reactor_->stop(); });
        thread_.join();
    }
    RealLoop(const RealLoop&) = delete;
    RealLoop& operator=(const RealLoop&) = delete;

    core::Reactor& reactor() override { return *reactor_; }
    void run(const std::function<void()>& job) override {
        if (std::this_thread::get_id() == thread_.get_id()) return job();
        Job message(job);
        std::future<void> finished = message.done.get_future();
        reactor_->post(message);
        finished.get();
    }
    bool wait(const std::function<bool()>& holds) override {
        Watch watch(holds);
        std::future<void> seen = watch.seen.get_future();
        run([&] { reactor_->add_poller(watch); });
        const bool held = seen.wait_for(kPatience) == std::future_status::ready;
        run([&] { reactor_->remove_poller(watch); });
        return held;
    }
    void pause() override {
        pause_.emplace();
        std::future<void> begun = pause_->begun.get_future();
        reactor_->post(*pause_);
        begun.get();
    }
    void resume() override {
        if (!pause_) return;
        pause_->end.set_value();
        run([] {});
        pause_.reset();
    }

private:
    // Longer than anything takes on a machine that has other things to do.
    static constexpr auto kPatience = std::chrono::seconds(30 * fopd::testing::kSlowness);

    static std::unique_ptr<core::Reactor> make_reactor(World world) {
        static const core::PosixClock kClock;
        static core::NullEventSink events;
        auto backend = world == World::kRealUring ? core::make_uring_backend(kClock, events)
                                                  : core::make_poll_backend(kClock);
        if (!backend) throw std::runtime_error(describe(backend.error()));
        return std::make_unique<core::Reactor>(std::move(*backend));
    }

    struct Job : core::Message {
        explicit Job(const std::function<void()>& call) : Message(&deliver), job(call) {}
        static void deliver(core::Message& message) {
            auto& self = static_cast<Job&>(message);
            // The message is gone as soon as it is said to be done.
            std::promise<void> finished = std::move(self.done);
            try {
                self.job();
                finished.set_value();
            } catch (...) {
                finished.set_exception(std::current_exception());
            }
        }
        const std::function<void()>& job;
        std::promise<void> done;
    };

    struct Watch final : core::Poller {
        explicit Watch(const std::function<bool()>& condition) : holds(condition) {}
        bool poll() override {
            check();
            return false;
        }
        void end_of_turn() override { check(); }
        Duration sleep_max() override { return Duration::max(); }
        void check() {
            if (told || !holds()) return;
            told = true;
            seen.set_value();
        }
        const std::function<bool()>& holds;
        bool told = false;
        std::promise<void> seen;
    };

    struct Pause : core::Message {
        Pause() : Message(&deliver) {}
        static void deliver(core::Message& message) {
            auto& self = static_cast<Pause&>(message);
            self.begun.set_value();
            self.ended.wait();
        }
        std::promise<void> begun;
        std::promise<void> end;
        std::future<void> ended = end.get_future();
    };

    std::unique_ptr<core::Reactor> reactor_;
    std::optional<Pause> pause_;
    std::thread thread_;
};

}  // namespace fopd::fabric::testing

// Measures the operations that all other code is built on: tasks, messages between cores, timers,
// checksums, io_uring.
//
//     bench_core [--json]
//
// prints a small table, or one JSON object; under 60 seconds. Each figure is a median of rounds.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <liburing.h>
#include <unistd.h>

#include "bench/measure.h"
#include "core/clock.h"
#include "core/crc32c.h"
#include "core/histogram.h"
#include "core/random.h"
#include "core/reactor.h"
#include "core/remote.h"
#include "core/uring_backend.h"

namespace fopd::core {
namespace {

using bench::cpu_model;
using bench::kClock;
using bench::kernel_release;
using bench::median;
using bench::pin_to;
using bench::quoted;

NullEventSink no_events;

// Nanoseconds for each of `count` operations of `run`, the median of several rounds.
double measure(int rounds, std::uint64_t count, const std::function<void()>& run) {
    std::vector<double> ns;
    for (int round = 0; round < rounds; ++round) {
        const Instant start = kClock.now();
        run();
        ns.push_back(static_cast<double>((kClock.now() - start).count()) /
                     static_cast<double>(count));
    }
    return median(std::move(ns));
}

std::unique_ptr<Reactor> make_reactor(ReactorOptions options = {}, UringOptions uring = {}) {
    auto backend = make_uring_backend(kClock, no_events, uring);
    if (!backend) {
        std::fprintf(stderr, "bench_core: %s\n", explain_no_uring(backend.error()).c_str());
        std::exit(1);
    }
    return std::make_unique<Reactor>(std::move(*backend), options);
}

// -- tasks --

constexpr std::uint64_t kTasks = 2'000'000;

[[gnu::noinline]] Task<std::uint64_t> add_one(std::uint64_t value) {
    co_return value + 1;
}

[[gnu::noinline]] Task<std::uint64_t> add_one_later(Reactor* reactor, std::uint64_t value) {
    co_await reactor->yield();
    co_return value + 1;
}

Task<std::uint64_t> await_many() {
    std::uint64_t value = 0;
    for (std::uint64_t i = 0; i < kTasks; ++i) value = co_await add_one(value);
    co_return value;
}

Task<std::uint64_t> await_many_later(Reactor* reactor) {
    std::uint64_t value = 0;
    for (std::uint64_t i = 0; i < kTasks / 4; ++i) value = co_await add_one_later(reactor, value);
    co_return value;
}

Task<void> end_at_once() {
    co_return;
}

Task<void> spawn_many(Reactor* reactor) {
    Gate gate;
    for (std::uint64_t i = 0; i < kTasks / 4; i += 64) {
        for (int each = 0; each < 64; ++each) reactor->spawn(gate, end_at_once());
        co_await reactor->yield();
    }
    co_await gate.close(*reactor);
}

struct TaskCosts {
    double await_ns;
    double suspend_ns;
    double spawn_ns;
};

TaskCosts measure_tasks() {
    const auto reactor = make_reactor();
    return {
        .await_ns = measure(7, kTasks, [&] { reactor->run_until_done(await_many()); }),
        .suspend_ns = measure(7, kTasks / 4,
                              [&] { reactor->run_until_done(await_many_later(reactor.get())); }),
        .spawn_ns =
            measure(7, kTasks / 4, [&] { reactor->run_until_done(spawn_many(reactor.get())); }),
    };
}

// -- messages between cores --

struct Stop final : Message {
    explicit Stop(Reactor& owner) : Message(&deliver), reactor(owner) {}
    static void deliver(Message& message) { static_cast<Stop&>(message).reactor.stop(); }
    Reactor& reactor;
};

// With a `pause` between the round trips both reactors fall asleep each time.
Task<void> ping(Reactor* here, Reactor* there, int rounds, Duration pause, Histogram* times) {
    std::uint64_t count = 0;
    auto job = [&count] { return ++count; };
    for (int i = 0; i < rounds; ++i) {
        if (pause > Duration{}) {
            const auto slept = co_await here->sleep_for(pause);
            ENSURE(slept.has_value());
        }
        const Instant start = kClock.now();
        const auto answer = co_await run_on(*here, *there, job);
        ENSURE(answer == count);
        times->record(kClock.now() - start);
    }
}

struct RoundTrip {
    double p50_us;
    double p99_us;
};

RoundTrip of(const Histogram& times) {
    return {.p50_us = static_cast<double>(times.percentile(0.5)) / 1000,
            .p99_us = static_cast<double>(times.percentile(0.99)) / 1000};
}

RoundTrip measure_round_trip(Duration spin, int rounds, Duration pause) {
    pin_to(0);
    const auto here = make_reactor({.spin = spin});
    const auto there = make_reactor({.spin = spin});
    std::thread other([&there] {
        pin_to(1);
        there->run();
    });
    Histogram warm_up;
    here->run_until_done(ping(here.get(), there.get(), rounds / 10, pause, &warm_up));
    Histogram times;
    here->run_until_done(ping(here.get(), there.get(), rounds, pause, &times));
    Stop stop(*there);
    there->post(stop);
    other.join();
    return of(times);
}

// Measures the same round trip with two threads that wake each other by pipes: the cost of sleep
// and wake-up in the kernel and the machine alone.
RoundTrip measure_bare_round_trip(int rounds, Duration pause) {
    std::array<int, 2> forth{};
    std::array<int, 2> back{};
    ENSURE(::pipe(forth.data()) == 0 && ::pipe(back.data()) == 0);
    std::thread other([&] {
        pin_to(1);
        for (char byte = 0; ::read(forth[0], &byte, 1) == 1;)
            ENSURE(::write(back[1], &byte, 1) == 1);
    });
    pin_to(0);
    Histogram times;
    for (int i = 0; i < rounds; ++i) {
        std::this_thread::sleep_for(pause);
        char byte = 0;
        const Instant start = kClock.now();
        ENSURE(::write(forth[1], &byte, 1) == 1 && ::read(back[0], &byte, 1) == 1);
        times.record(kClock.now() - start);
    }
    ::close(forth[1]);
    other.join();
    for (const int fd : {forth[0], back[0], back[1]}) ::close(fd);
    return of(times);
}

// -- timers --

struct TimerCosts {
    std::size_t count;
    double arm_ns;
    double cancel_ns;
    double fire_ns;
};

TimerCosts measure_timers(std::size_t count) {
    const std::size_t repeats = std::max<std::size_t>(1, 200'000 / count);
    std::vector<double> arm_ns;
    std::vector<double> cancel_ns;
    std::vector<double> fire_ns;
    Random random(1);
    std::vector<std::unique_ptr<Timer>> timers;
    for (std::size_t i = 0; i < count; ++i) {
        timers.push_back(std::make_unique<Timer>([](Timer&) {}));
    }
    std::vector<std::uint64_t> deadlines(count);
    for (auto& each : deadlines) each = random.below(1'000'000'000);
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);

    TimerHeap heap;
    const auto arm_all = [&] {
        for (std::size_t i = 0; i < count; ++i) {
            heap.arm(*timers[i], Instant{Duration{deadlines[i]}});
        }
    };
    const auto per_timer = [&](Duration span) {
        return static_cast<double>(span.count()) / static_cast<double>(count);
    };
    for (std::size_t repeat = 0; repeat < repeats + 2; ++repeat) {
        const Instant start = kClock.now();
        arm_all();
        const Instant armed = kClock.now();
        for (const std::size_t i : order) timers[i]->disarm();
        const Instant cancelled = kClock.now();
        arm_all();
        const Instant again = kClock.now();
        while (heap.fire_next(kNever)) {
        }
        const Instant fired = kClock.now();
        arm_ns.push_back(per_timer(armed - start));
        cancel_ns.push_back(per_timer(cancelled - armed));
        fire_ns.push_back(per_timer(fired - again));
    }
    return {.count = count,
            .arm_ns = median(std::move(arm_ns)),
            .cancel_ns = median(std::move(cancel_ns)),
            .fire_ns = median(std::move(fire_ns))};
}

// -- io_uring --

constexpr std::uint64_t kNops = 400'000;

// The least one can do: submit a no-op for each that completed, with the reactor's flags.
double bare_nops_per_s(unsigned depth) {
    io_uring ring{};
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                   IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    params.cq_entries = 4096;
    if (io_uring_queue_init_params(512, &ring, &params) != 0) {
        params.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
        if (io_uring_queue_init_params(512, &ring, &params) != 0) return 0;
    }
    io_uring_register_ring_fd(&ring);
    const auto prepare = [&ring] {
        io_uring_sqe* const sqe = io_uring_get_sqe(&ring);
        io_uring_prep_nop(sqe);
        io_uring_sqe_set_data64(sqe, 1);
    };
    const Instant start = kClock.now();
    for (unsigned i = 0; i < depth; ++i) prepare();
    std::uint64_t done = 0;
    std::array<io_uring_cqe*, 64> batch;
    while (done < kNops) {
        io_uring_submit_and_wait(&ring, 1);
        for (;;) {
            const unsigned count = io_uring_peek_batch_cqe(&ring, batch.data(), batch.size());
            for (unsigned i = 0; i < count; ++i) {
                if (batch[i]->res != 0) std::exit(1);
            }
            io_uring_cq_advance(&ring, count);
            for (unsigned i = 0; i < count; ++i) prepare();
            done += count;
            if (count < batch.size()) break;
        }
    }
    const double seconds = static_cast<double>((kClock.now() - start).count()) / 1e9;
    io_uring_queue_exit(&ring);
    return static_cast<double>(done) / seconds;
}

Task<void> nop_loop(Reactor* reactor, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto done = co_await reactor->nop();
        ENSURE(done.has_value());
    }
}

Task<void> nop_loops(Reactor* reactor, unsigned depth) {
    Gate gate;
    for (unsigned i = 0; i < depth; ++i) reactor->spawn(gate, nop_loop(reactor, kNops / depth));
    co_await gate.close(*reactor);
}

double reactor_nops_per_s(unsigned depth) {
    const auto reactor = make_reactor();
    const Instant start = kClock.now();
    reactor->run_until_done(nop_loops(reactor.get(), depth));
    const double seconds = static_cast<double>((kClock.now() - start).count()) / 1e9;
    return static_cast<double>(kNops - kNops % depth) / seconds;
}

struct Throughput {
    unsigned depth;
    double bare_per_s;
    double reactor_per_s;
    double ratio;
};

// Both in turn, so that whatever else the machine does meets both; the ratio is the median of the
// rounds' ratios.
Throughput measure_nops(unsigned depth) {
    std::vector<double> bare;
    std::vector<double> reactor;
    std::vector<double> ratio;
    for (int round = 0; round < 11; ++round) {
        bare.push_back(bare_nops_per_s(depth));
        reactor.push_back(reactor_nops_per_s(depth));
        ratio.push_back(reactor.back() / bare.back());
    }
    return {.depth = depth,
            .bare_per_s = median(std::move(bare)),
            .reactor_per_s = median(std::move(reactor)),
            .ratio = median(std::move(ratio))};
}

// -- checksums --

double crc32c_4k_ns() {
    constexpr std::uint64_t kCount = 100'000;
    const std::vector<std::byte> block(4096, std::byte{0x5a});
    std::uint32_t crc = 0;
    return measure(11, kCount, [&] {
        for (std::uint64_t i = 0; i < kCount; ++i) crc = crc32c(block, crc);
    });
}

// -- the report --

struct Report {
    TaskCosts tasks;
    double crc32c_4k_ns;
    RoundTrip spinning;
    RoundTrip asleep;
    RoundTrip bare_asleep;
    std::vector<TimerCosts> timers;
    std::vector<Throughput> nops;
};

void print_json(const Report& report) {
    std::printf(
        "{\"cpu\":%s,\"kernel\":%s,\"await_ns\":%.1f,\"suspend_ns\":%.1f,\"spawn_ns\":%.1f,"
        "\"crc32c_4k_ns\":%.1f,"
        "\"mailbox_spin_us\":{\"p50\":%.2f,\"p99\":%.2f},"
        "\"mailbox_sleep_us\":{\"p50\":%.2f,\"p99\":%.2f},"
        "\"pipe_sleep_us\":{\"p50\":%.2f,\"p99\":%.2f},\"timers\":[",
        quoted(cpu_model()).c_str(), quoted(kernel_release()).c_str(), report.tasks.await_ns,
        report.tasks.suspend_ns, report.tasks.spawn_ns, report.crc32c_4k_ns, report.spinning.p50_us,
        report.spinning.p99_us, report.asleep.p50_us, report.asleep.p99_us,
        report.bare_asleep.p50_us, report.bare_asleep.p99_us);
    const char* comma = "";
    for (const TimerCosts& each : report.timers) {
        std::printf("%s{\"count\":%zu,\"arm_ns\":%.1f,\"cancel_ns\":%.1f,\"fire_ns\":%.1f}", comma,
                    each.count, each.arm_ns, each.cancel_ns, each.fire_ns);
        comma = ",";
    }
    std::printf("],\"nop\":[");
    comma = "";
    for (const Throughput& each : report.nops) {
        std::printf("%s{\"depth\":%u,\"bare_per_s\":%.0f,\"reactor_per_s\":%.0f,\"ratio\":%.3f}",
                    comma, each.depth, each.bare_per_s, each.reactor_per_s, each.ratio);
        comma = ",";
    }
    std::printf("]}\n");
}

void print_table(const Report& report) {
    std::printf("%s, Linux %s\n\n", cpu_model().c_str(), kernel_release().c_str());
    std::printf("task: make, await to its end      %8.1f ns\n", report.tasks.await_ns);
    std::printf("task: the same, suspending once   %8.1f ns\n", report.tasks.suspend_ns);
    std::printf("task: spawn to its end            %8.1f ns\n", report.tasks.spawn_ns);
    std::printf("CRC-32C of 4 KiB                  %8.1f ns\n", report.crc32c_4k_ns);
    std::printf("round trip, both spin        p50  %8.2f us   p99 %8.2f us\n",
                report.spinning.p50_us, report.spinning.p99_us);
    std::printf("round trip, both asleep      p50  %8.2f us   p99 %8.2f us\n", report.asleep.p50_us,
                report.asleep.p99_us);
    std::printf("the same of pipes            p50  %8.2f us   p99 %8.2f us\n",
                report.bare_asleep.p50_us, report.bare_asleep.p99_us);
    std::printf("\n%10s %10s %10s %10s\n", "timers", "arm ns", "cancel ns", "fire ns");
    for (const TimerCosts& each : report.timers) {
        std::printf("%10zu %10.1f %10.1f %10.1f\n", each.count, each.arm_ns, each.cancel_ns,
                    each.fire_ns);
    }
    std::printf("\n%10s %12s %12s %8s\n", "no-op", "bare/s", "reactor/s", "ratio");
    for (const Throughput& each : report.nops) {
        std::printf("%10u %12.0f %12.0f %8.3f\n", each.depth, each.bare_per_s, each.reactor_per_s,
                    each.ratio);
    }
}

Report measure_all() {
    Report report{};
    pin_to(0);
    report.tasks = measure_tasks();
    report.crc32c_4k_ns = crc32c_4k_ns();
    report.spinning = measure_round_trip(50us, 200'000, 0us);
    report.asleep = measure_round_trip(0us, 5'000, 200us);
    report.bare_asleep = measure_bare_round_trip(5'000, 200us);
    for (const std::size_t count : {1'000UL, 10'000UL, 100'000UL, 1'000'000UL}) {
        report.timers.push_back(measure_timers(count));
    }
    for (const unsigned depth : {32U, 64U, 128U}) report.nops.push_back(measure_nops(depth));
    return report;
}

}  // namespace
}  // namespace fopd::core

int main(int argc, char* argv[]) {
    const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
    if (argc > 1 && !json) {
        std::fprintf(stderr, "usage: bench_core [--json]\n");
        return 2;
    }
    const auto report = fopd::core::measure_all();
    json ? fopd::core::print_json(report) : fopd::core::print_table(report);
}

// Measures sessions and RPC over TCP on the loopback device, and beside them the same exchanges
// without sessions and RPC: fi_pingpong, plain sockets, loops of fi_read and fi_write.
//
//     bench_fabric [--json] [--ofi | --encrypt] [idle] [connects] [echoes] [calls] [bulk]
//     [encrypted] [costs]
//
// prints a small table, or one JSON object, of all parts or those named; under 60 seconds. With
// --ofi, sessions use libfabric's tcp provider, with --encrypt they are encrypted; the comparisons
// stay the same. The part `encrypted` compares encrypted sessions with sealed ones, and `costs`
// measures what the turns of our own transport count. The server is a process of its own on the
// first core, the clients are on the second. Each figure is a median of rounds, and each ratio the
// median of the rounds' ratios, because the two sides of a comparison take turns.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>

#include "bench/bare_echo.h"
#include "bench/bare_transfer.h"
#include "bench/fabric_stage.h"
#include "bench/measure.h"
#include "bench/turn_costs.h"

namespace fopd::bench {
namespace {

constexpr int kRounds = 5;
constexpr Duration kSpin = 50us;

// -- the report --

struct Figure {
    const char* name;
    const char* unit;
    double value;  // NaN: could not be had.
    int digits;
};

class Report {
public:
    void add(const char* name, const char* unit, double value, int digits = 2) {
        figures_.push_back({.name = name, .unit = unit, .value = value, .digits = digits});
    }
    void print_json() const {
        std::printf("{\"cpu\":%s,\"kernel\":%s", quoted(cpu_model()).c_str(),
                    quoted(kernel_release()).c_str());
        for (const Figure& each : figures_) {
            if (std::isnan(each.value)) {
                std::printf(",\"%s\":null", each.name);
            } else {
                std::printf(",\"%s\":%.*f", each.name, each.digits, each.value);
            }
        }
        std::printf("}\n");
    }
    void print_table() const {
        std::printf("%s, Linux %s\n\n", cpu_model().c_str(), kernel_release().c_str());
        for (const Figure& each : figures_) {
            std::printf("%-28s %12.*f %s\n", each.name, each.digits, each.value, each.unit);
        }
    }

private:
    std::vector<Figure> figures_;
};

// The medians of two things measured in turn, and of how the one compares to the other.
struct Pair {
    double ours;
    double bare;
    double ratio;
};

Pair measure_pair(const std::function<double()>& ours,
                  const std::function<std::optional<double>(double ours)>& bare) {
    std::vector<double> our_values;
    std::vector<double> bare_values;
    std::vector<double> ratios;
    for (int round = 0; round < kRounds; ++round) {
        our_values.push_back(ours());
        const auto value = bare(our_values.back());
        if (!value) continue;
        bare_values.push_back(*value);
        ratios.push_back(our_values.back() / *value);
    }
    if (ratios.empty()) return {.ours = median(std::move(our_values)), .bare = NAN, .ratio = NAN};
    return {.ours = median(std::move(our_values)),
            .bare = median(std::move(bare_values)),
            .ratio = median(std::move(ratios))};
}

// -- echoes --

double echo_us(std::size_t bytes, Duration spin) {
    FabricStage stage({.service = Service::kEcho, .spin = spin});
    stage.connect(1);
    return 1e6 / stage.measure({.body = fop::Echo{}, .payload_bytes = bytes}).per_s;
}

// The number of rounds of `each_us` that last as long as the measurement of our own echoes: no
// fewer, so that both meet the same noise, and no more, even on a busy machine.
int rounds_in_time(double each_us) {
    constexpr double kTimeUs = 300'000;
    return std::max(static_cast<int>(kTimeUs / each_us), 100);
}

void measure_echoes(Report& report) {
    const auto spinning = [](std::size_t bytes) {
        return measure_pair(
            [bytes] { return echo_us(bytes, kSpin); },
            [bytes](double ours) { return pingpong_echo_us(bytes, rounds_in_time(ours)); });
    };
    const auto asleep = [](std::size_t bytes) {
        return measure_pair(
            [bytes] { return echo_us(bytes, Duration{}); },
            [bytes](double ours) { return socket_echo_us(bytes, rounds_in_time(ours)); });
    };
    const Pair small = spinning(64);
    report.add("echo_64_us", "us", small.ours);
    report.add("pingpong_64_us", "us", small.bare);
    report.add("echo_64_ratio", "", small.ratio, 3);
    const Pair large = spinning(4096);
    report.add("echo_4k_us", "us", large.ours);
    report.add("pingpong_4k_us", "us", large.bare);
    report.add("echo_4k_ratio", "", large.ratio, 3);
    const Pair small_asleep = asleep(64);
    report.add("echo_64_asleep_us", "us", small_asleep.ours);
    report.add("socket_64_us", "us", small_asleep.bare);
    report.add("echo_64_asleep_ratio", "", small_asleep.ratio, 3);
    const Pair large_asleep = asleep(4096);
    report.add("echo_4k_asleep_us", "us", large_asleep.ours);
    report.add("socket_4k_us", "us", large_asleep.bare);
    report.add("echo_4k_asleep_ratio", "", large_asleep.ratio, 3);
}

// -- many calls --

struct Calls {
    std::vector<double> per_s;
    std::vector<double> server_cpu_us;
    std::vector<double> client_cpu_us;

    // 4 KiB come back for 64 bytes.
    void measure(std::size_t sessions, std::size_t depth, std::uint32_t fops_per_message_max) {
        FabricStage stage(
            {.service = Service::kReply4k, .fops_per_message_max = fops_per_message_max});
        stage.connect(sessions);
        const auto cost = stage.measure({.body = fop::Echo{}, .payload_bytes = 64, .depth = depth});
        per_s.push_back(cost.per_s);
        server_cpu_us.push_back(cost.server_cpu_us);
        client_cpu_us.push_back(cost.client_cpu_us);
    }
};

void measure_calls(Report& report) {
    Calls together;
    Calls one_by_one;
    Calls spread;
    for (int round = 0; round < kRounds; ++round) {
        together.measure(1, 32, fop::kFopsMax);
        one_by_one.measure(1, 32, 1);
        spread.measure(64, 4, fop::kFopsMax);
    }
    report.add("rpc_4k_depth32_per_s", "/s", median(together.per_s), 0);
    report.add("rpc_server_cpu_us", "us", median(together.server_cpu_us));
    report.add("rpc_client_cpu_us", "us", median(together.client_cpu_us));
    report.add("rpc_one_by_one_per_s", "/s", median(one_by_one.per_s), 0);
    report.add("rpc_one_by_one_server_cpu_us", "us", median(one_by_one.server_cpu_us));
    report.add("rpc_64_sessions_per_s", "/s", median(spread.per_s), 0);
    report.add("rpc_64_sessions_server_cpu_us", "us", median(spread.server_cpu_us));
}

// -- bulk --

constexpr std::size_t kBulkBytes = 1U << 20;
constexpr std::size_t kBulkDepth = 8;

double bulk_mbps(Service service) {
    FabricStage stage({.service = service, .spin = kSpin});
    stage.connect(1);
    const bool pull = service == Service::kPull;
    fop::BulkEcho body;
    body.bytes = kBulkBytes;
    const auto cost = stage.measure({.body = body,
                                     .depth = kBulkDepth,
                                     .source_bytes = pull ? kBulkBytes : 0,
                                     .target_bytes = pull ? 0 : kBulkBytes});
    return cost.per_s * kBulkBytes / 1e6;
}

double bare_mbps(BareTransfer::Direction direction) {
    BareTransfer transfer;
    transfer.mbps(direction, kBulkDepth, 100ms);
    return transfer.mbps(direction, kBulkDepth, 300ms);
}

void measure_bulk(Report& report) {
    const auto read =
        measure_pair([] { return bulk_mbps(Service::kPull); },
                     [](double) { return bare_mbps(BareTransfer::Direction::kRead); });
    report.add("rma_read_1m_mbps", "MB/s", read.ours, 0);
    report.add("bare_read_mbps", "MB/s", read.bare, 0);
    report.add("rma_read_ratio", "", read.ratio, 3);
    const auto write =
        measure_pair([] { return bulk_mbps(Service::kPush); },
                     [](double) { return bare_mbps(BareTransfer::Direction::kWrite); });
    report.add("rma_write_1m_mbps", "MB/s", write.ours, 0);
    report.add("bare_write_mbps", "MB/s", write.bare, 0);
    report.add("rma_write_ratio", "", write.ratio, 3);
}

// -- encrypted beside sealed --

// The rate of encrypted sessions, that of sealed ones, and their ratio.
Pair beside_sealed(const std::function<double()>& rate) {
    const auto with = [&rate](fop::Protection protection) {
        choose_protection(protection);
        return rate();
    };
    const Pair pair = measure_pair([&] { return with(fop::Protection::kEncrypt); },
                                   [&](double) { return with(fop::Protection::kSeal); });
    choose_protection(fop::Protection::kSeal);
    return pair;
}

void measure_encrypted(Report& report) {
    const Pair rates = beside_sealed([] {
        Calls calls;
        calls.measure(1, 32, fop::kFopsMax);
        return calls.per_s.front();
    });
    report.add("encrypted_4k_per_s", "/s", rates.ours, 0);
    report.add("sealed_4k_per_s", "/s", rates.bare, 0);
    report.add("encrypted_4k_ratio", "", rates.ratio, 3);
    const Pair echoes = beside_sealed([] { return 1e6 / echo_us(4096, Duration{}); });
    report.add("encrypted_echo_4k_per_s", "/s", echoes.ours, 0);
    report.add("sealed_echo_4k_per_s", "/s", echoes.bare, 0);
    report.add("encrypted_echo_4k_ratio", "", echoes.ratio, 3);
    const Pair read = beside_sealed([] { return bulk_mbps(Service::kPull); });
    report.add("encrypted_read_1m_mbps", "MB/s", read.ours, 0);
    report.add("sealed_read_1m_mbps", "MB/s", read.bare, 0);
    report.add("encrypted_read_ratio", "", read.ratio, 3);
    const Pair write = beside_sealed([] { return bulk_mbps(Service::kPush); });
    report.add("encrypted_write_1m_mbps", "MB/s", write.ours, 0);
    report.add("sealed_write_1m_mbps", "MB/s", write.bare, 0);
    report.add("encrypted_write_ratio", "", write.ratio, 3);
}

// -- sessions --

double connects_per_s() {
    constexpr std::size_t kCount = 400;
    constexpr std::size_t kAtOnce = 16;
    FabricStage stage({});
    stage.connect_and_leave(kCount / 10, kAtOnce);
    const Instant start = kClock.now();
    stage.connect_and_leave(kCount, kAtOnce);
    return kCount / static_cast<double>((kClock.now() - start).count()) * 1e9;
}

void measure_idle(Report& report) {
    constexpr std::size_t kSessions = 1000;
    // Each session says once in that time that it is still there.
    constexpr Duration kSpan = 15s;
    FabricStage stage({.spin = kSpin});
    stage.connect(8);
    stage.idle(200ms);
    const std::size_t before = stage.server().resident_bytes();
    stage.connect(kSessions);
    stage.idle(500ms);
    const std::size_t grown = stage.server().resident_bytes() - before;
    const Duration busy_before = stage.server().cpu_time();
    const Instant start = kClock.now();
    stage.idle(kSpan);
    const auto busy = static_cast<double>((stage.server().cpu_time() - busy_before).count());
    report.add("session_kib", "KiB", static_cast<double>(grown) / kSessions / 1024, 1);
    report.add("idle_1000_sessions_cpu_percent", "%",
               busy / static_cast<double>((kClock.now() - start).count()) * 100, 3);
}

void measure_connects(Report& report) {
    std::vector<double> rates;
    for (int round = 0; round < kRounds; ++round) rates.push_back(connects_per_s());
    report.add("connects_per_s", "/s", median(std::move(rates)), 0);
}

// -- what the turns of tcp count --

// The server's CPU time for a call that pushes so many bytes, one of several in flight.
double push_cpu_ns(FabricStage& stage, std::uint64_t bytes) {
    constexpr std::size_t kTargetBytes = 64;
    fop::BulkEcho body;
    body.bytes = bytes;
    const auto cost =
        stage.measure({.body = body, .depth = kBulkDepth, .target_bytes = kTargetBytes});
    return cost.server_cpu_us * 1000;
}

// What a small push adds to a call: its frame, its completion, and the coroutine that goes on.
double push_ns() {
    FabricStage stage({.service = Service::kPush});
    stage.connect(1);
    std::vector<double> added;
    for (int round = 0; round < kRounds; ++round) {
        const double without = push_cpu_ns(stage, 0);
        added.push_back(push_cpu_ns(stage, 64) - without);
    }
    return median(std::move(added));
}

// The server's CPU time for the end of a session.
double end_ns() {
    constexpr std::size_t kSessions = 500;
    FabricStage stage({});
    std::vector<double> each;
    for (int round = 0; round < kRounds; ++round) {
        stage.connect(kSessions);
        stage.idle(100ms);
        const Duration before = stage.server().cpu_time();
        stage.leave();
        stage.idle(100ms);
        const auto busy = static_cast<double>((stage.server().cpu_time() - before).count());
        each.push_back(busy / kSessions);
    }
    return median(std::move(each));
}

void measure_costs(Report& report) {
    const TurnCosts costs = measure_turn_costs();
    report.add("parsed_byte_ns", "ns", costs.parsed_byte_ns, 3);
    report.add("received_bytes", "per parsed byte", costs.received_bytes, 1);
    report.add("sent_bytes", "per parsed byte", costs.sent_bytes, 1);
    report.add("ciphered_bytes", "per parsed byte", costs.ciphered_bytes, 1);
    report.add("record_cost", "parsed bytes", costs.record, 0);
    report.add("empty_receive_cost", "parsed bytes", costs.empty_receive, 0);
    report.add("short_send_cost", "parsed bytes", costs.short_send, 0);
    report.add("push_cost", "parsed bytes", push_ns() / costs.parsed_byte_ns, 0);
    report.add("end_cost", "parsed bytes", end_ns() / costs.parsed_byte_ns, 0);
}

// Idle sessions first: a process that has done nothing yet has no free memory that hides the memory
// of sessions.
struct Part {
    std::string_view name;
    void (*measure)(Report& report);
};
constexpr std::array kParts{Part{"idle", &measure_idle},     Part{"connects", &measure_connects},
                            Part{"echoes", &measure_echoes}, Part{"calls", &measure_calls},
                            Part{"bulk", &measure_bulk},     Part{"encrypted", &measure_encrypted},
                            Part{"costs", &measure_costs}};

Report measure(const std::vector<std::string_view>& wanted) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);

    Report report;
    for (const Part& each : kParts) {
        if (wanted.empty() || std::ranges::find(wanted, each.name) != wanted.end())
            each.measure(report);
    }
    return report;
}

}  // namespace
}  // namespace fopd::bench

int main(int argc, char* argv[]) {
    using namespace fopd::bench;
    bool json = false;
    std::vector<std::string_view> wanted;
    for (const std::string_view word : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
        if (word == "--json") {
            json = true;
        } else if (word == "--ofi") {
            choose_scheme(fopd::fabric::kOfiTcpScheme);
        } else if (word == "--encrypt") {
            choose_protection(fopd::fop::Protection::kEncrypt);
        } else if (std::ranges::find(kParts, word, &Part::name) != kParts.end()) {
            wanted.push_back(word);
        } else {
            std::fprintf(stderr,
                         "usage: bench_fabric [--json] [--ofi | --encrypt] [part...]\nparts:");
            for (const Part& each : kParts)
                std::fprintf(stderr, " %s", std::string(each.name).c_str());
            std::fprintf(stderr, "\n");
            return 2;
        }
    }
    const Report report = measure(wanted);
    json ? report.print_json() : report.print_table();
}

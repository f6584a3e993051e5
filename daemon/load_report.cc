#include "daemon/load_report.h"

#include <array>

namespace fopd::daemon {

namespace {

// Four buckets for each doubling, from 1 us to a minute, so that percentiles are at most a quarter
// too large. The limits are those of buckets of core::Histogram.
constexpr int kShortest = 10;  // 2^10 ns
constexpr int kLongest = 36;   // 2^36 ns
constexpr auto kLimits = [] {
    std::array<std::uint64_t, std::size_t{kLongest - kShortest} * 4 + 1> limits{};
    for (std::size_t i = 0; i < limits.size(); ++i)
        limits[i] = ((4 + i % 4) << (kShortest - 2 + i / 4)) - 1;
    return limits;
}();

// The buckets that are not empty. All that took longer than the last limit
// is in one more bucket.
void write_latency(JsonWriter& json, const core::Histogram& latency) {
    json.key("latencies").begin_array();
    const std::uint64_t count = latency.count();
    std::uint64_t seen = 0;
    const auto write = [&json, &seen](std::uint64_t limit, std::uint64_t up_to) {
        if (up_to <= seen) return;
        json.begin_object().field("up_to_ns", limit).field("count", up_to - seen).end_object();
        seen = up_to;
    };
    for (std::size_t i = 0; i < kLimits.size() && seen < count; ++i)
        write(kLimits[i], latency.count_up_to(kLimits[i]));
    write(2 * kLimits.back() + 1, count);
    json.end_array();
}

}  // namespace

void LoadReport::add(Named& to, const std::string& name, const core::Histogram& latency,
                     std::uint64_t bytes) {
    std::unique_ptr<Figures>& figures = to[name];
    if (figures == nullptr) figures = std::make_unique<Figures>();
    figures->latency.merge(latency);
    figures->bytes += bytes;
}

void LoadReport::add(std::span<const reqh::FopLoad::Row> rows) {
    for (const reqh::FopLoad::Row& row : rows) {
        if (row.figures->latency.count() == 0) continue;
        Named& to = row.by == reqh::FopLoad::By::kOp      ? ops_
                    : row.by == reqh::FopLoad::By::kClass ? classes_
                                                          : principals_;
        add(to, row.name, row.figures->latency, row.figures->bytes.get());
    }
}

void LoadReport::add(const NodeDisk& disk) {
    const devices::Health* const health = disk.health();
    if (health == nullptr) return;
    for (const auto op : {devices::DeviceOp::kRead, devices::DeviceOp::kWrite}) {
        const devices::Health::Figures& figures = health->of(op);
        add(devices_, disk.settings().name, figures.latency, figures.bytes.get());
    }
}

void LoadReport::write(JsonWriter& json, const char* key, const Named& named) {
    json.key(key).begin_array();
    for (const auto& [name, figures] : named) {
        json.begin_object()
            .field("name", name)
            .field("count", figures->latency.count())
            .field("bytes", figures->bytes);
        write_latency(json, figures->latency);
        json.end_object();
    }
    json.end_array();
}

void LoadReport::write(JsonWriter& json) const {
    json.begin_object();
    write(json, "ops", ops_);
    write(json, "classes", classes_);
    write(json, "principals", principals_);
    write(json, "devices", devices_);
    json.end_object();
}

}  // namespace fopd::daemon

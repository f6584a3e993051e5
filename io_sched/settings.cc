#include "io_sched/settings.h"

#include <string>
#include <utility>
#include <vector>

#include "config/types.h"

namespace fopd::io_sched {

namespace {

template <typename Row>
config::TypePtr<const Row*> named_rows(std::span<const Row> rows) {
    std::vector<std::pair<std::string, const Row*>> words;
    for (const Row& row : rows) words.emplace_back(row.name, &row);
    return config::choice<const Row*>(std::move(words));
}

config::TypePtr<const Algorithm*> algorithms_for(IoType type) {
    std::vector<std::pair<std::string, const Algorithm*>> words;
    for (const Algorithm& row : algorithms()) {
        if (row.serves[static_cast<std::size_t>(type)]) words.emplace_back(row.name, &row);
    }
    return config::choice<const Algorithm*>(std::move(words));
}

}  // namespace

config::Section<IoSchedSettings> io_sched_section() {
    config::Section<IoSchedSettings> section("io_sched",
                                             "The order of the reads and writes of a device.");
    section.field("read_algo", &IoSchedSettings::read_algo, algorithms_for(IoType::kRead),
                  "The order of reads.");
    section.field("write_algo", &IoSchedSettings::write_algo, algorithms_for(IoType::kWrite),
                  "The order of writes.");
    section.field("format_algo", &IoSchedSettings::format_algo, algorithms_for(IoType::kFormat),
                  "The order in which freed space is discarded.");
    section.field("dispatch_algo", &IoSchedSettings::dispatch_algo,
                  named_rows(dispatch_algorithms()),
                  "How devices are divided among these three. none: each uses all devices.");
    section.field("request_algo", &IoSchedSettings::request_algo, named_rows(request_algorithms()),
                  "Which of these three is next. fifo: the one whose request is the oldest.");
    section.field(
        "elevator_max_wait", &IoSchedSettings::elevator_max_wait,
        config::duration({.min = 1ms, .max = 1h}),
        "elevator: a request that has waited for longer goes before requests at nearer places.");
    section.field("latency_goal", &IoSchedSettings::latency_goal,
                  config::auto_or(config::duration({.min = 10us, .max = 10s})),
                  "A device gets as many requests at a time as it completes within this time; auto "
                  "is 20ms for rotating disks and 2ms for others.");
    section.field("depth_max", &IoSchedSettings::depth_max,
                  config::integer<std::uint32_t>({.min = 1, .max = 4096}),
                  "How many reads and writes a device has at a time, at most. Each counts once, "
                  "and once more for each 64KiB.");
    return section;
}

}  // namespace fopd::io_sched

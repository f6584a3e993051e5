#include "lrs/settings.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/types.h"

namespace fopd::lrs {

namespace {

std::string summary_of(std::string_view policy) {
    return std::string(std::ranges::find(policies(), policy, &PolicyEntry::name)->summary);
}

enum class Wanted : std::uint8_t { kAll, kInner };

config::TypePtr<const PolicyEntry*> policy_names(Wanted wanted) {
    std::vector<std::pair<std::string, const PolicyEntry*>> words;
    for (const PolicyEntry& entry : policies()) {
        if (wanted == Wanted::kAll || entry.inner == nullptr)
            words.emplace_back(entry.name, &entry);
    }
    return config::choice<const PolicyEntry*>(std::move(words));
}

config::Record<DeadlineSettings> deadline_record() {
    config::Record<DeadlineSettings> record;
    record.field("policy", &DeadlineSettings::policy, policy_names(Wanted::kInner),
                 "The order of what has not waited for too long.",
                 {.reload = config::Reload::kLive});
    record.field("wait_max", &DeadlineSettings::wait_max, config::duration({.min = 1ms, .max = 1h}),
                 "What has waited for this time goes before everything else, the oldest first.",
                 {.reload = config::Reload::kLive});
    return record;
}

}  // namespace

config::Section<LrsSettings> lrs_section() {
    config::Section<LrsSettings> section("lrs", "Which fop runs next, and how many at a time.");
    section.field<const PolicyEntry*>("policy", &LrsSettings::policy, policy_names(Wanted::kAll),
                                      "The order of what waits to run.",
                                      {.reload = config::Reload::kLive});
    section.field("max_foms", &LrsSettings::max_foms,
                  config::integer<std::uint32_t>({.min = 1, .max = 65536}),
                  "Fops that run at a time, in each locality; the others wait in their order.",
                  {.reload = config::Reload::kLive});
    section.field("io_wait_goal", &LrsSettings::io_wait_goal,
                  config::none_or(config::duration({.min = 10us, .max = 10s})),
                  "Fewer run while the reads and writes of one wait longer than this for their "
                  "devices, on the mean: what waits here waits in the policy's order. none: it "
                  "does not matter.",
                  {.reload = config::Reload::kLive});
    section.field<CrrSettings>("crr", &LrsSettings::crr, config::map_of(crr_record()),
                               summary_of("crr"));
    section.field<DeadlineSettings>("deadline", &LrsSettings::deadline,
                                    config::map_of(deadline_record()), summary_of("deadline"));
    section.field<DelaySettings>("delay", &LrsSettings::delay, config::map_of(delay_record()),
                                 summary_of("delay"));
    section.field<MclockSettings>("mclock", &LrsSettings::mclock, config::map_of(mclock_record()),
                                  summary_of("mclock"));
    section.field<ByPlaceSettings>("orr", &LrsSettings::orr,
                                   config::map_of(by_place_record("an object")), summary_of("orr"));
    section.field<TbfSettings>("tbf", &LrsSettings::tbf, config::map_of(tbf_record()),
                               summary_of("tbf"));
    section.field<ByPlaceSettings>("trr", &LrsSettings::trr,
                                   config::map_of(by_place_record("a device")), summary_of("trr"));
    return section;
}

}  // namespace fopd::lrs

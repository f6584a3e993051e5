#include "lrs/tbf/settings.h"

#include "config/types.h"
#include "lrs/classes/rule_mistakes.h"
#include "lrs/tbf/rule_set.h"

namespace fopd::lrs {

namespace {

// Checks that need all rules together.
void check_rules(const TbfSettings& settings, config::Complaints& complaints) {
    RuleRevisions revisions;
    const auto loaded = revisions.load(settings.rules, Instant{});
    if (!loaded) complain_of(loaded.error(), complaints);
}

}  // namespace

config::Record<TbfSettings> tbf_record() {
    config::Record<TbfSettings> record;
    record.field("rules", &TbfSettings::rules,
                 config::list_of(rule_type("small op=read&size<64k rate=200/s", &parse_rule),
                                 {.length_max = kRulesMax + 1}),
                 "The classes and their limits; docs/formats/rules.md.",
                 {.reload = config::Reload::kLive});
    record.field(
        "cluster_interval", &TbfSettings::cluster_interval,
        config::duration({.min = 10ms, .max = 10s}),
        "How often the nodes of a cluster divide the limits of rules with scope=cluster by "
        "what each of them needs. Shares expire after the least of eh.timeout, "
        "eh.root_silent and twice eh.grace; the nodes divide again when half of that is over, if "
        "that is earlier.",
        {.reload = config::Reload::kLive});
    record.field("cut_off", &TbfSettings::cut_off,
                 config::auto_or(config::integer<std::uint32_t>({.min = 1, .max = 100})),
                 "The largest share of such a limit that a node uses while it is cut off from the "
                 "others, in percent. auto: 100 divided by the number of members.",
                 {.reload = config::Reload::kLive});
    record.check(check_rules);
    return record;
}

}  // namespace fopd::lrs

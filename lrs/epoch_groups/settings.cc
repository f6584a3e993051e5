#include "lrs/epoch_groups/settings.h"

#include "config/types.h"
#include "lrs/classes/rule_mistakes.h"
#include "lrs/epoch_groups/rule_set.h"

namespace fopd::lrs {

namespace {

// Checks that need all rules together.
void check_epoch_groups(const EpochGroupsSettings& settings, config::Complaints& complaints) {
    const auto loaded = GroupRules::load(settings.rules, 0);
    if (!loaded) complain_of(loaded.error(), complaints);
}

}  // namespace

config::Record<EpochGroupsSettings> epoch_groups_record() {
    const config::FieldRule kLive{.reload = config::Reload::kLive};
    config::Record<EpochGroupsSettings> record;
    record.field("length", &EpochGroupsSettings::length, config::duration({.min = 1ms, .max = 10s}),
                 "A group's turn ends after this time, or when none of its fops wait. It is never "
                 "longer than half of the timeout of epochs, except in a locality that is without "
                 "epochs.",
                 kLive);
    record.field("at_end", &EpochGroupsSettings::at_end,
                 config::choice<AtEnd>({{"go_on", AtEnd::kGoOn}, {"pause", AtEnd::kPause}}),
                 "What runs between the end of that time and the beginning of the next epoch. "
                 "go_on: the same as before. pause: nothing.",
                 kLive);
    record.field(
        "others", &EpochGroupsSettings::others,
        config::choice<OtherGroups>({{"serve", OtherGroups::kServe}, {"wait", OtherGroups::kWait}}),
        "What runs while the group of the epoch has no waiting fops on this node. serve: fops "
        "of the next groups. wait: nothing.",
        kLive);
    record.field(
        "rules", &EpochGroupsSettings::rules,
        config::list_of(rule_type("zone-a address=10.1.0.0/16 weight=2 by=none", &parse_group_rule),
                        {.length_max = kRulesMax + 1}),
        "The groups and their weights; docs/formats/rules.md.", kLive);
    record.check(check_epoch_groups);
    return record;
}

}  // namespace fopd::lrs

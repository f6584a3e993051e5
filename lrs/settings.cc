#include "lrs/settings.h"

#include <string>
#include <utility>
#include <vector>

#include "config/types.h"

namespace fopd::lrs {

config::Section<LrsSettings> lrs_section() {
    std::vector<std::pair<std::string, const PolicyEntry*>> words;
    for (const PolicyEntry& entry : policies()) words.emplace_back(entry.name, &entry);

    config::Section<LrsSettings> section("lrs", "Which fop runs next, and how many at a time.");
    section.field("policy", &LrsSettings::policy,
                  config::choice<const PolicyEntry*>(std::move(words)),
                  "The order of what waits to run.");
    section.field("max_foms", &LrsSettings::max_foms,
                  config::integer<std::uint32_t>({.min = 1, .max = 65536}),
                  "Fops that run at a time, in each locality; the others wait in their order.",
                  {.reload = config::Reload::kLive});
    return section;
}

}  // namespace fopd::lrs

#include "lrs/mclock/edit.h"

#include <utility>

namespace fopd::lrs {

std::expected<MclockSettings, RuleMistakes> edit_mclock(const MclockSettings& settings,
                                                        const MclockRules::Ptr& rules,
                                                        const RuleEdit& edit) {
    auto changed = edited_rules(*rules, edit, kMclockGrammar);
    if (!changed) return std::unexpected(std::move(changed.error()));
    MclockSettings next = settings;
    next.rules = texts_of(*changed, kMclockGrammar);
    // The generated texts must parse too, as they may be longer than the user's, and must be
    // consistent.
    const auto loaded = MclockRules::load(next.rules, rules);
    if (!loaded) {
        // Line and column refer to the generated text, not to the user's.
        RuleMistake mistake = loaded.error().front();
        mistake.line = 0;
        mistake.column = 1;
        return std::unexpected(std::move(mistake));
    }
    if (auto wrong = overbooked(next, **loaded)) return std::unexpected(*std::move(wrong));
    return next;
}

}  // namespace fopd::lrs

#include "lrs/tbf/node.h"

#include <unordered_set>
#include <utility>

#include "core/ensure.h"
#include "core/random.h"
#include "lrs/policies.h"

namespace fopd::lrs {

TbfShare TbfNode::share(const TbfSettings& settings, Instant now) {
    if (buckets_ == nullptr) {
        core::Random random(seed_);
        const HashKey key{.first = random.next(), .second = random.next()};
        buckets_ = std::make_shared<BucketTable>(key);
    }
    if (cluster_ == nullptr) {
        cluster_ = std::make_shared<ClusterNode>();
        cluster_->key = facts_.key.value_or(buckets_->key());
        cluster_->localities = facts_.localities;
        cluster_->members = facts_.members;
    }
    return {.buckets = buckets_, .rules = revision(settings, now), .cluster = cluster_};
}

void TbfNode::set_facts(const ClusterFacts& facts) {
    if (facts == facts_) return;
    facts_ = facts;
    cluster_ = nullptr;
}

const RuleSetPtr& TbfNode::revision(const TbfSettings& settings, Instant now) {
    if (settings.rules != settings_.rules) {
        const auto loaded = revisions_.load(settings.rules, now);
        ENSURE(loaded.has_value());
    }
    settings_ = settings;
    return revisions_.current();
}

OrderedRulesPtr TbfNode::rules(const PolicySettings& settings, Instant now) {
    return revision(settings.tbf, now);
}

std::optional<RuleMistakes> TbfNode::edit(PolicySettings& settings, const RuleEdit& edit,
                                          Instant now) {
    revision(settings.tbf, now);
    RuleRevisions changed = revisions_;
    const auto edited = changed.apply(edit, now);
    if (!edited) return edited.error();
    std::vector<std::string> texts = texts_of((*edited)->rules(), kTbfGrammar);
    // The generated texts must parse too, as they may be longer than the user's.
    const std::unordered_set<std::string> known(settings_.rules.begin(), settings_.rules.end());
    for (const std::string& text : texts) {
        if (known.contains(text)) continue;
        const auto parsed = parse_rule(text);
        if (!parsed) return parsed.error();
    }
    revisions_ = std::move(changed);
    settings_.rules = std::move(texts);
    settings.tbf = settings_;
    return std::nullopt;
}

}  // namespace fopd::lrs

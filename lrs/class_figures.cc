#include "lrs/class_figures.h"

#include <tuple>
#include <utility>

namespace fopd::lrs {

ClassTotals ClassTally::take_news(Duration throttled_now) {
    const Duration throttled = throttled_with(throttled_now);
    const ClassTotals news{.served = totals_.served - told_.served,
                           .bytes = totals_.bytes - told_.bytes,
                           .throttled = throttled - told_.throttled,
                           .as_reserved = totals_.as_reserved - told_.as_reserved,
                           .by_weight = totals_.by_weight - told_.by_weight,
                           .over_limit = totals_.over_limit - told_.over_limit};
    told_ = totals_;
    told_.throttled = throttled;
    return news;
}

namespace {

void add_to(std::optional<ClassInCluster>& sum, const std::optional<ClassInCluster>& other) {
    if (sum && other) {
        sum->add(*other);
    } else if (other) {
        sum = other;
    }
}

}  // namespace

void ClassNow::add(const ClassNow& other) {
    queued += other.queued;
    oldest = std::max(oldest, other.oldest);
    operations_per_second += other.operations_per_second;
    bytes_per_second += other.bytes_per_second;
    add_to(cluster, other.cluster);
}

void ClassTurns::add(const ClassTurns& other) {
    taken = std::max(taken, other.taken);
    queued_in_all = std::max(queued_in_all, other.queued_in_all);
}

void ClassFigures::add(const ClassFigures& other) {
    if (turns && other.turns) turns->add(*other.turns);
    queued += other.queued;
    served += other.served;
    bytes += other.bytes;
    operations_per_second += other.operations_per_second;
    bytes_per_second += other.bytes_per_second;
    is_throttled = is_throttled || other.is_throttled;
    throttled += other.throttled;
    oldest = std::max(oldest, other.oldest);
    as_reserved += other.as_reserved;
    by_weight += other.by_weight;
    over_limit += other.over_limit;
    add_to(cluster, other.cluster);
}

void ClassFigures::raise_to(const ClassTotals& totals) {
    served = std::max(served, totals.served);
    bytes = std::max(bytes, totals.bytes);
    throttled = std::max(throttled, totals.throttled);
    as_reserved = std::max(as_reserved, totals.as_reserved);
    by_weight = std::max(by_weight, totals.by_weight);
    over_limit = std::max(over_limit, totals.over_limit);
}

ClassFigures figures_of(const ClassView& of, Instant now) {
    const ClassTotals& totals = of.tally.totals();
    const RecentRate::PerSecond recent = of.tally.per_second(now);
    ClassFigures figures{.name = std::string(of.name),
                         .sort_position = of.sort_position,
                         .queued = of.queued,
                         .served = totals.served,
                         .bytes = totals.bytes,
                         .operations_per_second = recent.requests,
                         .bytes_per_second = recent.bytes,
                         .is_throttled = of.is_throttled,
                         .as_reserved = totals.as_reserved,
                         .by_weight = totals.by_weight,
                         .over_limit = totals.over_limit,
                         .shares = of.shares,
                         .turns = of.turns,
                         .cluster = of.cluster};
    figures.throttled = of.tally.throttled_with(of.throttled_now);
    if (of.oldest != kNever) figures.oldest = now - of.oldest;
    return figures;
}

std::vector<ClassFigures> together(std::vector<ClassFigures> parts, std::size_t count_max) {
    const auto by_name = [](const ClassFigures& figures) {
        return std::tuple(figures.sort_position, std::string_view(figures.name));
    };
    std::ranges::sort(parts, {}, by_name);
    std::vector<ClassFigures> all;
    for (ClassFigures& part : parts) {
        if (!all.empty() && by_name(all.back()) == by_name(part)) {
            all.back().add(part);
        } else {
            all.push_back(std::move(part));
        }
    }
    if (all.size() <= count_max) return all;

    const auto by_weight = [](const ClassFigures& figures) {
        return std::tuple(figures.queued, figures.throttled, figures.served);
    };
    const auto first_left_out = all.begin() + static_cast<std::ptrdiff_t>(count_max);
    std::ranges::nth_element(all, first_left_out, std::ranges::greater(), by_weight);
    ClassFigures others{.name = std::string(kOtherClasses)};
    for (auto each = first_left_out; each != all.end(); ++each) others.add(*each);
    all.erase(first_left_out, all.end());
    std::ranges::sort(all, {}, by_name);
    all.push_back(std::move(others));
    return all;
}

}  // namespace fopd::lrs

#include "reqh/fop_load.h"

#include <algorithm>
#include <utility>

namespace fopd::reqh {

namespace {

void count(LoadFigures& figures, const FopLoad::Fop& fop) {
    figures.latency.record(fop.took);
    figures.bytes.add(fop.size_bytes);
}

}  // namespace

NamedLoad::Row NamedLoad::row_of(std::string_view name, Instant now) {
    // Fops of one name often follow each other.
    const bool is_last = last_ < rows_.size() && rows_[last_].name == name;
    if (!is_last) {
        const auto known = by_name_.find(name);
        if (known != by_name_.end()) {
            last_ = known->second;
        } else {
            const std::optional<Row> room = find_room(now);
            if (!room) return 0;
            last_ = *room;
            give(last_, name);
        }
    }
    rows_[last_].used_at = now;
    return last_;
}

void NamedLoad::give(Row row, std::string_view name) {
    Named& named = rows_[row];
    by_name_.erase(named.name);
    if (!named.name.empty()) {
        named.former = std::exchange(named.figures, std::make_unique<LoadFigures>());
    }
    named.name = name;
    by_name_.emplace(name, row);
}

// A row for a new name; none: all are in use.
std::optional<NamedLoad::Row> NamedLoad::find_room(Instant now) {
    if (rows_.empty()) rows_.push_back({.name = std::string(kOthers)});
    if (rows_.size() <= kNamedMax) {
        rows_.emplace_back();
        return static_cast<Row>(rows_.size() - 1);
    }
    if (now < look_again_) return std::nullopt;
    const auto idle = std::ranges::min_element(rows_.begin() + 1, rows_.end(), {}, &Named::used_at);
    if (now - idle->used_at >= kForgottenAfter) return static_cast<Row>(idle - rows_.begin());
    look_again_ = after(idle->used_at, kForgottenAfter);
    return std::nullopt;
}

void FopLoad::ended(const Fop& fop, Instant now) {
    if (fop.class_row) count(classes_.at(*fop.class_row), fop);
    count(principals_.at(principals_.row_of(fop.principal, now)), fop);
}

std::vector<FopLoad::Row> FopLoad::rows() const {
    std::vector<Row> all;
    for (const fop::FopType& type : fop::kFopTypes) {
        const LoadFigures& figures = metrics_.load(type);
        if (figures.latency.count() == 0) continue;
        all.push_back({By::kOp, std::string(type.name), &figures});
    }
    classes_.for_each([&all](const std::string& name, const LoadFigures& figures) {
        all.push_back({By::kClass, name, &figures});
    });
    principals_.for_each([&all](const std::string& name, const LoadFigures& figures) {
        all.push_back({By::kPrincipal, name, &figures});
    });
    return all;
}

}  // namespace fopd::reqh

#include "fabric/tcp/work_turns.h"

#include <utility>

#include "core/ensure.h"

namespace fopd::fabric {

void WorkTurns::begin_turn() {
    left_ = waiting_count_;
}

HasWork* WorkTurns::next() {
    while (left_ > 0 && cost_ < kTurnCostMax && !lines_.empty()) {
        Line& line = lines_.front();
        if (line.debt >= kQuantum) {
            if (&line != &lines_.back()) {
                line.debt -= kQuantum;
                put_last(line);
                continue;
            }
            line.debt = 0;  // Nobody else waits.
        }
        HasWork& served = line.waiting.front();
        --left_;
        begin_service(served);
        return &served;
    }
    cost_ = 0;
    return nullptr;
}

bool WorkTurns::serve_early(HasWork& place) {
    ENSURE(served_ == nullptr && place.linked());
    if (cost_ >= kEarlyCostMax || place.line_->debt >= kQuantum) return false;
    begin_service(place);
    is_served_early_ = true;
    return true;
}

void WorkTurns::begin_service(HasWork& place) {
    place.withdraw();
    served_ = place.line_;
    served_cost_ = 0;
}

void WorkTurns::add_cost(std::size_t cost) {
    cost_ += cost;
    served_cost_ += cost;
}

bool WorkTurns::may_go_on(const HasWork& served) const {
    const std::size_t others = waiting_count_ - (served.linked() ? 1 : 0);
    return cost_ < kTurnCostMax && (others == 0 || served_cost_ < kQuantum);
}

void WorkTurns::end_service() {
    Line* const line = std::exchange(served_, nullptr);
    const bool was_early = std::exchange(is_served_early_, false);
    if (line == nullptr) return;
    const bool others_wait = !lines_.empty() && (&lines_.front() != line || &lines_.back() != line);
    line->debt = others_wait ? line->debt + served_cost_ : 0;
    // An early service pays no debt, because no other line was served before it. next() takes the
    // debt off, a quantum for each turn that the line lets pass.
    if (was_early || line->debt < kQuantum) return;
    line->debt -= kQuantum;
    if (line->linked()) put_last(*line);
}

void WorkTurns::put_last(Line& line) {
    line.unlink();
    lines_.push_back(line);
}

HasWork::~HasWork() {
    withdraw();
    if (principal_ == turns_.of_principals_.end()) return;
    if (--line_->connections > 0) return;
    if (turns_.served_ == line_) turns_.served_ = nullptr;
    turns_.of_principals_.erase(principal_);
}

void HasWork::belongs_to(const std::string& principal) {
    ENSURE(principal_ == turns_.of_principals_.end());
    const bool has_work = linked();
    withdraw();
    principal_ = turns_.of_principals_.try_emplace(principal).first;
    line_ = &principal_->second;
    ++line_->connections;
    if (has_work) join();
}

void HasWork::join() {
    ENSURE(!linked());
    line_->waiting.push_back(*this);
    ++turns_.waiting_count_;
    if (!line_->linked()) turns_.lines_.push_back(*line_);
}

void HasWork::withdraw() {
    if (!linked()) return;
    unlink();
    --turns_.waiting_count_;
    if (line_->waiting.empty()) line_->unlink();
}

}  // namespace fopd::fabric

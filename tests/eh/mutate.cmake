# cmake -D MUTANT=<name> -D SOURCE=<file> -D OUTPUT=<file> -P mutate.cmake
# Writes the source with one rule of the epoch protocol left out.

if(MUTANT STREQUAL "no_carry")
    set(rule [==[    take_carry(next->view());
]==])
    set(instead "")
elseif(MUTANT STREQUAL "roster_beyond_promises")
    set(rule [==[        if (found == candidacy_->granted.end()) continue;
]==])
    set(instead [==[        if (found == candidacy_->granted.end()) {
            if (entry.name != self_.name) next.roster.push_back(entry);
            continue;
        }
]==])
elseif(MUTANT STREQUAL "shared_blocks")
    set(rule [==[    next.epoch_low = old.view().epoch_high + 1;
    next.epoch_high = next.epoch_low + options_->block - 1;
]==])
    set(instead "")
elseif(MUTANT STREQUAL "eviction_uncommitted")
    set(rule [==[    if (begin_swap(SwapKind::kDuty, share(next_view(now)))) return;
]==])
    set(instead [==[    if (!duty_->evict.empty()) return adopt(share(next_view(now)), std::nullopt, now);
    if (begin_swap(SwapKind::kDuty, share(next_view(now)))) return;
]==])
elseif(MUTANT STREQUAL "timer_restarted")
    set(rule [==[        closing_since_ = call_->ready_since;
        if (closing != kNever) closing_since_ = std::min(closing, closing_since_);
]==])
    set(instead [==[        closing_since_ = closing == kNever ? now : std::max(closing, now);
]==])
elseif(MUTANT STREQUAL "lost_takes_start")
    set(rule [==[    unseat();
    standing_ = Standing::kLost;
]==])
    set(instead "")
elseif(MUTANT STREQUAL "duplicates_combined")
    set(rule [==[        if (child->report.data != ready.data) tell(EventKind::kOtherBytes, from.name);
        return;
]==])
    set(instead [==[        add_to(child->report, {.count = ready.count, .data = ready.data});
        child->report.count = ready.count;
        return;
]==])
elseif(MUTANT STREQUAL "closes_without_end")
    set(rule [==[    first_at_ = kNever;
    if (duty_) {
]==])
    set(instead [==[    if (duty_) {
]==])
elseif(MUTANT STREQUAL "unknown_is_no")
    set(rule [==[    if (outcome == Swapped::kYes) return end_swap(now);
]==])
    set(instead [==[    if (outcome == Swapped::kYes) return end_swap(now);
    if (outcome == Swapped::kUnknown) return forget_swap();
]==])
else()
    message(FATAL_ERROR "there is no mutant ${MUTANT}")
endif()

include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/Mutate.cmake)

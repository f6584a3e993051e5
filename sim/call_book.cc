#include "sim/call_book.h"

#include <algorithm>

#include "reqh/fop_record.h"

namespace fopd::sim {

namespace {

std::string_view text_of(std::span<const core::Field> fields, std::string_view key) {
    const auto found = std::ranges::find(fields, key, &core::Field::key);
    if (found == fields.end()) return {};
    const auto* const text = std::get_if<std::string_view>(&found->value);
    return text == nullptr ? std::string_view{} : *text;
}

bool has(std::span<const core::Field> fields, std::string_view key) {
    return std::ranges::find(fields, key, &core::Field::key) != fields.end();
}

}  // namespace

CallBook::Entry::Entry(CallBook& book, std::string what, Instant due)
    : book_(book), what_(std::move(what)), number_(++book.begun_) {
    book_.due_of_.emplace(number_, due);
    book_.due_.emplace(std::pair(due, number_), this);
}

CallBook::Entry::~Entry() {
    const auto due = book_.due_of_.find(number_);
    book_.due_.erase({due->second, number_});
    book_.due_of_.erase(due);
}

void CallBook::Entry::end(std::string_view outcome) {
    if (ended_) book_.break_promise(what_ + " ended twice");
    ended_ = true;
    ++book_.ended_;
    book_.world_.trace(core::mix(number_, outcome.size()));
    const auto counted = book_.outcomes_.find(outcome);
    if (counted == book_.outcomes_.end()) {
        book_.outcomes_.emplace(outcome, 1);
    } else {
        ++counted->second;
    }
}

void CallBook::see_fop(std::uint32_t node, std::uint64_t life,
                       std::span<const core::Field> fields) {
    if (text_of(fields, "op") != "bulk_echo" || !has(fields, "execute_s")) return;
    const auto id = reqh::parse_fop_id(text_of(fields, "fop"));
    if (!id) return break_promise("a fop has no number");
    const auto line = lines_.find(id->session);
    // A session that ended within the turn in which it began is not in lines_: its own number is
    // used.
    const std::uint64_t whose = line == lines_.end() ? id->session : line->second;
    if (runs_.insert({node, life, whose, id->request}).second) return;
    break_promise("node-" + std::to_string(node) + " ran " + std::string(text_of(fields, "fop")) +
                  " of " + std::string(text_of(fields, "peer")) + " twice");
}

void CallBook::look() {
    if (due_.empty() || due_.begin()->first.first >= world_.now()) return;
    break_promise(due_.begin()->second->what() + " has not ended in time");
}

void CallBook::break_promise(std::string sentence) {
    if (!broken_promise_.empty()) return;
    char when[40];
    std::snprintf(when, sizeof when, "at %.6f s: ", in_seconds(world_.now().time_since_epoch()));
    broken_promise_ = when + std::move(sentence);
}

std::uint64_t CallBook::count(std::string_view outcome) const {
    const auto found = outcomes_.find(outcome);
    return found == outcomes_.end() ? 0 : found->second;
}

std::string CallBook::summary() const {
    std::string text = std::to_string(ended_) + " calls, " + std::to_string(executions()) +
                       " executions of what runs once";
    for (const auto& [outcome, count] : outcomes_) {
        text += ", " + outcome + ": " + std::to_string(count);
    }
    return text;
}

}  // namespace fopd::sim

#include "config/schema.h"

#include <algorithm>
#include <cstdint>

#include "config/file.h"
#include "config/yaml_reader.h"
#include "core/stable_sort.h"

namespace fopd::config {
namespace {

// Adds the file's name to the problems, and sorts them by position.
Problems finished(Problems problems, const std::string& file_name) {
    for (Problem& problem : problems) problem.file = file_name;
    core::stable_sort(problems, std::less{}, [](const Problem& each) {
        return std::pair(each.position.line, each.position.column);
    });
    return problems;
}

// The path of a key, or of an item of a list, of a section.
std::string path_of(const std::string& section, const std::string& key) {
    if (key.empty()) return section;
    return key.starts_with('[') ? section + key : key_path(section, key);
}

}  // namespace

void Schema::add(std::shared_ptr<const AnySection> section) {
    ensure_key(section->name(), names_);
    ENSURE(!section->help().empty());
    for (const auto& other : sections_) ENSURE(other->type() != section->type());
    names_.push_back(section->name());
    sections_.push_back(std::move(section));
}

std::size_t Schema::index_of(const std::string& section) const {
    const auto name = std::ranges::find(names_, section);
    ENSURE(name != names_.end());
    return static_cast<std::size_t>(name - names_.begin());
}

void Schema::rule(const std::string& section, const std::vector<std::string>& others, Rule rule) {
    Between between{.section = index_of(section), .others = {}, .rule = std::move(rule)};
    for (const std::string& each : others) between.others.push_back(index_of(each));
    rules_.push_back(std::move(between));
}

std::expected<SnapshotPtr, Problems> Schema::load_file(const std::string& file_name) const {
    const auto text = read_file(file_name);
    if (text) return load_text(*text, file_name);
    return std::unexpected(
        Problems{{file_name, {}, "file", text.error().wrong, text.error().right}});
}

std::expected<SnapshotPtr, Problems> Schema::load_text(std::string_view text,
                                                       const std::string& file_name) const {
    Problems problems;
    const auto root = read_yaml(text, problems);
    if (!root) return std::unexpected(finished(std::move(problems), file_name));
    const auto values = match_keys(*root, "", names_, problems);
    if (!values) return std::unexpected(finished(std::move(problems), file_name));

    const Node absent;
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->sections_ = sections_;
    for (std::size_t index = 0; index < sections_.size(); ++index) {
        const Node* value = (*values)[index];
        snapshot->records_.push_back(
            sections_[index]->read(value == nullptr ? absent : *value, problems));
    }
    const auto is_read = [&](std::size_t index) { return snapshot->records_[index] != nullptr; };
    for (const Between& each : rules_) {
        if (!is_read(each.section) || !std::ranges::all_of(each.others, is_read)) continue;
        const Node* const value = (*values)[each.section];
        for (Mistake& mistake : each.rule(*snapshot)) {
            problems.push_back({file_name, locate(value == nullptr ? absent : *value, mistake.key),
                                path_of(names_[each.section], mistake.key),
                                std::move(mistake.wrong), std::move(mistake.right)});
        }
    }
    if (!problems.empty()) return std::unexpected(finished(std::move(problems), file_name));
    return snapshot;
}

std::string print_effective(const Snapshot& snapshot) {
    Node root;
    root.kind = Node::Kind::kMap;
    for (std::size_t index = 0; index < snapshot.sections_.size(); ++index) {
        const AnySection& section = *snapshot.sections_[index];
        root.entries.push_back({section.name(), {}, section.write(snapshot.records_[index].get())});
    }
    return to_yaml(root);
}

std::string hash(const Snapshot& snapshot) {
    // FNV-1a.
    std::uint64_t value = 0xcbf29ce484222325;
    for (const char c : print_effective(snapshot)) {
        value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    std::string text;
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[value >> shift & 15U];
    return text;
}

Merged merge(const SnapshotPtr& old, const SnapshotPtr& next) {
    ENSURE(old->sections_ == next->sections_);
    Merged merged;
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->sections_ = old->sections_;
    for (std::size_t index = 0; index < old->sections_.size(); ++index) {
        snapshot->records_.push_back(old->sections_[index]->merge(
            old->records_[index].get(), next->records_[index].get(), merged.changes));
    }
    merged.snapshot = std::move(snapshot);
    return merged;
}

}  // namespace fopd::config

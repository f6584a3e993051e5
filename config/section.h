#pragma once

#include <memory>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <utility>

#include "config/record.h"
#include "config/type.h"

namespace fopd::config {

// A top-level key of the file and the record below it. Each folder declares the sections it reads:
//
//     config::Section<NodeConfig> node_section() {
//         config::Section<NodeConfig> section("node", "The identity of this node.");
//         section.field("name", …);
//         return section;
//     }
template <typename S>
class Section : public Record<S> {
public:
    Section(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}

    const std::string& name() const { return name_; }
    const std::string& help() const { return help_; }

private:
    std::string name_;
    std::string help_;
};

// A section with its struct's type erased; `void` pointers refer to that struct.
class AnySection {
public:
    virtual ~AnySection() = default;
    virtual const std::string& name() const = 0;
    virtual const std::string& help() const = 0;
    virtual std::type_index type() const = 0;
    // Describes the section as one key.
    virtual KeyDescription describe() const = 0;
    virtual std::shared_ptr<const void> read(const Node& node, Problems& problems) const = 0;
    virtual Node write(const void* record) const = 0;
    // The section in force after a reload: live values from `next`, others from `old`. If the
    // section's checks refuse the mixture, the whole section stays `old`, and all its changes need
    // a restart.
    virtual std::shared_ptr<const void> merge(const void* old, const void* next,
                                              Changes& changes) const = 0;
};

template <typename S>
class SectionOf final : public AnySection {
public:
    explicit SectionOf(Section<S> section) : section_(std::move(section)) {}

    const std::string& name() const override { return section_.name(); }
    const std::string& help() const override { return section_.help(); }
    std::type_index type() const override { return typeid(S); }
    KeyDescription describe() const override {
        Node empty_map;
        empty_map.kind = Node::Kind::kMap;
        return KeyDescription{.key = name(),
                              .help = help(),
                              .shape = KeyDescription::Shape::kMap,
                              .allowed = {},
                              .default_value = std::move(empty_map),
                              .example = {},
                              .keys = section_.describe()};
    }

    std::shared_ptr<const void> read(const Node& node, Problems& problems) const override {
        auto record = section_.read(node, name(), problems);
        if (!record) return nullptr;
        return std::make_shared<const S>(*std::move(record));
    }

    Node write(const void* record) const override {
        return section_.write(*static_cast<const S*>(record));
    }

    std::shared_ptr<const void> merge(const void* old, const void* next,
                                      Changes& changes) const override {
        const S& old_record = *static_cast<const S*>(old);
        S merged = *static_cast<const S*>(next);
        Changes found;
        section_.carry_over(old_record, merged, name(), found);
        Problems problems;
        section_.read(section_.write(merged), name(), problems);
        if (!problems.empty()) {
            merged = old_record;
            for (Change& change : found) change.reload = Reload::kRestart;
        }
        for (Change& change : found) changes.push_back(std::move(change));
        return std::make_shared<const S>(std::move(merged));
    }

private:
    Section<S> section_;
};

}  // namespace fopd::config

#pragma once

#include <memory>
#include <optional>
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
    using Value = S;

    Section(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}

    const std::string& name() const { return name_; }
    const std::string& help() const { return help_; }

    // As one key of the file.
    KeyDescription describe_section() const {
        Node empty_map;
        empty_map.kind = Node::Kind::kMap;
        return KeyDescription{.key = name_,
                              .help = help_,
                              .shape = KeyDescription::Shape::kMap,
                              .allowed = {},
                              .default_value = std::move(empty_map),
                              .example = {},
                              .keys = this->describe()};
    }
    std::optional<S> read_section(const Node& node, Problems& problems) const {
        return this->read(node, name_, problems);
    }
    void carry_over_section(const S& old, S& next, Changes& changes) const {
        this->carry_over(old, next, name_, changes);
    }

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

// Of a Section or a ListSection.
template <typename Declared>
class SectionOf final : public AnySection {
public:
    using Value = typename Declared::Value;

    explicit SectionOf(Declared section) : section_(std::move(section)) {}

    const std::string& name() const override { return section_.name(); }
    const std::string& help() const override { return section_.help(); }
    std::type_index type() const override { return typeid(Value); }
    KeyDescription describe() const override { return section_.describe_section(); }

    std::shared_ptr<const void> read(const Node& node, Problems& problems) const override {
        auto value = section_.read_section(node, problems);
        if (!value) return nullptr;
        return std::make_shared<const Value>(*std::move(value));
    }

    Node write(const void* value) const override {
        return section_.write(*static_cast<const Value*>(value));
    }

    std::shared_ptr<const void> merge(const void* old, const void* next,
                                      Changes& changes) const override {
        const Value& old_value = *static_cast<const Value*>(old);
        Value merged = *static_cast<const Value*>(next);
        Changes found;
        section_.carry_over_section(old_value, merged, found);
        Problems problems;
        section_.read_section(section_.write(merged), problems);
        if (!problems.empty()) {
            merged = old_value;
            for (Change& change : found) change.reload = Reload::kRestart;
        }
        for (Change& change : found) changes.push_back(std::move(change));
        return std::make_shared<const Value>(std::move(merged));
    }

private:
    Declared section_;
};

}  // namespace fopd::config

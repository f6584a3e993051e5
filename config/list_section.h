#pragma once

#include <memory>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "config/section.h"
#include "config/types.h"

namespace fopd::config {

// A top-level key of the file that holds a list of maps, each with the keys of one record:
//
//     config::ListSection<Pool> pools_section() {
//         config::Record<Pool> record;
//         record.field("name", …);
//         return {"pools", "Named sets of objects, each with a quota.", std::move(record)};
//     }
//
// If the file lacks it, the list is empty. While the items are the same, each changed key follows
// its own Reload. If items are added, removed or reordered, the list's Reload decides; see
// ListType.
template <typename Item>
class ListSection {
public:
    using Items = std::vector<Item>;

    // `reload` is for adding and removing items; the items' keys have their own.
    ListSection(std::string name, std::string help, Record<Item> item, ListRule rule = {},
                Reload reload = Reload::kRestart)
        : name_(std::move(name)),
          help_(std::move(help)),
          reload_(reload),
          type_(list_of(map_of(std::move(item)), rule)) {
        ENSURE(rule.length_min == 0);
    }

    const std::string& name() const { return name_; }
    const std::string& help() const { return help_; }
    Reload reload() const { return reload_; }
    const Type<Items>& type() const { return *type_; }

private:
    std::string name_;
    std::string help_;
    Reload reload_;
    TypePtr<Items> type_;
};

template <typename Item>
class ListSectionOf final : public AnySection {
public:
    using Items = std::vector<Item>;

    explicit ListSectionOf(ListSection<Item> section) : section_(std::move(section)) {}

    const std::string& name() const override { return section_.name(); }
    const std::string& help() const override { return section_.help(); }
    std::type_index type() const override { return typeid(Items); }
    KeyDescription describe() const override {
        return KeyDescription{.key = name(),
                              .help = help(),
                              .shape = KeyDescription::Shape::kList,
                              .allowed = section_.type().allowed(),
                              .default_value = section_.type().write({}),
                              .example = {},
                              .keys = section_.type().keys()};
    }

    std::shared_ptr<const void> read(const Node& node, Problems& problems) const override {
        // Null is an empty list, as when every item of a section is commented out.
        if (node.kind == Node::Kind::kNull) return std::make_shared<const Items>();
        auto items = section_.type().read(node, name(), problems);
        if (!items) return nullptr;
        return std::make_shared<const Items>(*std::move(items));
    }

    Node write(const void* record) const override {
        return section_.type().write(*static_cast<const Items*>(record));
    }

    std::shared_ptr<const void> merge(const void* old, const void* next,
                                      Changes& changes) const override {
        const Items& old_items = *static_cast<const Items*>(old);
        Items merged = *static_cast<const Items*>(next);
        Changes found;
        section_.type().carry_over(old_items, merged, name(), section_.reload(), found);
        Problems problems;
        section_.type().read(section_.type().write(merged), name(), problems);
        if (!problems.empty()) {
            merged = old_items;
            for (Change& change : found) change.reload = Reload::kRestart;
        }
        for (Change& change : found) changes.push_back(std::move(change));
        return std::make_shared<const Items>(std::move(merged));
    }

private:
    ListSection<Item> section_;
};

}  // namespace fopd::config

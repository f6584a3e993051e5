#pragma once

#include <optional>
#include <string>
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
// its own Reload. If items are added, removed or reordered, the list's Reload decides about that;
// see ListType.
template <typename Item>
class ListSection {
public:
    using Value = std::vector<Item>;

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

    KeyDescription describe_section() const {
        return KeyDescription{.key = name_,
                              .help = help_,
                              .shape = KeyDescription::Shape::kList,
                              .allowed = type_->allowed(),
                              .default_value = type_->write({}),
                              .example = {},
                              .reload = reload_,
                              .keys = type_->keys()};
    }
    std::optional<Value> read_section(const Node& node, Problems& problems) const {
        // Null is an empty list, as when every item of a section is commented out.
        if (node.kind == Node::Kind::kNull) return Value();
        return type_->read(node, name_, problems);
    }
    Node write(const Value& items) const { return type_->write(items); }
    void carry_over_section(const Value& old, Value& next, Changes& changes) const {
        type_->carry_over(old, next, name_, reload_, changes);
    }

private:
    std::string name_;
    std::string help_;
    Reload reload_;
    TypePtr<Value> type_;
};

}  // namespace fopd::config

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"
#include "config/problem.h"

namespace fopd::config {

// When a changed key takes effect: at once on reload, or at the next start.
enum class Reload : std::uint8_t { kRestart, kLive };

// Whether a key may be omitted.
enum class Need : std::uint8_t { kOptional, kRequired };

// A key whose values differ between two snapshots. Values are YAML on one line.
struct Change {
    std::string path;
    std::string old_value;
    std::string new_value;
    Reload reload;
};
using Changes = std::vector<Change>;

// Describes a key, for samples, manual pages and completions.
struct KeyDescription {
    enum class Shape : std::uint8_t { kValue, kList, kMap };

    std::string key;
    std::string help;
    Shape shape = Shape::kValue;
    std::string allowed;  // "a duration such as 30s or 250ms, from 1s to 1h".
    Node default_value;
    std::string example;  // YAML; of a required key, which has no default. Of others mostly empty.
    Need need = Need::kOptional;
    Reload reload = Reload::kRestart;
    std::vector<KeyDescription> keys;  // The keys of a map, or of each map in a list.
};

// How values of a C++ type are represented in the file: parses them strictly, prints them so that
// they parse back to the same value, and describes what is allowed. Immutable.
template <typename T>
class Type {
public:
    virtual ~Type() = default;

    // The value of `node`, whose path is `path`; nothing after adding the reason to `problems`.
    virtual std::optional<T> read(const Node& node, const std::string& path,
                                  Problems& problems) const = 0;

    // The inverse of read(). Equal values have equal nodes and different ones different nodes.
    virtual Node write(const T& value) const = 0;

    // A noun phrase, for "write …".
    virtual std::string allowed() const = 0;

    virtual KeyDescription::Shape shape() const { return KeyDescription::Shape::kValue; }
    virtual std::vector<KeyDescription> keys() const { return {}; }

    // Identifies this value among the items of a list, such as by a name; empty if it has no
    // identity.
    virtual std::string identity(const T& /*value*/) const { return {}; }
    virtual std::string identity_key() const { return {}; }

    // Adds the differences to `changes`, and restores the old value in `next` wherever a restart is
    // needed. `reload` says when a change of the value's key takes effect.
    virtual void carry_over(const T& old, T& next, const std::string& path, Reload reload,
                            Changes& changes) const {
        const std::string old_text = to_line(write(old));
        const std::string new_text = to_line(write(next));
        if (old_text == new_text) return;
        changes.push_back({path, old_text, new_text, reload});
        if (reload == Reload::kRestart) next = old;
    }
};

template <typename T>
using TypePtr = std::shared_ptr<const Type<T>>;

}  // namespace fopd::config

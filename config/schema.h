#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "config/list_section.h"
#include "config/problem.h"
#include "config/section.h"
#include "config/type.h"
#include "core/ensure.h"

namespace fopd::config {

// All values of a configuration at one moment, defaults included, every check passed. Immutable, so
// any thread may read it.
class Snapshot {
public:
    // The section whose struct is S; of a list, that is a vector of its items. Requires: the schema
    // has it.
    template <typename S>
    const S& get() const {
        const void* record = nullptr;
        for (std::size_t index = 0; index < sections_.size(); ++index) {
            if (sections_[index]->type() == typeid(S)) record = records_[index].get();
        }
        ENSURE(record != nullptr);
        return *static_cast<const S*>(record);
    }

    // The same with another section. Requires: the schema has it, and would read what it writes.
    template <typename S>
    std::shared_ptr<const Snapshot> with(S record) const {
        auto changed = std::make_shared<Snapshot>(*this);
        for (std::size_t index = 0; index < sections_.size(); ++index) {
            if (sections_[index]->type() != typeid(S)) continue;
            changed->records_[index] = std::make_shared<const S>(std::move(record));
            return changed;
        }
        ensure_failed("a section of this struct", __FILE__, __LINE__);
    }

private:
    friend class Schema;
    friend struct Merged merge(const std::shared_ptr<const Snapshot>& old,
                               const std::shared_ptr<const Snapshot>& next);
    friend std::string print_effective(const Snapshot& snapshot);

    // The sections' declarations, and in the same order their records.
    std::vector<std::shared_ptr<const AnySection>> sections_;
    std::vector<std::shared_ptr<const void>> records_;
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

// The sections a configuration file may have, in the order they are printed.
class Schema {
public:
    // Requires: neither another section of this name nor one with this struct.
    template <typename S>
    void add(Section<S> section) {
        add(std::make_shared<const SectionOf<S>>(std::move(section)));
    }
    template <typename Item>
    void add(ListSection<Item> section) {
        add(std::make_shared<const ListSectionOf<Item>>(std::move(section)));
    }

    // What must hold between sections, asked when each of them is right by itself. What is wrong is
    // said to be at `section`. A reload may mix old and new sections, so nothing that is live may
    // be part of it. Requires: the section was added.
    using Rule = std::function<std::optional<Mistake>(const Snapshot&)>;
    void rule(const std::string& section, Rule rule);

    // Everything that is wrong, in the order of the file, or a snapshot. Never throws; a file that
    // cannot be read is a problem of the key "file". Reads regular files only, so it never waits.
    std::expected<SnapshotPtr, Problems> load_file(const std::string& file_name) const;

    // `file_name` is what problems say.
    std::expected<SnapshotPtr, Problems> load_text(std::string_view text,
                                                   const std::string& file_name) const;

    const std::vector<std::shared_ptr<const AnySection>>& sections() const { return sections_; }

private:
    void add(std::shared_ptr<const AnySection> section);

    std::vector<std::shared_ptr<const AnySection>> sections_;
    std::vector<std::string> names_;  // Of sections_, in the same order.
    struct Between {
        std::size_t section;  // Where in sections_.
        Rule rule;
    };
    std::vector<Between> rules_;
};

// The whole configuration as YAML, every default written out. Loads back to an equal snapshot,
// equal snapshots print the same.
std::string print_effective(const Snapshot& snapshot);

// 16 hex digits of what print_effective() prints: the same in every build and on every machine.
std::string hash(const Snapshot& snapshot);

// What a reload from `old` to `next` leaves in force: new where that can change at run time, old
// where it needs a restart. Requires for this and diff(): both are of one schema.
struct Merged {
    SnapshotPtr snapshot;
    Changes changes;  // In the order of the schema; Reload says what became of each.
};
Merged merge(const SnapshotPtr& old, const SnapshotPtr& next);

// The keys that differ, in the order of the schema.
Changes diff(const SnapshotPtr& old, const SnapshotPtr& next);

}  // namespace fopd::config

#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "config/list_section.h"
#include "config/problem.h"
#include "config/section.h"
#include "config/type.h"
#include "core/ensure.h"

namespace fopd::config {

// All values of a configuration, including defaults, after all checks. Immutable, so any thread may
// read it.
class Snapshot {
public:
    // The section with the struct S; for a list section, S is a vector of items. REQUIRES: the
    // schema has it.
    template <typename S>
    const S& get() const {
        const void* record = nullptr;
        for (std::size_t index = 0; index < sections_.size(); ++index) {
            if (sections_[index]->type() == typeid(S)) record = records_[index].get();
        }
        ENSURE(record != nullptr);
        return *static_cast<const S*>(record);
    }

    // A copy in which one section is replaced. REQUIRES: the schema has the section, and accepts
    // its values.
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

    // The declarations of the sections, and in the same order their records.
    std::vector<std::shared_ptr<const AnySection>> sections_;
    std::vector<std::shared_ptr<const void>> records_;
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

// The sections of a configuration file, in the order in which they are printed.
class Schema {
public:
    // REQUIRES: no other section has this name or this struct.
    template <typename S>
    void add(Section<S> section) {
        add(std::make_shared<const SectionOf<Section<S>>>(std::move(section)));
    }
    template <typename Item>
    void add(ListSection<Item> section) {
        add(std::make_shared<const SectionOf<ListSection<Item>>>(std::move(section)));
    }

    // A condition on several sections, `section` and `others`, checked if all of them were read
    // without problems, whatever other sections have. Returns all violations, which are reported at
    // `section`, or at their key in it. A reload keeps old values of restart-only keys beside new
    // values of live keys, without checking rules again; so a rule must not depend on live keys,
    // unless what it refuses is harmless then. REQUIRES: the sections were added, and the rule
    // reads no others.
    using Rule = std::function<std::vector<Mistake>(const Snapshot&)>;
    void rule(const std::string& section, const std::vector<std::string>& others, Rule rule);

    // A snapshot, or all problems, in the order of the file. Never throws; an unreadable file is a
    // problem of the key "file". Refuses anything but a regular file, so it never waits for a
    // writer, as it would when it reads a FIFO.
    std::expected<SnapshotPtr, Problems> load_file(const std::string& file_name) const;

    // `file_name` is for problem messages.
    std::expected<SnapshotPtr, Problems> load_text(std::string_view text,
                                                   const std::string& file_name) const;

    const std::vector<std::shared_ptr<const AnySection>>& sections() const { return sections_; }

private:
    void add(std::shared_ptr<const AnySection> section);
    std::size_t index_of(const std::string& section) const;

    std::vector<std::shared_ptr<const AnySection>> sections_;
    std::vector<std::string> names_;  // The names of sections_, in the same order.
    struct Between {
        std::size_t section;  // Index in sections_.
        std::vector<std::size_t> others;
        Rule rule;
    };
    std::vector<Between> rules_;
};

// The whole configuration as YAML, with all defaults. Loads back to an equal snapshot; equal
// snapshots print the same.
std::string print_effective(const Snapshot& snapshot);

// 16 hex digits of a hash of print_effective(); the same in every build and on every machine.
std::string hash(const Snapshot& snapshot);

// The configuration in force after a reload from `old` to `next`: new values where they can change
// at run time, old ones where a restart is needed. REQUIRES: both have the same schema.
struct Merged {
    SnapshotPtr snapshot;
    Changes changes;  // In the order of the schema; `reload` tells which took effect.
};
Merged merge(const SnapshotPtr& old, const SnapshotPtr& next);

}  // namespace fopd::config

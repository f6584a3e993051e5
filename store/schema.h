#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "store/record.h"

namespace fopd::store {

// Rewrites the records of an entry for the next version. REQUIRES: the result is no longer than the
// longest entry allowed, and the same records always give the same result.
using SchemaStep = Result<void> (*)(Bytes records, RecordWriter& into);

// The version of the records that this program writes, and the steps that upgrade records of older
// versions: step n upgrades version n + 1 to n + 2.
struct Schema {
    std::uint32_t version = 1;
    std::span<const SchemaStep> steps{};
};

// A change of the meaning of a record or an index value raises the version and adds a step.
//
// This step copies records unchanged, because old records mean the same in the next version:
// version 2 added kClear; version 3 uses a field of an object that held zeros, for the epoch of the
// log in which it was changed; version 4 added copies, totals and recalls, and a layout for objects
// that are released or whose attributes changed after their content; version 5 added a layout for
// objects of a collection, and for the blocks of released ones.
Result<void> copy_records(Bytes records, RecordWriter& into);
// Version 2 stored a reply under the number of its request, version 3 under the request place.
Result<void> put_replies_in_places(Bytes records, RecordWriter& into);
inline constexpr std::array<SchemaStep, 4> kSchemaSteps{&copy_records, &put_replies_in_places,
                                                        &copy_records, &copy_records};
inline constexpr Schema kSchema{.version = 5, .steps = kSchemaSteps};
static_assert(kSchema.steps.size() + 1 == kSchema.version);

// Upgrades records of any older version.
class SchemaUpgrade {
public:
    explicit SchemaUpgrade(const Schema& schema) : schema_(schema) {}

    struct Records {
        Bytes bytes;
        std::uint32_t count = 0;
    };
    // Valid until the next call. kUnsupported: a version that this program does not know.
    Result<Records> upgraded(std::uint32_t version, Records records);

private:
    const Schema schema_;
    RecordWriter even_;
    RecordWriter odd_;
};

}  // namespace fopd::store

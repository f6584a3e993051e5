#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "store/record.h"

namespace fopd::store {

// Writes the records of an entry as the next version has them. Requires of it: what an entry held
// at most it holds at most afterwards, and the same records become the same ones.
using SchemaStep = Result<void> (*)(Bytes records, RecordWriter& into);

// Which version of the records this program writes, and how it comes there from each earlier one:
// step n leads from version n + 1 to n + 2.
struct Schema {
    std::uint32_t version = 1;
    std::span<const SchemaStep> steps{};
};

// Whoever changes what a record or a value of the index means raises the version and adds a step.
// What is of an older version means the same in the next one: version 2 has kClear besides, and in
// version 3 an object says in which epoch of the log it was changed, where it had zeros.
Result<void> copy_records(Bytes records, RecordWriter& into);
// In version 2 a reply's key was its request's whole number; in version 3 it is the request's
// place.
Result<void> put_replies_in_places(Bytes records, RecordWriter& into);
inline constexpr std::array<SchemaStep, 2> kSchemaSteps{&copy_records, &put_replies_in_places};
inline constexpr Schema kSchema{.version = 3, .steps = kSchemaSteps};
static_assert(kSchema.steps.size() + 1 == kSchema.version);

// Reads records of any version that there was.
class SchemaUpgrade {
public:
    explicit SchemaUpgrade(const Schema& schema) : schema_(schema) {}

    struct Records {
        Bytes bytes;
        std::uint32_t count = 0;
    };
    // Until the next call. kUnsupported for a version that this program does not know.
    Result<Records> upgraded(std::uint32_t version, Records records);

private:
    const Schema schema_;
    RecordWriter even_;
    RecordWriter odd_;
};

}  // namespace fopd::store

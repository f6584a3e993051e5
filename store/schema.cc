#include "store/schema.h"

namespace fopd::store {

Result<void> copy_records(Bytes records, RecordWriter& into) {
    RecordReader reader(records);
    for (;;) {
        const auto record = reader.next();
        if (!record) return std::unexpected(record.error());
        if (!record->has_value()) return {};
        into.copy(reader.bytes());
    }
}

Result<SchemaUpgrade::Records> SchemaUpgrade::upgraded(std::uint32_t version, Records records) {
    if (version == 0 || version > schema_.version) {
        return std::unexpected(
            Error{.code = Errc::kUnsupported, .context = "records of an unknown version"});
    }
    for (; version < schema_.version; ++version) {
        RecordWriter& into = version % 2 == 0 ? even_ : odd_;
        into.clear();
        const Result<void> done = schema_.steps[version - 1](records.bytes, into);
        if (!done) return std::unexpected(done.error());
        records = {.bytes = into.bytes(), .count = into.count()};
    }
    return records;
}

}  // namespace fopd::store

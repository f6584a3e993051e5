// Whatever an entry of a log holds in the place of records: what is accepted says the same when it
// is written again.
//
//     build/fuzz/bin/fuzz_record -max_len=4096 tests/fuzz/corpus/record
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ensure.h"
#include "store/copy.h"
#include "store/record.h"

using namespace fopd::store;

namespace {

void write_again(const Record& record, RecordWriter& writer) {
    switch (record.kind) {
        case RecordKind::kPut: return writer.put(record.key, record.value);
        case RecordKind::kCommit: return writer.commit(record.key, record.value);
        case RecordKind::kForget: return writer.forget(record.key);
        case RecordKind::kPunch: return writer.punch(record.fid, record.first, record.count);
        case RecordKind::kClear: return writer.clear_range(record.fid, record.first, record.count);
        case RecordKind::kRemove: return writer.remove(record.fid);
        case RecordKind::kExtent: {
            ExtentBlocks live;
            ExtentRuns runs(record);
            while (const auto run = runs.next()) {
                for (std::uint32_t i = 0; i < run->count(); ++i)
                    live.set(run->first + i - record.first);
            }
            ENSURE(live.count() * 4 == record.checksums.size());
            return writer.rest_of_extent(record, live);
        }
    }
}

// What a record of the tape says is said again by the same bytes.
void check_copies(const Record& record) {
    if (record.kind != RecordKind::kPut) return;
    ValueBuffer value;
    if (const auto copy = read_copy(record.key, record.value); copy) {
        ENSURE(std::ranges::equal(write_copy(value, *copy), record.value));
    }
    if (const auto total = read_total(record.key, record.value); total) {
        ENSURE(std::ranges::equal(write_total(value, *total), record.value));
    }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    RecordReader reader(std::as_bytes(std::span(data, size_bytes)));
    for (;;) {
        const auto record = reader.next();
        if (!record || !record->has_value()) return 0;
        RecordWriter writer;
        write_again(**record, writer);
        // A dead block at an end goes.
        ENSURE(writer.bytes().size() <= reader.bytes().size());
        RecordReader again(writer.bytes());
        const auto reread = again.next();
        ENSURE(reread.has_value() && reread->has_value());
        ENSURE((*reread)->kind == (*record)->kind);
        check_copies(**record);
    }
}

// Whatever stands in a backup: it is refused, or is the same when it is written again.
//
//     build/fuzz/bin/fuzz_backup -max_len=4000 tests/fuzz/corpus/backup
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/ensure.h"
#include "store/backup.h"

using namespace fopd;
using namespace fopd::store;

namespace {

// The chunks of a backup, one behind the other; false at the first thing that is wrong.
bool write_again(Bytes bytes, std::optional<BackupWriter>& writer) {
    BackupReader reader;
    if (bytes.size() < kBackupHeadBytes) return false;
    const auto head = reader.head(bytes.first(kBackupHeadBytes));
    if (!head) return false;
    writer.emplace(*head);
    bytes = bytes.subspan(kBackupHeadBytes);
    while (!reader.ended()) {
        if (bytes.size() < kBackupChunkHeadBytes) return false;
        const auto chunk = reader.chunk_head(bytes.first(kBackupChunkHeadBytes));
        if (!chunk) return false;
        bytes = bytes.subspan(kBackupChunkHeadBytes);
        if (bytes.size() < chunk->payload_bytes) return false;
        const Bytes payload = bytes.first(chunk->payload_bytes);
        bytes = bytes.subspan(chunk->payload_bytes);
        const auto tree = reader.payload(*chunk, payload);
        if (!tree) return false;
        if (*tree) writer->begin_tree(**tree);
        switch (chunk->kind) {
            case BackupChunk::kSlots:
                writer->slots({reinterpret_cast<const char*>(payload.data()), payload.size()});
                break;
            case BackupChunk::kMedia:
                writer->media({reinterpret_cast<const char*>(payload.data()), payload.size()});
                break;
            case BackupChunk::kEntries: {
                BackupEntries entries(payload);
                for (auto entry = entries.next(); *entry; entry = entries.next()) {
                    writer->entry(**entry);
                }
                break;
            }
            case BackupChunk::kTreeEnd: writer->end_tree(); break;
            case BackupChunk::kEnd: writer->end(); break;
            case BackupChunk::kTree: break;
        }
    }
    return bytes.empty();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const Bytes bytes = std::as_bytes(std::span(data, size_bytes));
    std::optional<BackupWriter> writer;
    // Entries may have been cut into chunks elsewhere: what is written then is read, and stays so.
    if (!write_again(bytes, writer)) return 0;
    std::optional<BackupWriter> again;
    ENSURE(write_again(writer->bytes(), again));
    ENSURE(std::ranges::equal(again->bytes(), writer->bytes()));
    return 0;
}

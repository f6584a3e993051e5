#include "library/returned_objects.h"

#include <algorithm>

namespace fopd::library {

void ReturnedObjects::add(const Object& object, std::span<const store::ClientId> readers) {
    if (due_.size() >= kObjectsMax) return;
    objects_[object.fid] = {.until = object.until,
                            .until_max = after(object.until, kMoreMax),
                            .size_bytes = object.size_bytes,
                            .readers = {},
                            .has_more_readers = false};
    due_.insert({.until = object.until, .fid = object.fid});
    for (const store::ClientId& each : readers) add_reader(object.fid, each);
}

void ReturnedObjects::add_reader(store::Fid fid, store::ClientId reader) {
    // A client without an id cannot be recognised when it reads.
    if (reader == store::ClientId{}) return;
    const auto found = objects_.find(fid);
    if (found == objects_.end()) return;
    Kept& kept = found->second;
    // A client may wait with several requests, and read the object only once.
    if (std::ranges::find(kept.readers, reader, &Reader::client) != kept.readers.end()) return;
    if (kept.readers.size() >= kReadersMax) {
        kept.has_more_readers = true;
        return;
    }
    kept.readers.push_back({.client = reader, .left_bytes = kept.size_bytes});
}

bool ReturnedObjects::note_read(store::Fid fid, store::ClientId reader, std::uint64_t bytes,
                                Instant until) {
    const auto found = objects_.find(fid);
    if (found == objects_.end()) return false;
    Kept& kept = found->second;
    std::vector<Reader>& readers = kept.readers;
    const auto known = std::ranges::find(readers, reader, &Reader::client);
    if (known == readers.end()) return false;
    known->left_bytes -= std::min(known->left_bytes, bytes);
    if (known->left_bytes > 0) {
        if (bytes > 0) kept.until = std::max(kept.until, std::min(until, kept.until_max));
        return false;
    }
    readers.erase(known);
    if (!readers.empty() || kept.has_more_readers) return false;
    objects_.erase(found);
    return true;
}

std::optional<ReturnedObjects::Due> ReturnedObjects::next_due() const {
    if (due_.empty()) return std::nullopt;
    return *due_.begin();
}

void ReturnedObjects::end(const Due& due) {
    if (due_.erase(due) == 0) return;
    const auto kept = objects_.find(due.fid);
    if (kept == objects_.end()) return;
    // It is being read, or has come back again.
    if (kept->second.until > due.until) {
        due_.insert({.until = kept->second.until, .fid = due.fid});
        return;
    }
    objects_.erase(kept);
}

}  // namespace fopd::library

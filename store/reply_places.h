#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "store/object.h"

namespace fopd::store {

// A cache of the request places whose replies were looked up or changed last. It says whose reply
// each place has. Code that changes a reply in the index also calls set(), so that most lookups
// need not read the index. Two places may share an entry; the later one has it.
class ReplyPlaces {
public:
    ReplyPlaces() : entries_(kEntryCount) {}

    // The number of the request whose reply has the place of `key`; 0: none has. Nothing when it is
    // not known here.
    std::optional<std::uint64_t> find(const ReplyKey& key) const {
        const Entry& entry = entries_[index_of(key)];
        if (!entry.is_known || entry.client != key.client || entry.place != key.place()) return {};
        return entry.newest;
    }
    void set(const ReplyKey& key, std::uint64_t newest) {
        entries_[index_of(key)] = {
            .client = key.client, .newest = newest, .place = key.place(), .is_known = true};
    }

private:
    static constexpr std::size_t kEntryCount = 4096;
    struct Entry {
        ClientId client{};
        std::uint64_t newest = 0;
        std::uint16_t place = 0;
        bool is_known = false;
    };

    // The request places of a client have entries side by side. The client's id, which is a hash,
    // says where these begin.
    static std::size_t index_of(const ReplyKey& key) {
        std::uint64_t start = 0;
        std::memcpy(&start, key.client.bytes.data(), sizeof start);
        return (start + key.place()) % kEntryCount;
    }

    std::vector<Entry> entries_;
};

}  // namespace fopd::store

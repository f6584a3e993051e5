#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/time.h"
#include "store/fid.h"
#include "store/object.h"

namespace fopd::library {

// Recalled objects that stay on their disk, so that the clients that have waited for them can read
// them: until each of these clients has read as many bytes as the object has, but not longer than
// until a given time. An object for which no client has waited stays until that time. Pure.
class ReturnedObjects {
public:
    struct Object {
        store::Fid fid{};
        std::uint64_t size_bytes = 0;
        Instant until{};
    };
    // The object is back. REQUIRES: no object was added with a later time.
    void add(const Object& object, std::span<const store::ClientId> readers);
    // One more client has waited for the object. Nothing happens if the object does not stay.
    void add_reader(store::Fid fid, store::ClientId reader);
    // A client has read so many bytes. True: the object need not stay any more, and is forgotten.
    bool note_read(store::Fid fid, store::ClientId reader, std::uint64_t bytes);

    bool contains(store::Fid fid) const { return objects_.contains(fid); }

    // The object whose time is over next; it may have been read since it was added.
    struct Due {
        Instant until{};
        store::Fid fid{};
    };
    std::optional<Due> next_due() const;
    // Forgets the object of next_due(). REQUIRES: there is one.
    void end_next();

private:
    struct Reader {
        store::ClientId client{};
        std::uint64_t left_bytes = 0;
    };
    struct Kept {
        Instant until{};
        std::uint64_t size_bytes = 0;
        std::vector<Reader> readers;  // Those that have not read the whole object yet.
    };

    std::map<store::Fid, Kept> objects_;
    std::deque<Due> due_;  // In the order of their times; also of objects that were read.
};

}  // namespace fopd::library

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/time.h"
#include "store/fid.h"
#include "store/object.h"

namespace fopd::library {

// Recalled objects that stay on their disk, so that the clients that have waited for them can read
// them: until each of these clients has read as many bytes as the object has, but not longer than
// until a given time, which is later while one of them reads, but not by more than kMoreMax. An
// object for which no client has waited stays until that time. Pure.
class ReturnedObjects {
public:
    // A client that reads in very small parts must not keep the object for ever.
    static constexpr Duration kMoreMax = 10min;
    // Of those who wait for an object, more are not told apart: it stays until its time is over.
    static constexpr std::size_t kReadersMax = 64;
    // Further objects may leave at once.
    static constexpr std::size_t kObjectsMax = 65'536;

    struct Object {
        store::Fid fid{};
        std::uint64_t size_bytes = 0;
        Instant until{};
    };
    // The object is back.
    void add(const Object& object, std::span<const store::ClientId> readers);
    // One more client has waited for the object. Nothing happens if the object does not stay.
    void add_reader(store::Fid fid, store::ClientId reader);
    // A client has read so many bytes. If these are some, but it needs more, the object stays until
    // that time at least, within kMoreMax.
    // True: the object need not stay any more, and is forgotten.
    bool note_read(store::Fid fid, store::ClientId reader, std::uint64_t bytes, Instant until);

    bool contains(store::Fid fid) const { return objects_.contains(fid); }

    // The object whose time is over next; it may have been read since it was added, or have more
    // time by now.
    struct Due {
        Instant until{};
        store::Fid fid{};

        friend auto operator<=>(const Due&, const Due&) = default;
    };
    std::optional<Due> next_due() const;
    // Forgets the object, which next_due() gave, if its time is over then. Nothing happens if this
    // was done already.
    void end(const Due& due);

private:
    struct Reader {
        store::ClientId client{};
        std::uint64_t left_bytes = 0;
    };
    struct Kept {
        Instant until{};
        Instant until_max{};
        std::uint64_t size_bytes = 0;
        std::vector<Reader> readers;  // Those that have not read the whole object yet.
        bool has_more_readers = false;
    };

    std::map<store::Fid, Kept> objects_;
    std::set<Due> due_;  // Also of objects that were read. At least one for each object.
};

}  // namespace fopd::library

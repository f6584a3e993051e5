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

// Recalled objects that stay on their disk, so that the clients that have waited for the recall can
// read them. An object may leave when each of these clients has read as many bytes as the object
// has, or when its time is over. Reads of these clients extend the time, by kMoreMax at most. An
// object for which no client has waited stays until its time is over. Pure.
class ReturnedObjects {
public:
    // A client that reads in very small parts must not keep the object for ever.
    static constexpr Duration kMoreMax = 10min;
    // An object that more clients wait for stays until its time is over, even if all have read it.
    static constexpr std::size_t kReadersMax = 64;
    // Objects beyond this number may be released at once.
    static constexpr std::size_t kObjectsMax = 65'536;

    struct Object {
        store::Fid fid{};
        std::uint64_t size_bytes = 0;
        Instant until{};
    };
    // Adds an object whose bytes have come back.
    void add(const Object& object, std::span<const store::ClientId> readers);
    // One more client has waited for the object. Nothing happens if the object does not stay.
    void add_reader(store::Fid fid, store::ClientId reader);
    // A client has read so many bytes. If it has read some and needs more, extends the time of the
    // object to `until`, within kMoreMax. Returns true if the object need not stay any more; it is
    // then forgotten.
    bool note_read(store::Fid fid, store::ClientId reader, std::uint64_t bytes, Instant until);

    bool contains(store::Fid fid) const { return objects_.contains(fid); }

    // The next time at which end() has to be called, and the object. Until then the object may be
    // read, or its time extended.
    struct Due {
        Instant until{};
        store::Fid fid{};

        friend auto operator<=>(const Due&, const Due&) = default;
    };
    std::optional<Due> next_due() const;
    // Forgets the object of next_due() if its time is over. Has no effect if it was forgotten
    // already.
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
        std::vector<Reader> readers;  // The clients that have not read the whole object yet.
        bool has_more_readers = false;
    };

    std::map<store::Fid, Kept> objects_;
    // At least one entry for each object; may have objects that are not in objects_ any more.
    std::set<Due> due_;
};

}  // namespace fopd::library

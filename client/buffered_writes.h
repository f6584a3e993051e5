// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "client/held_writes.h"
#include "client/lost_writes.h"
#include "client/object_call.h"
#include "client/slots.h"
#include "core/wait_queue.h"

namespace fopd::client {

struct WriteWish {
    fop::Fid fid{};
    std::uint64_t offset = 0;
    std::span<const std::byte> from{};
    fop::Durability durability = fop::Durability::kDurable;
};

// Changes objects, and keeps the bytes of buffered writes until they are durable. When a reply
// shows that the server has restarted, the buffered writes that it has lost are sent again: those
// of the reply's object before the reply is used, those of other objects of its slot afterwards.
// Other changes of an object wait until its lost writes are sent. The outcome of a call does not
// depend on the writes of other objects.
//
// A lost write that the server refuses for a lasting reason is reported to its writer once, as
// kLost, by the next call about the object or by the next sync. After a temporary failure the write
// is kept, and tried again later.
//
// Lives on the reactor of `slots`.
class BufferedWrites {
public:
    explicit BufferedWrites(Slots& slots) : slots_(slots), changed_(slots.reactor()) {}
    BufferedWrites(const BufferedWrites&) = delete;
    BufferedWrites& operator=(const BufferedWrites&) = delete;

    HeldWrites& held() { return held_; }

    Task<Outcome<void>> write(WriteWish wish, Wait wait);
    // A durable change in one fop. After a success the caller removes the bytes that the change
    // covers from held(), then calls end_change().
    Task<Outcome<fabric::Answer>> change(fop::Fid fid, fabric::CallRequest request,
                                         std::span<const std::byte> data = {});
    void end_change(const fop::Fid& fid);

    // Called for each reply about an object, before the reply is used. `incarnation`: that of the
    // slot, according to the reply. If writes of the object may have been lost, writes them again
    // and returns true: the caller must discard the reply and repeat its call.
    Task<Outcome<bool>> catch_up(fop::Fid fid, std::uint64_t incarnation, Wait wait);
    // Called after a call has ended: writes the lost writes of all other objects of the slot again.
    // A write that fails is kept, and tried again later.
    Task<void> catch_up_others(std::uint16_t slot, std::uint64_t incarnation, Wait wait);
    // Returns when all writes in the scope that were kept before the call are durable or lost for
    // good. A write that fails is kept; the others continue, unless the server accepts no writes.
    // Returns the first failure.
    Task<Outcome<void>> make_durable(HeldScope scope, Wait wait);

    // Fails with kLost if writes of the object are lost, and that was not reported yet.
    Outcome<void> report_lost(fop::Fid fid);
    // Like report_lost(), for all objects.
    Outcome<void> report_all_lost();

private:
    // The operations in progress on an object.
    struct Use {
        std::uint32_t changes = 0;
        bool writing_again = false;
    };

    bool writes_again(const fop::Fid& fid) const;
    Task<Outcome<void>> wait_for_writing_again(fop::Fid fid, Wait wait);
    Task<Outcome<void>> begin_change(fop::Fid fid, Wait wait);
    Task<Outcome<void>> ask_sync_of_all(HeldScope scope, std::vector<fop::Receipt>* behind,
                                        Wait wait);
    Task<Outcome<void>> ask_sync(std::vector<fop::Receipt> receipts,
                                 std::vector<fop::Receipt>* behind, Wait wait);
    Task<Outcome<void>> write_again(std::vector<fop::Receipt> durable, HeldScope scope, Wait wait);
    Task<Outcome<void>> write_object_again(fop::Fid fid, fop::Receipt durable, Wait wait);
    Task<Outcome<void>> write_parts_again(fop::Fid fid, fop::Receipt durable, Wait wait);
    void give_up_slot(std::uint16_t slot, std::uint64_t incarnation);
    void give_up(const HeldWrites::Part& part, std::string_view why);

    Slots& slots_;
    HeldWrites held_;
    LostWrites lost_;
    std::map<fop::Fid, Use> uses_;
    core::WaitQueue changed_;
};

}  // namespace fopd::client

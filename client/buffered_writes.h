// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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

// Writes and other changes of objects, and the care for buffered writes until they are durable. If
// the server shows in a reply that it has started anew, the buffered writes that it has lost are
// written again before the reply is used. Other changes wait meanwhile.
//
// A lost write that cannot be written again is reported to its writer once, as kLost: by the next
// call about the object, or by the next sync.
//
// Lives on the reactor of `slots`.
class BufferedWrites {
public:
    explicit BufferedWrites(Slots& slots) : slots_(slots), changed_(slots.reactor()) {}
    BufferedWrites(const BufferedWrites&) = delete;
    BufferedWrites& operator=(const BufferedWrites&) = delete;

    HeldWrites& held() { return held_; }

    Task<Outcome<void>> write(WriteWish wish, Wait wait);
    // A durable change in one fop. After a success the caller removes the bytes that it covers from
    // held(), and calls end_change().
    Task<Outcome<fabric::Answer>> change(fop::Fid fid, fabric::CallRequest request,
                                         std::span<const std::byte> data = {});
    void end_change();

    // Called with the incarnation of a slot that a reply shows: writes again what earlier ones have
    // lost.
    Task<Outcome<void>> catch_up(std::uint16_t slot, std::uint64_t incarnation, Wait wait);
    // Returns when everything that was held before is durable, or is lost for good.
    Task<Outcome<void>> make_durable(Wait wait);

    // Fails with kLost if writes of this object are lost and that was not reported yet.
    Outcome<void> report_lost(fop::Fid fid);
    // The same for any object.
    Outcome<void> report_all_lost();

private:
    Task<Outcome<void>> wait_for_writing_again(Wait wait);
    Task<Outcome<void>> begin_change(fop::Fid fid, Wait wait);
    Task<Outcome<std::vector<fop::Receipt>>> ask_sync(std::vector<fop::Receipt> receipts,
                                                      Wait wait);
    Task<Outcome<void>> write_again(std::vector<fop::Receipt> durable, Wait wait);
    Task<Outcome<void>> write_pieces_again(std::vector<fop::Receipt> durable, Wait wait);
    void give_up_slot(std::uint16_t slot, std::uint64_t incarnation);

    Slots& slots_;
    HeldWrites held_;
    LostWrites lost_;
    std::uint32_t changes_ = 0;  // In flight.
    bool writing_again_ = false;
    core::WaitQueue changed_;
};

}  // namespace fopd::client

#pragma once

#include "eh/peers/wire.h"
#include "eh/view.h"

namespace fopd::eh::peers {

// The layouts of a view's parts, in records of the view store and in messages. Each template serves
// both directions: a WireWriter writes a const object, and a WireReader fills one.

template <typename Wire, typename Entry>
void entry_fields(Wire& wire, Entry& entry) {
    wire.text(entry.name, kMemberNameMax);
    wire.number(entry.incarnation);
    wire.text(entry.address, kMemberAddressMax);
    wire.number(entry.joined);
    wire.flag(entry.takes_part);
}

template <typename Wire, typename Record>
void start_fields(Wire& wire, Record& record) {
    wire.number(record.view);
    wire.number(record.round);
    wire.signed_number(record.epoch);
    wire.number(record.count);
    // The flag says whether `data` is big-endian; is_foreign says that it differs from this host.
    if constexpr (Wire::kReads) {
        bool is_big = false;
        wire.flag(is_big);
        record.is_foreign = is_big != kHostIsBig;
    } else {
        wire.flag(record.is_foreign != kHostIsBig);
    }
    wire.data(record.data, kEpochBytesMax);
}

// All fields of a view but its roster.
template <typename Wire, typename Rest>
void rest_fields(Wire& wire, Rest& view) {
    wire.number(view.number);
    wire.signed_number(view.epoch_low);
    wire.signed_number(view.epoch_high);
    wire.number(view.rules_hash);
    wire.text(view.writer.name, kMemberNameMax);
    wire.number(view.writer.incarnation);
    wire.number(view.writer.attempt);
    start_fields(wire, view.carry);
    wire.list(view.gone, kGoneMax, [&](auto& gone) {
        wire.text(gone.name, kMemberNameMax);
        wire.number(gone.incarnation);
    });
}

}  // namespace fopd::eh::peers

#pragma once

#include <cstdint>
#include <optional>

#include "core/task.h"
#include "fop/fid.h"
#include "fop/fop_type.h"
#include "fop/message.h"
#include "store/fid.h"

namespace fopd::reqh {

class Operation;

// The object a fop names, and where its data begins there.
struct Aim {
    fop::Fid object{};
    std::uint64_t offset = 0;
};

// What a type of fop is about.
struct Executor {
    std::uint16_t type;
    bool needs_stores = false;
    // Whether a token for one object is enough; it is compared where the object is loaded.
    bool is_about_object = false;
    // Whether it needs a piece of buffer.
    bool needs_piece = false;
    // The slot it goes to; null: it runs where it arrived.
    store::Slot (*slot)(const fop::Request& request) = nullptr;
    // Null: it names no object.
    Aim (*aim)(const fop::Request& request) = nullptr;
    // How many bytes it moves besides its payload; null: none.
    std::uint64_t (*bulk_bytes)(const fop::Request& request) = nullptr;
    // All its steps after the local resources. The reply may borrow from the operation.
    Task<fop::Reply> (*run)(Operation* operation);
};

const Executor& executor_of(const fop::FopType& type);

}  // namespace fopd::reqh

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/task.h"
#include "fop/fid.h"
#include "fop/fop_type.h"
#include "fop/message.h"
#include "lrs/request.h"
#include "objects/stores.h"
#include "store/fid.h"

namespace fopd::objects {
struct RecordedReply;
}

namespace fopd::reqh {

class Operation;

// The object a fop names, and where its data begins there.
struct Aim {
    fop::Fid object{};
    std::uint64_t offset = 0;
};

// What a token has to be for.
enum class About : std::uint8_t {
    kNode,      // The server as a whole: a token for a pool or an object is not enough.
    kAnything,  // Nothing that has rights of its own: any token will do.
    kPool,      // That of its slot, or else that of the header.
    kName,      // An object of the header's pool; which one shows when it is found.
    kObject,    // The one of `aim`, in its slot's pool.
};

// What a type of fop does.
struct Executor {
    std::uint16_t type;
    bool needs_stores = false;
    About about = About::kNode;
    // Whether it needs a piece of buffer.
    bool needs_piece = false;
    // The slot it goes to; null: it runs where it arrived.
    store::Slot (*slot)(const fop::Request& request) = nullptr;
    // Null: it names no object.
    Aim (*aim)(const fop::Request& request) = nullptr;
    // How many bytes it moves besides its payload; null: none.
    std::uint64_t (*bulk_bytes)(const fop::Request& request) = nullptr;
    // What is answered when it was made before. Null: it does no harm when it is made again. Only
    // where there is a slot, which remembers it.
    fop::Reply (*told_again)(const Operation& operation,
                             const objects::RecordedReply& reply) = nullptr;
    // All its steps after the local resources, and after its home was found if it has a slot. The
    // reply may borrow from the operation.
    Task<fop::Reply> (*run)(Operation* operation);
};

const Executor& executor_of(const fop::FopType& type);

// Whether it has to wait for its client once it runs: its bytes come from, or go to, memory of the
// client instead of travelling in the messages.
bool moves_client_memory(const fop::Request& request);

// The pool a fop is about: that of its slot, or else the one its header names. Null: it is about
// none, or about one that is not there.
const objects::PoolPlace* pool_of(const Executor& executor, const fop::Request& request,
                                  std::string_view header_pool, const objects::StoreLayout& layout);

// Fills in the pool of a described fop as for one that arrives, so that both match the same rules;
// the text of the pool is borrowed from the layout. Returns, for people, why no such fop can exist,
// if so.
std::optional<std::string> complete(lrs::RequestAttributes& described,
                                    const objects::StoreLayout& layout);

}  // namespace fopd::reqh

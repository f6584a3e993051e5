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

// The object that a fop names, and the offset of its data in it.
struct Aim {
    fop::Fid object{};
    std::uint64_t offset = 0;
};

// The target that a token must be valid for, so that it permits the fop.
enum class About : std::uint8_t {
    kNode,      // The server as a whole: a token for a pool or an object is not enough.
    kAnything,  // Nothing that has its own access rights: any token is enough.
    kPool,      // The pool of the fop; see pool_of().
    kName,      // An object of the header's pool, known only when the name is found.
    kObject,    // The object of `aim`, in its pool.
};

// How fops of a type are executed.
struct Executor {
    std::string_view name;  // The type's name in fop::kFopTypes.
    bool needs_stores = true;
    About about = About::kNode;
    // Whether it needs a buffer.
    bool needs_buffer = false;
    // Not in the rows, as the bodies say these two and `told_again`.
    // The slot whose home executes it; null: the locality that received it.
    store::Slot (*slot)(const fop::Request& request) = nullptr;
    // Null: the fop names no object.
    Aim (*aim)(const fop::Request& request) = nullptr;
    // The number of bytes moved in addition to the payload; null: none.
    std::uint64_t (*bulk_bytes)(const fop::Request& request) = nullptr;
    // Makes the reply to a fop that was executed before, from its recorded reply. Null: the fop may
    // be executed again. Not null only if `slot` is not null: the disk of the slot stores the
    // reply.
    fop::Reply (*told_again)(const Operation& operation,
                             const objects::RecordedReply& reply) = nullptr;
    // Executes the fop, after the local resources were acquired and, if the fop has a slot, on the
    // home of the slot. The reply may borrow from the operation. Null for fops between daemons, for
    // which no fom begins.
    Task<fop::Reply> (*run)(Operation* operation);
};

const Executor& executor_of(const fop::FopType& type);

// Whether the fop waits for its client while it runs: its bytes are moved from or to the client's
// memory instead of being part of the messages.
bool moves_client_memory(const fop::Request& request);

// The pool of a fop, as far as it is known before an object is loaded. Without a slot: the pool in
// the header. With a slot: the pool of its disk, but where that is the staging of others,
// - for a new object, the pool in the header if the slot takes its objects;
// - for an object, the pool in its record if its home is here, otherwise as for a new one.
// Null if the fop has no pool, or the pool does not exist.
const objects::LayoutPool* pool_of(const Executor& executor, const fop::Request& request,
                                   std::string_view header_pool, objects::Stores& stores);

// Sets the pool of a described fop as for a fop that arrives, so that both match the same rules;
// the pool's name is borrowed from the layout. Returns why no such fop can exist, if so.
struct Impossible {
    enum class Kind : std::uint8_t {
        kContradiction,
        kUnknown,  // It names a pool or a slot that does not exist.
    };
    Kind kind;
    std::string words;
};
std::optional<Impossible> complete(lrs::RequestAttributes& described,
                                   const objects::StoreLayout& layout);

}  // namespace fopd::reqh

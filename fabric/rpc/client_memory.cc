#include <utility>

#include "fabric/rpc/client.h"
#include "fop/descriptor.h"

namespace fopd::fabric {

namespace {

// Calls `fill` with each descriptor that a body may have.
template <typename Fill>
void fill_descriptors(fop::RequestBody& body, Fill fill) {
    std::visit(
        [&fill](auto& each) {
            if constexpr (requires { each.source; }) fill(each.source, Access::kRead);
            if constexpr (requires { each.target; }) fill(each.target, Access::kWrite);
        },
        body);
}

}  // namespace

bool Client::Call::open_memory(const Session& session, fop::RequestBody& body) {
    bool opened = true;
    TransferMachine& machine = client_.host_.machine();
    fill_descriptors(body, [&](auto& descriptor, Access access) {
        const bool readable = access == Access::kRead;
        const std::span<std::byte> memory = readable ? request_.source : request_.target;
        std::optional<RemoteMemory>& kept = open_memory_[readable ? 0 : 1];
        if (memory.empty()) return;
        if (!kept) {
            const auto remote = machine.open_memory(memory, access);
            if (!remote) {
                opened = false;
                return;
            }
            kept = *remote;
        }
        descriptor = fop::seal(fop::Descriptor{.use = readable ? fop::DescriptorUse::kPeerReads
                                                               : fop::DescriptorUse::kPeerWrites,
                                               .session = session.id(),
                                               .operation = id_,
                                               .address = kept->address,
                                               .key = kept->key,
                                               .bytes = memory.size()},
                               session.descriptor_key());
    });
    return opened;
}

void Client::Call::close_memory() {
    client_.close_memory(open_memory_);
}

void Client::close_memory(OpenMemory& memory) {
    for (std::optional<RemoteMemory>& each : memory) {
        if (each) host_.machine().close_memory(*each);
        each.reset();
    }
}

// The memory stays open, without effect, until the server has answered. False: the transport cannot
// take it back.
bool Client::Call::take_back_memory() {
    for (const std::optional<RemoteMemory>& each : open_memory_) {
        if (each && !client_.host_.machine().take_back_memory(*each)) return false;
    }
    client_.calls_[id_ % kCallsMax].taken_back = std::exchange(open_memory_, {});
    return true;
}

}  // namespace fopd::fabric

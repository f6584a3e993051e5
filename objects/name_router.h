#pragma once

#include <vector>

#include "store/name_sink.h"

namespace fopd::objects {

// Distributes a volume's names among the parts of the node's names. Lives on the volume's reactor.
class NameRouter final : public store::NameSink {
public:
    // `parts`: all parts, by number; they outlive it.
    explicit NameRouter(std::vector<store::NameSink*> parts);

    // The least that any part knows.
    Task<Result<std::uint64_t>> known(devices::DiskId disk) override;
    Task<Result<void>> forget(Origin origin) override;
    Task<Result<void>> tell(const store::NameChanges* changes) override;
    // Sent to all parts, so that each knows that it has received everything.
    Task<Result<void>> keep(Kept kept) override;
    Task<Result<ClaimPage>> claims(store::Slot slot, ClaimCursor from) override;
    Task<Result<void>> remove_known(std::vector<store::NameClaim>* claims) override;

private:
    const std::vector<store::NameSink*> parts_;
};

}  // namespace fopd::objects

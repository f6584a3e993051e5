#pragma once

#include <vector>

#include "store/name_sink.h"

namespace fopd::objects {

// Divides what a volume tells among the parts of a node's names. Lives on the volume's reactor.
class NameRouter final : public store::NameSink {
public:
    // Part n of as many as there are; they outlive it.
    explicit NameRouter(std::vector<store::NameSink*> parts);

    // What all of them know.
    Task<Result<std::uint64_t>> known(devices::DiskId disk) override;
    Task<Result<void>> forget(Origin origin) override;
    Task<Result<void>> tell(const store::NameChanges* changes) override;
    // All of them hear of it, so that each knows that it knows everything.
    Task<Result<void>> keep(Kept kept) override;
    Task<Result<ClaimPage>> claims(store::Slot slot, ClaimPlace from) override;
    Task<Result<void>> leave_unknown(std::vector<store::NameClaim>* claims) override;

private:
    const std::vector<store::NameSink*> parts_;
};

}  // namespace fopd::objects

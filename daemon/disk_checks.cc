#include "daemon/disk_checks.h"

#include "core/remote.h"

namespace fopd::daemon {

namespace {

std::unexpected<Error> not_there() {
    return std::unexpected(Error{.code = Errc::kNotFound, .context = "the disk is not there"});
}

}  // namespace

Task<Result<void>> DiskChecks::scrub(std::string disk, bool begin) {
    const NodeDisk* const which = disks_.find(disk);
    if (which == nullptr) co_return not_there();
    Locality& locality = *localities_[which->locality().index];
    auto order = [which, &locality, begin]() -> Result<void> {
        if (which->volume() == nullptr) return not_there();
        Result<void> ordered;
        if (begin) {
            ordered = locality.scrub()->begin(*which->slot());
        } else {
            locality.scrub()->end(*which->slot());
        }
        locality.publish();
        return ordered;
    };
    const auto done = co_await core::run_on(control_, locality.reactor(), order);
    co_return done;
}

Task<Result<void>> DiskChecks::check_store(std::string disk, bool begin) {
    const NodeDisk* const which = disks_.find(disk);
    if (which == nullptr) co_return not_there();
    Locality& locality = *localities_[which->locality().index];
    auto order = [which, &locality, begin]() -> Result<void> {
        if (which->volume() == nullptr) return not_there();
        if (begin) return locality.store_check()->begin(*which->slot());
        locality.store_check()->end(*which->slot());
        return {};
    };
    const auto done = co_await core::run_on(control_, locality.reactor(), order);
    co_return done;
}

Task<objects::CheckStatus> DiskChecks::store_check(std::string disk) {
    const NodeDisk* const which = disks_.find(disk);
    if (which == nullptr) co_return objects::CheckStatus{};
    Locality& locality = *localities_[which->locality().index];
    auto ask = [which, &locality]() -> objects::CheckStatus {
        if (which->volume() == nullptr) return {};
        return locality.store_check()->status(*which->slot());
    };
    auto status = co_await core::run_on(control_, locality.reactor(), ask);
    co_return status;
}

}  // namespace fopd::daemon

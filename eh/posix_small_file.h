#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/gate.h"
#include "core/offload.h"
#include "core/reactor.h"
#include "core/task.h"
#include "eh/small_file.h"

namespace fopd::eh {

// Reads a whole file. Blocks. kNotFound: there is no such file.
Result<std::vector<std::byte>> read_small_file(const std::string& path);
// Replaces a file durably: writes a new file beside it, syncs that, renames it, and syncs the
// directory. Blocks.
Replaced replace_small_file(const std::string& path, std::span<const std::byte> bytes);

// A small file of a file system. Its calls block, so they run on threads of an Offload.
class PosixSmallFile final : public SmallFile {
public:
    // `reactor` and `offload` outlive the file. The user is answered on `reactor`.
    PosixSmallFile(core::Reactor& reactor, core::Offload& offload, std::string path)
        : reactor_(reactor), offload_(offload), path_(std::move(path)) {}

    void read(SmallFileUser& user) override;
    void replace(std::vector<std::byte> bytes, SmallFileUser& user) override;
    // Waits for the call in flight, which is still answered. False: it has not ended by the
    // deadline, because the file system hangs, and this must not be destroyed.
    Task<bool> close(Instant deadline);

private:
    Task<void> read_for(SmallFileUser* user);
    Task<void> replace_for(SmallFileUser* user, std::vector<std::byte> bytes);

    core::Reactor& reactor_;
    core::Offload& offload_;
    const std::string path_;
    core::Gate work_;
};

}  // namespace fopd::eh

#include "daemon/node_id.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fcntl.h>
#include <unistd.h>

#include "core/owned_fd.h"
#include "daemon/durable_file.h"

namespace fopd::daemon {

namespace {

std::unexpected<StartProblem> refuse_id(const std::string& path, const std::string& why,
                                        int os_errno = 0) {
    return std::unexpected(StartProblem{.exit_code = exit_code_for(os_errno, kExitDataDir),
                                        .message = path + ": " + why});
}

// The node that a disk belongs to, as its newest label says; nothing if it has no label that can be
// read, or was let go.
std::optional<devices::NodeId> owner_of(const std::string& path) {
    const core::OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) return std::nullopt;
    devices::LabelCopies copies;
    for (std::size_t i = 0; i < copies.size(); ++i) {
        // A block that cannot be read stays zeros, which are no label.
        std::array<std::byte, devices::kBlockBytes> block{};
        const auto at = static_cast<off_t>(i * devices::kBlockBytes);
        [[maybe_unused]] const ssize_t got = ::pread(file.get(), block.data(), block.size(), at);
        copies[i] = devices::read_label(block);
    }
    const auto newest = newest_of(copies);
    const bool is_in_use = newest && newest->state == devices::LabelState::kActive;
    return is_in_use ? std::optional(newest->owner) : std::nullopt;
}

// Describes the evidence of an earlier node id and how to restore it. Empty: no evidence. `damage`
// describes the damage of the file.
std::string sign_of_earlier_id(const std::string& damage, const std::string& data_dir,
                               const std::vector<std::string>& disk_paths) {
    std::set<devices::NodeId> owners;
    std::string disks;
    for (const std::string& path : disk_paths) {
        const auto owner = owner_of(path);
        if (!owner) continue;
        owners.insert(*owner);
        disks += (disks.empty() ? "the disk " : ", the disk ") + path + " belongs to node " +
                 devices::format_id(*owner);
    }
    if (!owners.empty()) {
        return damage + ", and " + disks +
               ": for that node, mount the file system of node.data_dir if it is not mounted, put "
               "the file back from a backup, or write " +
               (owners.size() == 1 ? "these 32 digits" : "the 32 digits of the right node") +
               " into it; for a new node, take the disks of another one out of the configuration";
    }
    if (::access((data_dir + "/slots").c_str(), F_OK) != 0) return {};
    return damage +
           ", but this is the data directory of a node with disks, because it has the file slots: "
           "put node.id back from a backup; for a new node, empty the directory";
}

// The mistake in a text that is not an id, and its remedy.
std::string why_no_id(std::string_view digits, const std::string& data_dir,
                      const std::vector<std::string>& disk_paths) {
    const std::string damage =
        digits.empty() ? "it is empty" : "it does not have 32 hexadecimal digits";
    const std::string sign = sign_of_earlier_id(damage, data_dir, disk_paths);
    if (!sign.empty()) return sign;
    return damage + ": put back the file this node had; for a new node, remove the file";
}

}  // namespace

Started<devices::NodeId> load_node_id(const std::string& data_dir,
                                      const std::vector<std::string>& disk_paths,
                                      core::Entropy& entropy) {
    const std::string path = data_dir + "/node.id";
    const auto text = read_small_file(path);
    if (text) {
        std::string_view digits = *text;
        if (digits.ends_with('\n')) digits.remove_suffix(1);
        const auto id = devices::parse_id(digits);
        if (id) return *id;
        return refuse_id(path, why_no_id(digits, data_dir, disk_paths));
    }
    if (text.error().code != Errc::kNotFound) {
        return refuse_id(path, describe(text.error()), text.error().os_errno);
    }

    const std::string sign = sign_of_earlier_id("it is missing", data_dir, disk_paths);
    if (!sign.empty()) return refuse_id(path, sign);
    devices::NodeId id{};
    entropy.fill(id);
    const auto written = replace_file(path, devices::format_id(id) + '\n', kFileMode);
    if (!written) return refuse_id(path, describe(written.error()), written.error().os_errno);
    return id;
}

}  // namespace fopd::daemon

#include "daemon/node_id.h"

#include "daemon/durable_file.h"

namespace fopd::daemon {

namespace {

std::unexpected<StartProblem> refuse_id(const std::string& path, const std::string& why,
                                        int os_errno = 0) {
    return std::unexpected(StartProblem{.exit_code = exit_code_for(os_errno, kExitDataDir),
                                        .message = path + ": " + why});
}

}  // namespace

Started<devices::NodeId> load_node_id(const std::string& data_dir, core::Entropy& entropy) {
    const std::string path = data_dir + "/node.id";
    const auto text = read_small_file(path);
    if (text) {
        std::string_view digits = *text;
        if (digits.ends_with('\n')) digits.remove_suffix(1);
        const auto id = devices::parse_id(digits);
        if (id) return *id;
        return refuse_id(
            path,
            "32 hexadecimal digits are expected; put back the file this node had, as its "
            "disks know it by that");
    }
    if (text.error().code != Errc::kNotFound) {
        return refuse_id(path, describe(text.error()), text.error().os_errno);
    }

    devices::NodeId id{};
    entropy.fill(id);
    const auto written = replace_file(path, devices::format_id(id) + '\n', kFileMode);
    if (!written) return refuse_id(path, describe(written.error()), written.error().os_errno);
    return id;
}

}  // namespace fopd::daemon

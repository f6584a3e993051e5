#include "devices/tape/library_directory.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "core/directory.h"
#include "core/owned_fd.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

namespace {

constexpr std::string_view kImageEnding = ".tap";
constexpr std::string_view kTextEnding = ".cartridge";
constexpr std::size_t kTextBytesMax = 1UL << 20;

Result<std::string> read_text(const std::string& path, const char* context) {
    const core::OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() < 0) return tape_os_error(context);
    std::string text;
    for (;;) {
        constexpr std::size_t kReadBytes = 4096;
        const std::size_t done = text.size();
        text.resize(done + kReadBytes);
        const ssize_t got = ::read(file.get(), text.data() + done, kReadBytes);
        if (got < 0 && errno != EINTR) return tape_os_error(context);
        text.resize(done + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got == 0) return text;
        if (text.size() > kTextBytesMax) {
            return tape_refused(Errc::kInvalid, context);
        }
    }
}

Result<void> write_synced(const std::string& path, std::string_view text, const char* context) {
    const core::OwnedFd file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return tape_os_error(context);
    while (!text.empty()) {
        const ssize_t put = ::write(file.get(), text.data(), text.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return tape_os_error(context);
        text.remove_prefix(static_cast<std::size_t>(put));
    }
    if (::fsync(file.get()) != 0) return tape_os_error(context);
    return {};
}

std::string positions_path(const std::string& directory) {
    return directory + "/positions";
}

}  // namespace

std::string image_path(const std::string& directory, std::string_view name) {
    return directory + "/" + std::string(name) + std::string(kImageEnding);
}

std::string cartridge_text_path(const std::string& directory, std::string_view name) {
    return directory + "/" + std::string(name) + std::string(kTextEnding);
}

Result<std::vector<std::string>> list_cartridges(const std::string& directory) {
    constexpr const char* kContext = "read the directory of a library";
    std::vector<std::string> names;
    std::error_code failed;
    std::filesystem::directory_iterator entry(directory, failed);
    for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
        const std::string file = entry->path().filename().string();
        if (!file.ends_with(kTextEnding)) continue;
        const std::string name = file.substr(0, file.size() - kTextEnding.size());
        if (is_cartridge_name(name)) names.push_back(name);
    }
    if (failed) return std::unexpected(os_error(failed.value(), kContext));
    std::ranges::sort(names);
    return names;
}

Result<CartridgeInfo> read_cartridge_text(const std::string& path) {
    const auto text = read_text(path, "read the text of a cartridge");
    if (!text) return std::unexpected(text.error());
    return parse_cartridge(*text);
}

Result<void> create_cartridge(const std::string& directory, std::string_view name,
                              const CartridgeInfo& info) {
    constexpr const char* kContext = "make a cartridge";
    if (!is_cartridge_name(name)) {
        return tape_refused(Errc::kInvalid, "name of a cartridge's files");
    }
    const std::string path = cartridge_text_path(directory, name);
    const std::string draft = path + ".draft";
    if (const auto put = write_synced(draft, format_cartridge(info), kContext); !put) return put;
    // Not renamed, since it must not replace another.
    const int failed = ::link(draft.c_str(), path.c_str()) == 0 ? 0 : errno;
    ::unlink(draft.c_str());
    if (failed == EEXIST) {
        return std::unexpected(
            Error{.code = Errc::kBusy, .os_errno = failed, .context = "cartridge exists"});
    }
    if (failed != 0) return std::unexpected(os_error(failed, kContext));
    return core::sync_directory(directory, kContext);
}

Result<CartridgePositions> read_positions(const std::string& directory) {
    const auto text = read_text(positions_path(directory), "read the positions of cartridges");
    if (text) return parse_positions(*text);
    if (text.error().os_errno == ENOENT) return CartridgePositions{};
    return std::unexpected(text.error());
}

Result<void> write_positions(const std::string& directory, const CartridgePositions& positions) {
    constexpr const char* kContext = "write the positions of cartridges";
    const std::string path = positions_path(directory);
    const std::string draft = path + ".draft";
    if (const auto put = write_synced(draft, format_positions(positions), kContext); !put) {
        return put;
    }
    if (::rename(draft.c_str(), path.c_str()) != 0) return tape_os_error(kContext);
    return core::sync_directory(directory, kContext);
}

std::string read_boot_id() {
    const auto text = read_text("/proc/sys/kernel/random/boot_id", "read the id of the boot");
    if (!text) return {};
    return text->substr(0, text->find('\n'));
}

}  // namespace fopd::devices

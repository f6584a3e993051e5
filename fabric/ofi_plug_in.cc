#include "fabric/ofi_plug_in.h"

#include <array>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/build_fingerprint.h"

namespace fopd::fabric {

namespace {

namespace fs = std::filesystem;

// libfabric loads libraries for InfiniPath adapters, which install signal handlers at once: SIGTERM
// and SIGINT become an exit with code 1, and a crash prints a page of addresses. This restores the
// handlers that the process had. Signals are blocked on this thread meanwhile.
class KeptSignals {
public:
    KeptSignals() {
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &mask_);
        for (std::size_t i = 0; i < kSignals.size(); ++i) {
            ::sigaction(kSignals[i], nullptr, &actions_[i]);
        }
    }
    ~KeptSignals() {
        for (std::size_t i = 0; i < kSignals.size(); ++i) {
            ::sigaction(kSignals[i], &actions_[i], nullptr);
        }
        ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    }
    KeptSignals(const KeptSignals&) = delete;
    KeptSignals& operator=(const KeptSignals&) = delete;

private:
    static constexpr std::array kSignals{SIGTERM, SIGINT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    std::array<struct sigaction, kSignals.size()> actions_{};
    sigset_t mask_{};
};

// The folder of the file that contains this code: a program, or a shared library with libfopd in
// it.
struct OwnFolder {
    fs::path folder;
    uid_t owner = 0;  // The file's.
    bool is_program = false;
};

uid_t owner_of(const fs::path& file) {
    struct stat info{};
    return ::stat(file.c_str(), &info) == 0 ? info.st_uid : 0;
}

OwnFolder own_folder() {
    Dl_info info{};
    void* found = nullptr;
    auto* const here = reinterpret_cast<void*>(&make_ofi_transport);
    if (::dladdr1(here, &info, &found, RTLD_DL_LINKMAP) == 0 || found == nullptr) return {};
    const std::string_view name = static_cast<const link_map*>(found)->l_name;
    std::error_code failed;
    if (name.empty()) {
        return {.folder = fs::read_symlink("/proc/self/exe", failed).parent_path(),
                .owner = owner_of("/proc/self/exe"),
                .is_program = true};
    }
    return {.folder = fs::canonical(name, failed).parent_path(),
            .owner = owner_of(name),
            .is_program = false};
}

// The plug-in's possible paths. Those relative to this file come first, so that a program that was
// built or unpacked anywhere finds its own. A setuid program may be started through a link in a
// folder of its caller, so it looks in the system's folder only.
std::vector<fs::path> possible_paths() {
    std::vector<fs::path> folders;
    if (::getauxval(AT_SECURE) == 0) {
        const auto [folder, owner, is_program] = own_folder();
        if (!folder.empty() && is_program) {
            folders = {folder / ".." / FOPD_LIBRARY_FOLDER, folder / "../lib"};
        } else if (!folder.empty()) {
            folders = {folder};
        }
    }
    folders.push_back(fs::path("/usr") / FOPD_LIBRARY_FOLDER);
    for (fs::path& folder : folders) folder = (folder / "fopd" / kOfiPlugInFile).lexically_normal();
    return folders;
}

// The reason why a user without permission to change this program could have put the plug-in there;
// empty if there is none. Root, the user of this process and the owner of its program may.
std::string why_unsafe(const fs::path& file) {
    const uid_t owner = own_folder().owner;
    std::error_code failed;
    for (const fs::path& each :
         {file.parent_path(), fs::canonical(file, failed).parent_path(), file}) {
        struct stat info{};
        if (::stat(each.c_str(), &info) != 0) return each.string() + " cannot be looked at";
        if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
            return each.string() + " can be written by others than its owner";
        }
        if (info.st_uid != 0 && info.st_uid != ::geteuid() && info.st_uid != owner) {
            return each.string() +
                   " belongs to neither root, nor the user of this process, nor "
                   "the owner of its program";
        }
    }
    return {};
}

Error unusable(core::EventSink& events, std::string_view file, std::string_view reason,
               const char* context) {
    core::emit(events, core::Level::kWarn, "fabric.plug_in_failed",
               {{"file", file}, {"reason", reason}});
    return {.code = Errc::kUnsupported, .context = context};
}

Result<const OfiPlugIn*> load(core::EventSink& events) {
    std::error_code failed;
    std::string file;
    for (const fs::path& path : possible_paths()) {
        if (file.empty() && fs::exists(path, failed)) file = path.string();
    }
    if (file.empty()) {
        return std::unexpected(
            Error{.code = Errc::kUnsupported,
                  .context = "fopd-ofi.so is missing, install the package fopd-ofi"});
    }
    if (const std::string reason = why_unsafe(file); !reason.empty()) {
        return std::unexpected(
            unusable(events, file, reason,
                     "fopd-ofi.so or its folder can be written by others, so it is not loaded: "
                     "correct owner and mode, or install the package fopd-ofi again"));
    }
    void* library = nullptr;
    {
        const KeptSignals kept;
        library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    }
    if (library == nullptr) {
        const char* const reason = ::dlerror();
        return std::unexpected(
            unusable(events, file, reason == nullptr ? "" : reason,
                     "fopd-ofi.so cannot be loaded, install the package fopd-ofi again"));
    }
    constexpr const char* kOtherBuild =
        "fopd-ofi.so is of another build, install the package fopd-ofi of this version";
    const auto* const found = static_cast<const OfiPlugIn*>(::dlsym(library, kOfiPlugInSymbol));
    if (found == nullptr) {
        return std::unexpected(unusable(events, file, "it has another interface", kOtherBuild));
    }
    if (std::string_view(found->build) != kBuild) {
        const std::string reason = std::string(found->build) + ", not " + kBuild;
        return std::unexpected(unusable(events, file, reason, kOtherBuild));
    }
    return found;
}

// Says why there is no other transport.
class MissingTransport final : public Transport {
public:
    explicit MissingTransport(const Error& reason) : reason_(reason) {}

    const char* name() const override { return "ofi"; }
    Result<std::unique_ptr<TransferMachine>> make_machine(core::Reactor& /*reactor*/,
                                                          MessageUser& /*messages*/,
                                                          const MachineOptions& /*o*/) override {
        return std::unexpected(reason_);
    }
    Result<std::unique_ptr<Acceptor>> listen(core::Reactor& /*reactor*/, const Address& /*address*/,
                                             RequestUser& /*requests*/,
                                             const AcceptorOptions& /*options*/) override {
        return std::unexpected(reason_);
    }

private:
    const Error reason_;
};

}  // namespace

std::unique_ptr<Transport> make_ofi_transport(core::EventSink& events, OfiOptions options) {
    // Once in a process, and by one thread at a time: two would take each other's signal handlers
    // for those of the process.
    static const Result<const OfiPlugIn*> plug_in = load(events);
    if (!plug_in) return std::make_unique<MissingTransport>(plug_in.error());
    return (*plug_in)->make(events, std::move(options));
}

}  // namespace fopd::fabric

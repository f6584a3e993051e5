#include "fabric/ofi/ofi_library.h"

#include <array>
#include <csignal>

#include <dlfcn.h>

#include "core/ensure.h"

namespace fopd::fabric {

namespace {

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

template <typename Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

Result<OfiLibrary> load() {
    const KeptSignals kept;
    void* const library = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    OfiLibrary found{};
    if (library == nullptr || !find(library, "fi_getinfo", found.getinfo) ||
        !find(library, "fi_freeinfo", found.freeinfo) ||
        !find(library, "fi_dupinfo", found.dupinfo) || !find(library, "fi_fabric", found.fabric) ||
        !find(library, "fi_strerror", found.strerror) ||
        !find(library, "fi_version", found.version)) {
        return std::unexpected(Error{.code = Errc::kUnsupported,
                                     .context = "load libfabric.so.1 (package libfabric1)"});
    }
    return found;
}

const Result<OfiLibrary>& loaded() {
    static const Result<OfiLibrary> library = load();
    return library;
}

}  // namespace

Result<void> load_ofi_library() {
    if (!loaded()) return std::unexpected(loaded().error());
    return {};
}

const OfiLibrary& ofi() {
    ENSURE(loaded().has_value());
    return *loaded();
}

}  // namespace fopd::fabric

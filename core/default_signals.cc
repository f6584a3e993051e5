#include "core/default_signals.h"

#include <csignal>
#include <initializer_list>

namespace fopd::core {

void restore_default_signals() {
    for (const int each : {SIGTERM, SIGINT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
        std::signal(each, SIG_DFL);
    }
}

}  // namespace fopd::core

#pragma once

namespace fopd::core {

// Gives the signals that end a process their meaning back. libfabric's libraries for InfiniPath
// adapters install handlers of their own as soon as they are loaded, which turn SIGTERM and SIGINT
// into an exit with code 1 and a crash into a page of addresses. The first thing a program does.
void restore_default_signals();

}  // namespace fopd::core

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/clock.h"

namespace fopd::bench {

inline const core::PosixClock kClock;

double median(std::vector<double> values);

// Pins the calling thread to the core with this index among those it may use.
void pin_to(std::size_t index);

std::string cpu_model();
std::string kernel_release();

// The text as a JSON string, with quotes.
std::string quoted(const std::string& text);

// Says what went wrong and ends the program.
[[noreturn]] void fail(const std::string& what);

}  // namespace fopd::bench

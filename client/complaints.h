// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string_view>

namespace fopd::client {

// Errors and notices of fopctl on standard error: lines for people at once, or, with --json, one
// object when the program ends. From any thread.

// Prints "fopctl: " and the text. `text` is safe for a terminal.
void complain(std::string_view text);
// Like complain(), for a notice that is not an error, for example a skipped file. With --json
// notices follow all errors.
void remark(std::string_view text);
// A further line about the last complaint, such as one of several mistakes in a file.
void complain_further(std::string_view line);
// Sets the stable error code for --json, where it is more specific than the exit code. Only the
// first call of a command has an effect.
void note_error_code(std::string_view code);

// Whether complaints are printed at once, or collected for one JSON object, from now on.
enum class Complaints : unsigned char { kLines, kJson };
void complain_as(Complaints form);
// From now on, complaints are about this line of a file of command lines; 0: about none.
void complain_about_line(std::uint64_t number);
// Prints the JSON object if complaints were collected. Called at the end of each command. Returns
// the exit code.
int end_complaints(int exit_code);

}  // namespace fopd::client

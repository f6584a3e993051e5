#pragma once

#include <string>
#include <vector>

// A program that ran to its end.
struct Ran {
    int exit_code = -1;  // -1: a signal ended it.
    int signal = 0;
    std::string out;
    std::string err;
};

// Runs it with its output into pipes, and a small environment with `environment` ("NAME=value")
// added. One that does not end is killed after a minute, which shows as signal 9.
Ran run_program(const std::vector<std::string>& command,
                const std::vector<std::string>& environment = {});

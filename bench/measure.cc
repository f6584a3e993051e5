#include "bench/measure.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <sched.h>
#include <sys/utsname.h>

namespace fopd::bench {

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

void pin_to(std::size_t index) {
    static const std::vector<int> kCores = [] {
        std::vector<int> usable;
        cpu_set_t set;
        CPU_ZERO(&set);
        sched_getaffinity(0, sizeof set, &set);
        for (int core = 0; core < CPU_SETSIZE; ++core) {
            if (CPU_ISSET(static_cast<std::size_t>(core), &set)) usable.push_back(core);
        }
        return usable;
    }();
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(kCores[index % kCores.size()]), &set);
    sched_setaffinity(0, sizeof set, &set);
}

std::string cpu_model() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (!line.starts_with("model name")) continue;
        const auto colon = line.find(": ");
        if (colon != std::string::npos) return line.substr(colon + 2);
    }
    return "unknown";
}

std::string kernel_release() {
    utsname name{};
    return ::uname(&name) == 0 ? name.release : "unknown";
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char each : text) {
        if (each == '"' || each == '\\') out += '\\';
        out += each;
    }
    return out + '"';
}

void fail(const std::string& what) {
    std::fprintf(stderr, "bench: %s\n", what.c_str());
    std::exit(1);
}

}  // namespace fopd::bench

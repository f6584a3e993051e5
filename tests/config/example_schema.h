#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/address.h"
#include "config/schema.h"
#include "config/units.h"

namespace fopd::config::example {

// A schema with a key of every type, for tests and the fuzz target.

struct Node {
    std::string name = "node-a";
    std::string data_dir = "/var/lib/fopd";
    Duration drain_timeout = 30s;
    std::string motto;
    bool verbose = false;
    Address metrics = {"127.0.0.1", 9420};
    std::optional<std::string> key_file;
};

enum class Mode : std::uint8_t { kRequired, kOptional, kNone };

struct Tape {
    Mode order = Mode::kNone;
    Duration wait_min = 1s;
    Duration wait_max = 30min;
};

struct Limits {
    std::int32_t nice = 0;
    std::uint32_t foms_max = 128;
    std::uint64_t buffers = std::uint64_t{64} << 20;
    std::uint64_t block = 4096;
    std::optional<std::uint32_t> cores;
    Rate rate = {200, Rate::Unit::kOperations};
    Mode mode = Mode::kRequired;
    Tape tape;
};

struct Pool {
    std::string name;
    std::uint64_t quota = 0;
    Duration age_max = 1h;
    std::string family = "disk";
};

struct Storage {
    std::vector<Pool> pools;
    std::vector<std::string> listen = {"tcp://0.0.0.0:31470"};
    std::vector<std::uint32_t> weights = {40, 40, 20};
    std::vector<Address> peers;
};

Schema schema();

// A schema with one required key at the top.
struct Identity {
    std::string name;
};
Schema required_schema();

}  // namespace fopd::config::example

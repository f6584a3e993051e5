#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/random.h"

namespace fopd::core {

// Source of unpredictable bytes for secrets. SystemEntropy is thread-safe; SeededEntropy is not.
class Entropy {
public:
    virtual ~Entropy() = default;
    virtual void fill(std::span<std::byte> bytes) = 0;

    std::uint64_t number() {
        std::uint64_t value = 0;
        fill(std::as_writable_bytes(std::span(&value, 1)));
        return value;
    }
};

// Random bytes from the kernel.
class SystemEntropy final : public Entropy {
public:
    void fill(std::span<std::byte> bytes) override;
};

// For the simulated world, where a run must be repeatable.
class SeededEntropy final : public Entropy {
public:
    explicit SeededEntropy(std::uint64_t seed) : random_(seed) {}
    void fill(std::span<std::byte> bytes) override;

private:
    Random random_;
};

}  // namespace fopd::core

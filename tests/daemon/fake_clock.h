#pragma once

#include <atomic>
#include <cstdint>

#include "core/clock.h"

// A clock that stands still until it is told.
class FakeClock final : public fopd::core::Clock {
public:
    // 2026-11-21T08:22:34.123456Z
    static constexpr std::int64_t kStartUnixNs = 1'795'249'354'123'456'000;

    fopd::Instant now() const override { return fopd::Instant(fopd::Duration(passed_ns_.load())); }
    fopd::WallTime wall() const override { return {.unix_ns = kStartUnixNs + passed_ns_.load()}; }
    void advance(fopd::Duration span) { passed_ns_ += span.count(); }

private:
    std::atomic<std::int64_t> passed_ns_ = 0;
};

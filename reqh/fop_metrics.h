#pragma once

#include <array>
#include <span>

#include "core/counter.h"
#include "core/histogram.h"
#include "core/metrics.h"
#include "fop/fop_type.h"
#include "fop/status.h"
#include "reqh/phase.h"

namespace fopd::reqh {

// How many fops of a locality ended how, and how long they were in each phase. Written on its
// reactor, readable from any thread. Large; it does not belong on a stack.
class FopMetrics {
public:
    // `type` is null for fops of a type nobody knows.
    void count(const fop::FopType* type, fop::Status status);
    void record(const fop::FopType& type, const PhaseTimes& times);

    std::uint64_t counted(const fop::FopType* type, fop::Status status) const;
    const core::Histogram& seconds(const fop::FopType& type, Phase phase) const;

    // The figures of a node: those of its localities as one.
    static void collect(std::span<const FopMetrics* const> localities, core::MetricSink& sink);

private:
    static constexpr std::size_t kRowCount = fop::kFopTypes.size() + 1;  // The last: unknown ones.
    static std::size_t row_of(const fop::FopType* type) {
        return type == nullptr ? kRowCount - 1
                               : static_cast<std::size_t>(type - fop::kFopTypes.data());
    }

    std::array<std::array<core::Counter, fop::kStatuses.size()>, kRowCount> counts_;
    std::array<std::array<core::Histogram, kPhaseCount>, fop::kFopTypes.size()> seconds_;
};

}  // namespace fopd::reqh

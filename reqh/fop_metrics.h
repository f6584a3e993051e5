#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/counter.h"
#include "core/histogram.h"
#include "core/metrics.h"
#include "core/zeroed_array.h"
#include "fop/fop_type.h"
#include "fop/status.h"
#include "reqh/phase.h"

namespace fopd::reqh {

// The fops of one kind that have ended. Written on one reactor, readable from any thread.
struct LoadFigures {
    core::Histogram latency;  // From arrival to reply.
    core::Counter bytes;      // Data bytes of the fops that succeeded.
};

// Counts of fops by type and status, how long they took, and the time spent in each phase, for one
// locality. Written on its reactor, readable from any thread. Too large for a stack.
class FopMetrics {
public:
    // `type` is null for fops of an unknown type.
    void count(const fop::FopType* type, fop::Status status);
    // size_bytes: of data; 0 for a fop that failed.
    void record(const fop::FopType& type, const PhaseTimes& times, std::uint64_t size_bytes);

    std::uint64_t counted(const fop::FopType* type, fop::Status status) const;
    const LoadFigures& load(const fop::FopType& type) const;
    const core::Histogram& duration(const fop::FopType& type) const { return load(type).latency; }
    const core::Histogram& seconds(const fop::FopType& type, Phase phase) const;

    // Reports the sums over all localities of a node.
    static void collect(std::span<const FopMetrics* const> localities, core::MetricSink& sink);

private:
    static constexpr std::size_t kRowCount = fop::kFopTypes.size() + 1;  // The last: unknown types.
    static std::size_t row_of(const fop::FopType* type) {
        return type == nullptr ? kRowCount - 1
                               : static_cast<std::size_t>(type - fop::kFopTypes.data());
    }

    std::array<std::array<core::Counter, fop::kStatuses.size()>, kRowCount> counts_;
    core::ZeroedArray<LoadFigures> loads_{fop::kFopTypes.size()};
    core::ZeroedArray<std::array<core::Histogram, kPhaseCount>> seconds_{fop::kFopTypes.size()};
};

}  // namespace fopd::reqh

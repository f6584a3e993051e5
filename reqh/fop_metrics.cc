#include "reqh/fop_metrics.h"

#include <memory>
#include <string_view>

namespace fopd::reqh {

namespace {

std::size_t index_of(fop::Status status) {
    return static_cast<std::size_t>(status);
}

}  // namespace

void FopMetrics::count(const fop::FopType* type, fop::Status status) {
    counts_[row_of(type)][index_of(status)].add(1);
}

void FopMetrics::record(const fop::FopType& type, const PhaseTimes& times,
                        std::uint64_t size_bytes) {
    LoadFigures& load = loads_[row_of(&type)];
    load.latency.record(times.total());
    load.bytes.add(size_bytes);
    auto& phases = seconds_[row_of(&type)];
    for (std::size_t index = 0; index < kPhaseCount; ++index) {
        const auto phase = static_cast<Phase>(index);
        if (times.reached(phase)) phases[index].record(times.of(phase));
    }
}

std::uint64_t FopMetrics::counted(const fop::FopType* type, fop::Status status) const {
    return counts_[row_of(type)][index_of(status)].get();
}

const LoadFigures& FopMetrics::load(const fop::FopType& type) const {
    return loads_[row_of(&type)];
}

const core::Histogram& FopMetrics::seconds(const fop::FopType& type, Phase phase) const {
    return seconds_[row_of(&type)][reqh::index_of(phase)];
}

void FopMetrics::collect(std::span<const FopMetrics* const> localities, core::MetricSink& sink) {
    for (std::size_t row = 0; row < kRowCount; ++row) {
        const fop::FopType* const type =
            row < fop::kFopTypes.size() ? &fop::kFopTypes[row] : nullptr;
        const std::string_view op = type != nullptr ? type->name : "unknown";
        for (const fop::StatusRow& status : fop::kStatuses) {
            std::uint64_t count = 0;
            for (const FopMetrics* each : localities) count += each->counted(type, status.status);
            if (count == 0) continue;
            const std::array labels{core::Label{"op", op}, core::Label{"result", status.name}};
            sink.counter("fopd_fops", "Fops that were answered.", labels,
                         static_cast<double>(count));
        }
        if (type == nullptr) continue;
        const auto durations = std::make_unique<core::Histogram>();
        for (const FopMetrics* each : localities) durations->merge(each->duration(*type));
        if (durations->count() == 0) continue;
        const std::array op_label{core::Label{"op", op}};
        std::uint64_t bytes = 0;
        for (const FopMetrics* each : localities) bytes += each->load(*type).bytes.get();
        if (bytes > 0) {
            sink.counter("fopd_bytes", "Data of the fops that succeeded.", op_label,
                         static_cast<double>(bytes));
        }
        sink.time_histogram("fopd_fop_duration_seconds",
                            "How long fops took, from their arrival to the reply.", op_label,
                            *durations, core::Buckets::kTwelve);
        for (std::size_t index = 0; index < kPhaseCount; ++index) {
            const auto all = std::make_unique<core::Histogram>();
            for (const FopMetrics* each : localities) all->merge(each->seconds_[row][index]);
            if (all->count() == 0) continue;
            const std::array labels{core::Label{"op", op},
                                    core::Label{"phase", kPhaseNames[index]}};
            sink.time_histogram("fopd_fop_seconds", "How long fops were in each phase.", labels,
                                *all, core::Buckets::kFour);
        }
    }
}

}  // namespace fopd::reqh

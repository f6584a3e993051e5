#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/histogram.h"
#include "daemon/json_writer.h"
#include "daemon/node_disk.h"
#include "reqh/fop_load.h"

namespace fopd::daemon {

// The load of fops and devices, for `fopctl top`: counts, bytes and latencies since the start, by
// operation, class, principal and device. A reader computes rates from two reports.
class LoadReport {
public:
    // Adds the rows of a locality. Rows of several localities with the same name are added up.
    void add(std::span<const reqh::FopLoad::Row> rows);
    // Adds the reads and writes of a disk. Does nothing while the disk is not open.
    void add(const NodeDisk& disk);
    void write(JsonWriter& json) const;

private:
    struct Figures {
        core::Histogram latency;
        std::uint64_t bytes = 0;
    };
    using Named = std::map<std::string, std::unique_ptr<Figures>>;
    static void add(Named& to, const std::string& name, const core::Histogram& latency,
                    std::uint64_t bytes);
    static void write(JsonWriter& json, const char* key, const Named& named);

    Named ops_;
    Named classes_;
    Named principals_;
    Named devices_;
};

}  // namespace fopd::daemon

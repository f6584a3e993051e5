#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/catch.h"
#include "tests/reqh/store_model.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

// What the clients of a test of crashes know together.
struct Known {
    std::vector<fop::Fid> objects;  // The newest; some of them are gone.
    std::vector<fop::Fid> all;
    std::uint32_t serial = 0;
    // Up to where what was acknowledged as buffered is durable, as durable changes said since the
    // last start.
    std::map<std::uint16_t, std::uint64_t> durable;
};

// Writes to an object of its own that are acknowledged as buffered: after a loss of power the
// object is as one of them left it, and at least as old ones did that were durable.
class BufferedObject {
public:
    static constexpr std::uint64_t kLengthMax = 9000;

    BufferedObject(StoreStage& node, std::uint16_t slot)
        : node_(node), fid_(node.create({}, slot)) {
        versions_.push_back({.bytes = {}, .receipt = {.slot = slot}});
    }

    FopSpec begin(core::Random& random) {
        const Bytes bytes = pattern(5000 + random.below(2) * 4000, random.next());
        versions_.push_back({.bytes = bytes, .receipt = {}});
        write_ = std::make_unique<WriteSpec>(
            fid_, std::vector{fop::Range{.offset = 0, .length = bytes.size()}}, bytes);
        // A shorter one leaves the rest of the one before.
        Bytes& after = versions_.back().bytes;
        const Bytes& before = versions_[versions_.size() - 2].bytes;
        for (std::size_t i = after.size(); i < before.size(); ++i) after.push_back(before[i]);
        return write_->spec(WriteSpec::Way::kInline, fop::Durability::kBuffered);
    }
    void end(const fop::Receipt& receipt) { versions_.back().receipt = receipt; }
    void give_up() { versions_.pop_back(); }

    // The node has started again.
    void recover(const Known& known, bool was_orderly) {
        const Bytes found = node_.read(fid_, 0, kLengthMax);
        const auto version = std::ranges::find(versions_, found, &Version::bytes);
        REQUIRE(version != versions_.end());
        for (auto later = version + 1; later != versions_.end(); ++later) {
            const bool was_acknowledged = later->receipt.seq > 0;
            const auto durable = known.durable.find(fid_.slot());
            const bool was_durable =
                durable != known.durable.end() && later->receipt.seq <= durable->second;
            REQUIRE_FALSE((was_acknowledged && (was_orderly || was_durable)));
        }
        const auto last =
            std::ranges::find_if(versions_.rbegin(), versions_.rend(),
                                 [](const Version& each) { return each.receipt.seq > 0; });
        if (last != versions_.rend()) {
            const std::vector receipts{last->receipt};
            const fop::List<fop::Receipt> asked(receipts.data(), receipts.size());
            FakeFop& sync =
                node_.call({.type = type_of("sync"), .body = fop::Sync{.receipts = asked}});
            const bool is_there = version + 1 >= last.base();
            REQUIRE(sync.status() == (is_there ? fop::Status::kDone : fop::Status::kLost));
        }
        versions_ = {{.bytes = found, .receipt = {.slot = fid_.slot()}}};
    }

private:
    struct Version {
        Bytes bytes;
        fop::Receipt receipt;  // Zero: not acknowledged, or durable long since.
    };

    StoreStage& node_;
    const fop::Fid fid_;
    std::vector<Version> versions_;
    std::unique_ptr<WriteSpec> write_;
};

}  // namespace fopd::reqh::testing

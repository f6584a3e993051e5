// Goal: whatever is done with a drive, it answers as a list of records does.
// Method: random operations on a drive and on a model of it, in virtual time. The simulated drive
// also loses its power.
#include <optional>

#include "tests/devices/tape_kinds.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::devices;
using namespace fopd::devices::testing;

namespace {

// A cartridge and a position on it. A block is a letter and its size, a filemark is nothing.
class TapeModel {
public:
    using Block = std::optional<std::string>;

    void write(Block block) {
        cut();
        records_.push_back(std::move(block));
        ++at_;
    }
    void cut() {
        records_.resize(at_);
        durable_ = std::min(durable_, at_);
    }
    void sync() { durable_ = records_.size(); }
    const Block* next() { return at_ == records_.size() ? nullptr : &records_[at_]; }
    void pass() { ++at_; }
    bool locate(std::size_t block) {
        at_ = std::min(block, records_.size());
        return block <= records_.size();
    }
    bool skip(std::size_t count) {
        for (; count > 0 && at_ < records_.size(); ++at_) {
            if (!records_[at_]) --count;
        }
        return count == 0;
    }
    std::size_t size() const { return records_.size(); }
    std::size_t durable() const { return durable_; }
    TapePosition position() const {
        TapePosition position{.block = at_};
        for (std::size_t i = 0; i < at_; ++i) position.filemarks += records_[i] ? 0 : 1;
        return position;
    }

private:
    std::vector<Block> records_;
    std::size_t at_ = 0;
    std::size_t durable_ = 0;
};

class ModelRun : fopd::testing::Replay {
public:
    ModelRun(TapeRow row, std::uint64_t seed) : Replay(seed), stage_(row), random_(seed) {
        stage_.load_blank({.capacity_bytes = 1UL << 30});
    }

    void run(int operations) {
        for (; operations > 0; --operations) {
            step();
            REQUIRE(stage_.position() == model_.position());
        }
        REQUIRE(stage_.locate(0).has_value());
        model_.locate(0);
        for (std::size_t left = model_.size(); left > 0; --left) read();
        read();
    }

private:
    void step() {
        const std::uint64_t what = random_.below(100);
        if (what < 40) {
            write();
        } else if (what < 60) {
            read();
        } else if (what < 72) {
            const auto count = static_cast<std::uint32_t>(random_.below(4));
            const bool is_durable = random_.below(2) == 0;
            const auto marks =
                is_durable ? TapeDrive::Marks::kDurable : TapeDrive::Marks::kImmediate;
            REQUIRE(stage_.marks(count, marks) == TapeRoom::kPlenty);
            for (std::uint32_t i = 0; i < count; ++i) model_.write(std::nullopt);
            if (is_durable) model_.sync();
        } else if (what < 80) {
            const std::uint64_t block = random_.below(model_.size() + 2);
            REQUIRE(stage_.locate(block).has_value() == model_.locate(block));
        } else if (what < 88) {
            const auto count = static_cast<std::uint32_t>(random_.below(4));
            REQUIRE(stage_.skip(count).has_value() == model_.skip(count));
        } else if (what < 94) {
            stage_.to_end();
            model_.locate(model_.size());
        } else if (what < 97) {
            REQUIRE(stage_.unload().has_value());
            REQUIRE(stage_.load().has_value());
            model_.sync();
            model_.locate(0);
        } else {
            stage_.kill();
            REQUIRE(stage_.load().has_value());
            model_.sync();
            model_.locate(0);
        }
    }

    void write() {
        constexpr std::array<std::size_t, 5> kSizes{1, 80, 513, 4096, 100'000};
        std::string block(kSizes[random_.below(kSizes.size())],
                          static_cast<char>('a' + random_.below(26)));
        if (random_.below(2) == 0) block.back() = '!';
        REQUIRE(stage_.write(block) == TapeRoom::kPlenty);
        model_.write(std::move(block));
    }

    void read() {
        const auto found = stage_.read();
        REQUIRE(found.has_value());
        const TapeModel::Block* const expected = model_.next();
        if (expected == nullptr) {
            REQUIRE(*found == ".");
            return;
        }
        REQUIRE((*found == expected->value_or("|")));
        model_.pass();
    }

    TapeStage stage_;
    core::Random random_;
    TapeModel model_;
};

}  // namespace

TEST_CASE("devices tape: agrees with a list of records", "[devices][swarm]") {
    const TapeRow row = GENERATE(from_range(kTapeRows.begin() + 2, kTapeRows.end()));
    CAPTURE(row.library);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) ModelRun(row, seed).run(200);
}

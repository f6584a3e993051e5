// Goal: what was acknowledged survives a loss of power at any moment, what was not is done whole or
// not at all, and a fop that is asked for again afterwards is done once.
// FOPD_SWARM_SEEDS sets how many seeds; FOPD_SEED runs one.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

namespace {

using Way = WriteSpec::Way;

// Somebody with an object of his own, of which he knows every byte, and a fop under way.
class Worker {
public:
    Worker(StoreStage& node, std::uint32_t number)
        : node_(node),
          locality_(number % node.options.localities),
          fid_(node.create({},
                           static_cast<std::uint16_t>(kFirstSlot + number % node.options.disks))) {}

    void begin(core::Random& random) {
        after_ = model_;
        const std::uint64_t offset = random.below(60'000);
        const std::uint64_t length = 1 + random.below(random.below(4) == 0 ? 40'000 : 6000);
        const Bytes bytes = pattern(length, random.next());
        const auto way = random.below(2) == 0 ? Way::kInline : Way::kMemory;
        switch (random.below(8)) {
            case 0: {
                spec_ = truncate(fid_, offset);
                after_.resize(offset);
                break;
            }
            case 1: {
                spec_ = punch(fid_, {.offset = offset, .length = length});
                const std::size_t end = std::min<std::size_t>(offset + length, after_.size());
                for (std::size_t at = offset; at < end; ++at) after_[at] = std::byte{0};
                break;
            }
            case 2:
            case 3:
            case 4: {
                append_ = std::make_unique<AppendSpec>(fid_, bytes);
                spec_ = append_->spec(way);
                after_.insert(after_.end(), bytes.begin(), bytes.end());
                break;
            }
            default: {
                write_ = std::make_unique<WriteSpec>(
                    fid_, std::vector{fop::Range{.offset = offset, .length = length}}, bytes);
                spec_ = write_->spec(way);
                after_.resize(std::max<std::size_t>(after_.size(), offset + length));
                std::ranges::copy(bytes, after_.begin() + static_cast<std::ptrdiff_t>(offset));
                break;
            }
        }
        spec_.number = 1'000'000 + ++fops_begun_ * 16 + locality_;
        spec_.client.fill(static_cast<std::byte>(fid_.low));
        fop_ = &node_.send(spec_, locality_);
    }

    bool is_answered() const { return fop_->answer.has_value(); }
    void end() {
        INFO(fop_->answer->words);
        REQUIRE(fop_->status() == fop::Status::kDone);
        model_ = after_;
        fop_ = nullptr;
    }

    // The power was gone: what was under way happened or did not, and is asked for again.
    void recover() {
        const Bytes found = node_.read(fid_, 0, 1 << 20);
        if (fop_ == nullptr) {
            REQUIRE(found == model_);
            return;
        }
        REQUIRE((found == model_ || found == after_));
        fop_ = &node_.send(spec_, locality_);
        node_.wait_for(*fop_);
        end();
        REQUIRE(node_.read(fid_, 0, 1 << 20) == model_);
        REQUIRE(node_.stat(fid_).size_bytes == model_.size());
    }

private:
    StoreStage& node_;
    const std::uint32_t locality_;
    const fop::Fid fid_;
    Bytes model_;
    Bytes after_;
    FopSpec spec_;
    std::unique_ptr<WriteSpec> write_;
    std::unique_ptr<AppendSpec> append_;
    FakeFop* fop_ = nullptr;
    std::uint64_t fops_begun_ = 0;
};

std::optional<std::uint64_t> number_in(const char* variable) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) return std::nullopt;
    return std::strtoull(text, nullptr, 10);
}

void live_through(std::uint64_t seed) {
    core::Random random(seed);
    const bool many = random.below(2) == 0;
    StoreStage node({.localities = many ? 2U : 1U, .disks = many ? 2U : 1U, .seed = seed});
    std::vector<std::unique_ptr<Worker>> workers;
    for (std::uint32_t i = 0; i < 4; ++i) workers.push_back(std::make_unique<Worker>(node, i));
    for (int life = 0; life < 5; ++life) {
        for (const auto& worker : workers) worker->begin(random);
        node.power().cut_at(node.power().steps() + 1 + random.below(120));
        while (node.power().on()) {
            REQUIRE(node.world.step());
            for (const auto& worker : workers) {
                if (!node.power().on() || !worker->is_answered()) continue;
                worker->end();
                worker->begin(random);
            }
        }
        for (const auto& worker : workers) {
            if (worker->is_answered()) worker->end();
        }
        node.restart();
        for (const auto& worker : workers) worker->recover();
    }
}

}  // namespace

TEST_CASE("reqh store: crashes lose nothing that was acknowledged, and double nothing",
          "[reqh][swarm]") {
    const std::optional<std::uint64_t> one = number_in("FOPD_SEED");
    const std::uint64_t count = one ? 1 : number_in("FOPD_SWARM_SEEDS").value_or(12);
    for (std::uint64_t i = 0; i < count; ++i) live_through(one.value_or(1) + i);
}

}  // namespace fopd::reqh::testing

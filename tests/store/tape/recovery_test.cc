// Goal: a cartridge alone gives back all that is on it, whenever the power went.
// Method: the power is cut before each record that is written, and the cartridge keeps any number
// of the records that were not yet durable.
#include "store/tape/recovery.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"
#include "tests/slowness.h"
#include "tests/store/tape/tape_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

struct Written {
    std::vector<TapeEntry> complete;
    std::vector<TapeEntry> durable;
    TapeEnd durable_end{};
};

// A session that ends with the first error.
Written write_session(TapeStage& stage) {
    Written written;
    const auto sync = [&] {
        if (!stage.run(stage.writer->sync())) return false;
        written.durable = written.complete;
        written.durable_end = stage.writer->end();
        return true;
    };
    for (std::uint64_t round = 0; round < 3; ++round) {
        for (std::uint64_t file = 1; file <= 2; ++file) {
            const std::uint64_t id = 10 * round + file;
            const auto entries = stage.write_file(id, {{id, 300'000 * file}, {100 + id, 10}});
            if (!entries) return written;
            written.complete.insert(written.complete.end(), entries->begin(), entries->end());
        }
        if (!sync()) return written;
        if (round == 1) continue;
        // The first index lists all files, the last one those behind the first.
        const std::uint64_t first = round == 0 ? 1 : stage.writer->end().index.file + 1;
        std::vector<TapeEntry> listed;
        std::ranges::copy_if(written.complete, std::back_inserter(listed),
                             [&](const TapeEntry& e) { return e.file.number >= first; });
        if (!stage.write_index_file(listed, first)) return written;
        if (!sync()) return written;
    }
    return written;
}

Written run_session(TapeStage& stage) {
    if (!stage.format_tape() || !stage.run(stage.writer->open({}))) return {};
    return write_session(stage);
}

bool is_in(const std::vector<TapeEntry>& entries, const TapeEntry& entry) {
    return std::ranges::find(entries, entry) != entries.end();
}

// What a recovery finds is what was complete, and all that was durable; then it can go on.
void check_recovery(TapeStage& stage, const Written& written, TapeEnd known) {
    FoundEntries found;
    const auto recovered = stage.recover(found, known);
    REQUIRE(recovered.has_value());
    REQUIRE_FALSE(recovered->shorter);
    REQUIRE(found.bad_files.empty());
    REQUIRE(recovered->end.files >= written.durable_end.files);
    for (const auto& [key, entry] : found.entries) {
        REQUIRE(is_in(written.complete, entry));
        REQUIRE(entry.file.number <= recovered->end.files);
        REQUIRE(stage.read(entry).has_value());
    }
    for (const TapeEntry& entry : written.durable) {
        if (entry.file.number <= known.files) continue;
        REQUIRE(found.entries.contains({entry.file.number, entry.position}));
    }

    REQUIRE(stage.run(stage.writer->open(recovered->end)).has_value());
    const auto next = stage.write_file(77, {{77, 1'000}});
    REQUIRE(next.has_value());
    REQUIRE(stage.run(stage.writer->sync()).has_value());
    FoundEntries all;
    const auto again = stage.recover(all);
    REQUIRE(again.has_value());
    REQUIRE(again->end == stage.writer->end());
    REQUIRE_FALSE(again->had_incomplete);
    REQUIRE(all.entries.contains({recovered->end.files + 1, (*next)[0].position}));
    for (const TapeEntry& entry : written.durable) {
        REQUIRE(all.entries.contains({entry.file.number, entry.position}));
        REQUIRE(stage.read(entry).has_value());
    }
}

}  // namespace

TEST_CASE("store tape recovery: after a cut at every record all that was durable is there",
          "[store][tape]") {
    std::uint64_t cuts = 0;
    // Each record is two steps. A cut between them leaves a record that the writer knows nothing
    // of, which is not looked at here.
    constexpr std::uint64_t kStep = fopd::testing::kSlowness == 1 ? 2 : 6;
    for (std::uint64_t cut = 11;; cut += kStep) {
        CAPTURE(cut);
        TapeStage whole;
        whole.power().cut_at(cut);
        run_session(whole);
        if (whole.power().on()) break;
        const std::uint64_t undurable = whole.undurable_count();
        for (std::uint64_t kept = 0; kept <= undurable; ++kept) {
            CAPTURE(kept);
            TapeStage stage;
            stage.power().cut_at(cut);
            const Written written = run_session(stage);
            stage.lose_power(kept);
            const bool knows = kept % 2 == 0;
            check_recovery(stage, written, knows ? written.durable_end : TapeEnd());
            ++cuts;
        }
    }
    REQUIRE(cuts > 1000 / kStep);
}

TEST_CASE("store tape recovery: the power goes at any time, and torn records remain",
          "[store][tape]") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        TapeStage stage({.seed = seed});
        core::Random random(seed);
        stage.power().cut_at(11 + random.below(200));
        const Written written = run_session(stage);
        stage.lose_power_by(seed);
        check_recovery(stage, written, random.below(2) == 0 ? written.durable_end : TapeEnd());
    }
}

TEST_CASE("store tape recovery: a failed write leaves what was durable", "[store][tape]") {
    std::uint64_t without_error = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        CAPTURE(seed);
        TapeStage stage({.seed = seed});
        stage.start();
        stage.drive().faults().write_ppm = seed % 2 == 0 ? 20'000 : 0;
        stage.drive().faults().late_write_ppm = seed % 2 == 0 ? 0 : 20'000;
        const Written written = write_session(stage);
        stage.drive().faults() = {};
        // An error that nobody has heard of yet.
        if (const auto flushed = stage.run(stage.drive().sync()); flushed) ++without_error;
        check_recovery(stage, written, written.durable_end);
    }
    REQUIRE(without_error > 0);
}

TEST_CASE("store tape recovery: a cut in a format leaves a tape that can be formatted",
          "[store][tape]") {
    for (std::uint64_t cut = 1; cut <= 8; ++cut) {
        TapeStage stage;
        stage.power().cut_at(stage.power().steps() + cut);
        REQUIRE_FALSE(stage.format_tape().has_value());
        stage.lose_power_by(cut);
        REQUIRE(stage.format_tape().has_value());
        REQUIRE(stage.run(stage.writer->open({})).has_value());
    }
}

TEST_CASE("store tape recovery: a cut while a tail is replaced leaves the old or the new one",
          "[store][tape]") {
    for (std::uint64_t kept = 0; kept <= 10; ++kept) {
        CAPTURE(kept);
        TapeStage stage;
        stage.start();
        const auto first = stage.write_file(1, {{1, 10}});
        REQUIRE(stage.run(stage.writer->sync()).has_value());
        BytesSource source(some_bytes(2, 600'000));
        source.damage_at(599'999);
        // Its blocks become durable, but it is never complete.
        REQUIRE(stage.run(stage.writer->begin_file(TapeFileKind::kObjects, 2, kTapeDay)));
        REQUIRE_FALSE(stage.run(stage.writer->add(some_member(2, 600'000), &source)));
        REQUIRE(stage.run(stage.writer->sync()).has_value());
        const auto second = stage.write_file(3, {{3, 10}});
        REQUIRE(second.has_value());
        stage.lose_power(kept);

        FoundEntries found;
        const auto recovered = stage.recover(found);
        REQUIRE(recovered.has_value());
        REQUIRE(recovered->end.files == (kept == 10 ? 2 : 1));
        REQUIRE(found.entries.size() == recovered->end.files);
        REQUIRE(recovered->had_incomplete == (kept > 0 && kept < 10));
    }
}

TEST_CASE("store tape recovery: an index spares reading the files that it lists", "[store][tape]") {
    TapeStage stage;
    stage.start();
    std::vector<TapeEntry> all;
    std::vector<TapeEntry> since;
    std::vector<TapeFile> indexes;
    std::uint64_t first = 1;
    for (std::uint64_t number = 1; number <= 30; ++number) {
        const auto written = stage.write_file(number, {{number, 100}});
        REQUIRE(written.has_value());
        all.push_back((*written)[0]);
        since.push_back((*written)[0]);
        if (number % 10 != 0) continue;
        const auto index = stage.write_index_file(since, first);
        REQUIRE(index.has_value());
        indexes.push_back(*index);
        first = stage.writer->end().index.file + 1;
        since.clear();
    }
    const auto last = stage.write_file(31, {{31, 100}});
    REQUIRE(last.has_value());
    all.push_back((*last)[0]);
    REQUIRE(stage.run(stage.writer->sync()).has_value());

    FoundEntries found;
    const auto recovered = stage.recover(found);

    REQUIRE(recovered.has_value());
    REQUIRE(recovered->files_read == 2);  // The last index, and the file behind it.
    REQUIRE(recovered->end == stage.writer->end());
    REQUIRE(found.entries.size() == all.size());
    for (const TapeEntry& entry : all) {
        REQUIRE(found.entries.at({entry.file.number, entry.position}) == entry);
    }

    SECTION("where one cannot be read, headers are") {
        const std::uint64_t which = GENERATE(0U, 1U, 2U);
        stage.cartridge().make_unreadable(indexes[which].first_data_block());
        stage.reload();
        FoundEntries without;
        const auto slow = stage.recover(without);
        REQUIRE(slow.has_value());
        REQUIRE(slow->files_read == recovered->end.files);
        REQUIRE(without.bad_files.size() == 1);
        REQUIRE(without.bad_files.contains(indexes[which].number));
        REQUIRE(without.entries == found.entries);
    }
}

TEST_CASE("store tape recovery: one of a damaged file tells which", "[store][tape]") {
    TapeStage stage;
    stage.start();
    std::vector<std::uint64_t> blocks;
    for (std::uint64_t number = 1; number <= 5; ++number) {
        blocks.push_back(stage.writer->end().block);
        REQUIRE(stage.write_file(number, {{number, 100}}).has_value());
    }
    REQUIRE(stage.run(stage.writer->sync()).has_value());
    // In the third file: each of its labels and its data.
    const std::uint64_t part = GENERATE(0U, 1U, 2U, 4U, 6U, 7U, 8U);
    stage.cartridge().make_unreadable(blocks[2] + part);
    stage.reload();

    FoundEntries found;
    const auto recovered = stage.recover(found);

    REQUIRE(recovered.has_value());
    REQUIRE(recovered->end.files == 5);
    REQUIRE(found.bad_files.size() == 1);
    REQUIRE(found.bad_files.contains(3));
    REQUIRE(found.entries.size() == 4);
}

TEST_CASE("store tape recovery: a file with more members than any program writes is damaged",
          "[store][tape]") {
    TapeStage stage;
    stage.start();
    REQUIRE(stage.write_file(1, {{1, 100}}).has_value());
    Objects many;
    for (std::uint64_t i = 0; i <= TapeRecovery::kFileMembersMax; ++i) {
        many.emplace_back(1000 + i, 10);
    }
    REQUIRE(stage.write_file(2, many).has_value());
    REQUIRE(stage.write_file(3, {{3, 100}}).has_value());
    REQUIRE(stage.run(stage.writer->sync()).has_value());

    FoundEntries found;
    const auto recovered = stage.recover(found);

    REQUIRE(recovered.has_value());
    REQUIRE(recovered->end.files == 3);
    REQUIRE(found.bad_files.size() == 1);
    REQUIRE(found.bad_files.contains(2));
    REQUIRE(found.entries.size() == 2);
}

TEST_CASE("store tape recovery: a tape that is shorter than its catalogue is reported",
          "[store][tape]") {
    TapeStage stage;
    stage.start();
    for (std::uint64_t number = 1; number <= 4; ++number) {
        REQUIRE(stage.write_file(number, {{number, 100}}).has_value());
    }
    REQUIRE(stage.run(stage.writer->sync()).has_value());
    const TapeEnd end = stage.writer->end();
    auto records = stage.records();
    records.pop_back();
    stage.set_records(records);

    FoundEntries found;
    const auto recovered = stage.recover(found, end);

    REQUIRE(recovered.has_value());
    REQUIRE(recovered->shorter);
    REQUIRE(recovered->end == end);
    REQUIRE(found.entries.empty());
    REQUIRE(stage.run(stage.writer->open(end)).error().code == Errc::kCorrupt);
}

TEST_CASE("store tape recovery: a cartridge says whose it is without a catalogue",
          "[store][tape]") {
    TapeStage stage;
    REQUIRE(stage.run(read_identity(&stage.drive())).error().code == Errc::kInvalid);
    stage.start();
    REQUIRE(stage.run(read_identity(&stage.drive())).error().code == Errc::kNotFound);
    REQUIRE(stage.run(stage.writer->open({})).has_value());
    REQUIRE(stage.write_file(1, {{1, 100}}).has_value());

    REQUIRE(stage.run(read_identity(&stage.drive())) == some_identity());
}

// Goal: tapes for tape_image_test.py, which reads them without any code of ours.
// Method: this is run by that test, in a folder of its own. It makes the virtual libraries `large`
// and `small`, and `expected` with a line for each object on the tape of `large`: the file, the
// fid, the version, the size and the name. The object's bytes are in a file named by the fid.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/offload.h"
#include "core/virtual_world.h"
#include "devices/tape/library_directory.h"
#include "devices/tape/virtual_library.h"
#include "tests/catch.h"
#include "tests/store/tape/tape_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

void write_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    file.close();
    REQUIRE(file.good());
}

// A virtual library in a new directory, with one cartridge, in a drive.
class VirtualStage : fopd::testing::Replay {
public:
    explicit VirtualStage(const std::string& path)
        : Replay(1),
          world_(1),
          reactor_(world_.make_reactor()),
          offload_(core::make_virtual_offload(world_, {.thread_count = 2})) {
        REQUIRE(std::filesystem::create_directory(path));
        REQUIRE(devices::create_cartridge(path, "FPD001", {.barcode = "FPD001L9"}));
        library_ = std::make_unique<devices::VirtualLibrary>(
            *reactor_, *offload_,
            devices::VirtualLibraryOptions{.name = "library", .path = path, .drive_count = 1});
        REQUIRE(run(library_->open()).has_value());
        REQUIRE(run(library_->move(devices::kStorageAddress, devices::kDriveAddress)).has_value());
        REQUIRE(run(drive().load()).has_value());
    }

    devices::TapeDrive& drive() { return library_->drive(0); }
    template <typename T>
    T run(Task<T> task) {
        auto result = world_.run(*reactor_, std::move(task));
        return std::move(result.value());
    }
    void close() { REQUIRE(run(library_->close()).has_value()); }

private:
    core::VirtualWorld world_;
    std::unique_ptr<core::Reactor> reactor_;
    std::unique_ptr<core::Offload> offload_;
    std::unique_ptr<devices::VirtualLibrary> library_;
};

// A file for each list of objects; an index where there are none.
std::vector<TapeEntry> write_tape(const std::string& path, const std::vector<Objects>& files) {
    VirtualStage stage(path);
    TapeWriter writer(stage.drive(), some_identity(), some_site());
    REQUIRE(stage.run(format(&stage.drive(), some_identity(), some_site(), kTapeDay)));
    REQUIRE(stage.run(writer.open({})));
    std::vector<TapeEntry> copies;
    std::vector<TapeEntry> since;
    std::uint64_t first = 1;
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (files[i].empty()) {
            EntriesSource source(std::exchange(since, {}));
            REQUIRE(stage.run(write_index(&writer, &source, {.first = first, .now = kTapeDay})));
            first = writer.end().index.file + 1;
            continue;
        }
        const auto written = stage.run(write_objects(&writer, 0xf00 + i, files[i]));
        REQUIRE(written.has_value());
        copies.insert(copies.end(), written->begin(), written->end());
        since.insert(since.end(), written->begin(), written->end());
    }
    REQUIRE(stage.run(writer.sync()).has_value());
    stage.close();
    return copies;
}

}  // namespace

TEST_CASE("store tape image: written for others to read", "[.tape-image]") {
    const auto copies = write_tape("large", {{{1, 1'000'000}},
                                             {{2, 10}, {3, 0}, {4, 300'001}},
                                             {},
                                             {{5, 4'096}},
                                             {{6, 262'144}},
                                             {},
                                             {{7, 1}}});
    std::ofstream expected("expected");
    for (const TapeEntry& entry : copies) {
        const Member& member = entry.member;
        const std::string fid = hex_text(member.fid.high, 16) + hex_text(member.fid.low, 16);
        expected << entry.file.number << ' ' << fid << ' ' << member.version << ' '
                 << member.size_bytes << ' ' << member.name << '\n';
        write_bytes(fid, some_bytes(member.fid.low, member.size_bytes));
    }
    expected.close();
    REQUIRE(expected.good());
    // A seed for fuzz_tape_image.
    write_tape("small", {{{1, 10}, {2, 0}}, {}, {{3, 1}}, {}, {{4, 2}}});
}

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "objects/fids.h"
#include "objects/home_volume.h"
#include "tests/catch.h"
#include "tests/reqh/fake_library.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing::tape_fops {

using How = library::RecallEnd::How;

// The size of the objects of a TapeStage.
inline constexpr std::uint64_t kBytes = 3 * kBlock + 100;

// Takes an object's bytes off its disk, as if they were on a cartridge.
inline Task<Result<void>> put_on_tape(store::Volume* volume, store::Fid fid, std::uint32_t file) {
    const auto object = volume->map().find(fid);
    if (!object || !object->has_value()) {
        co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "the object"});
    }
    const std::uint64_t version = (*object)->content_version();
    const store::Copy copy{.fid = fid,
                           .length = (*object)->size_bytes,
                           .version = version,
                           .cartridge = {.vsn = {'T', 'A', 'P', 'E', '0', '1'}, .generation = 1},
                           .position = {.file = file},
                           .block = file * 100ULL,
                           .checksum = 7,
                           .written_s = 1'800'000'000};
    std::vector<store::Copy> copies{copy};
    const core::WaitOptions wait{};
    const auto added = co_await volume->add_copies(std::move(copies), wait);
    if (!added) co_return std::unexpected(added.error());
    const auto released = co_await volume->release(fid, version, wait);
    if (!released) co_return std::unexpected(released.error());
    co_return Result<void>{};
}

// A node with two disks on two localities, and a library at the second.
class TapeStage {
public:
    TapeStage()
        : stage({.localities = 2, .disks = 2, .cold_quota_blocks = 100'000, .library = &door}) {
        connect();
    }
    ~TapeStage() {
        // Nobody waits for the staging when it goes.
        for (const std::uint32_t locality : {0U, 1U}) stage.handler(locality).drain();
        stage.run_for(1s);
    }

    // The node loses its power, and starts again.
    void restart() {
        door.service = nullptr;
        door.stagings.clear();
        stagings.clear();
        library.reset();
        stage.restart();
        connect();
    }

    // An object on a disk: the first disk is at locality 0, the second at 1.
    fop::Fid object(std::uint32_t disk, std::string_view name = {}) {
        const fop::Fid fid = stage.create(name, stage.slot(disk));
        stage.write(fid, 0, pattern(kBytes, 3));
        return fid;
    }
    fop::Fid object_on_tape(std::uint32_t disk, std::string_view name = {}) {
        const fop::Fid fid = object(disk, name);
        store::Volume& volume = stage.volume(disk);
        core::Reactor& reactor = stage.stores(disk).parts().reactor;
        const auto done =
            stage.world.run(reactor, put_on_tape(&volume, objects::store_fid(fid), ++files_));
        REQUIRE(done.has_value());
        REQUIRE(done->has_value());
        return fid;
    }
    FakeFop& call(std::string_view type, fop::RequestBody body, std::uint32_t locality = 0) {
        return stage.call({.type = type_of(type), .body = std::move(body)}, locality);
    }
    fop::Status status_of(std::string_view type, fop::RequestBody body,
                          std::uint32_t locality = 0) {
        return call(type, std::move(body), locality).status();
    }
    FopSpec wait_for(const std::vector<fop::Fid>& fids) {
        return {.type = type_of("recall_wait"),
                .body = fop::RecallWait{.fids = fop::List<fop::Fid>(fids.data(), fids.size())}};
    }
    void end(std::uint32_t disk, fop::Fid fid, How how, std::string reason = {}) {
        stagings[disk]->end(objects::store_fid(fid), {.how = how, .reason = std::move(reason)});
        stage.run_for(1s);
    }

    core::Gate gate;
    library::LibraryDoor door;
    std::unique_ptr<FakeLibrary> library;
    std::vector<std::unique_ptr<FakeStaging>> stagings;
    StoreStage stage;

private:
    void connect() {
        door.reactor = &stage.stores(1).parts().reactor;
        door.gate = &gate;
        library = std::make_unique<FakeLibrary>(*door.reactor);
        door.service = library.get();
        for (const std::uint32_t locality : {0U, 1U}) {
            stagings.push_back(std::make_unique<FakeStaging>(stage.stores(locality)));
            door.stagings.push_back(stagings.back().get());
        }
    }

    std::uint32_t files_ = 0;
};

}  // namespace fopd::reqh::testing::tape_fops

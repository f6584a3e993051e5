// Goal: what administrators read and change of a tape library: its cartridges, its drives and its
// recalls. Method: the real AdminApi and Node with a library in the simulated world; verbs that
// are fops are called with the real client library, and the admin socket shows what they did.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/sim/admin_stage.h"
#include "tests/sim/object_caller.h"

using namespace fopd;
using namespace fopd::sim;
using client::TapeCalls;
using fopd::sim::testing::AdminStage;
using fopd::sim::testing::ObjectCaller;
using nlohmann::json;

namespace {

ClusterOptions with_library() {
    return {.nodes = 1,
            .disks = 2,
            .clients = 1,
            .quiet_clients = true,
            .library = {.drives = 2, .cartridges = 3},
            .tape_pool =
                library::TapePoolOptions{.name = "cold", .staging = "fast", .migrate_age = 24h}};
}

const std::string kFirst = "V10000L9";
const std::string kSecond = "V10001L9";
const std::string kDrive0 = "library-drive0";
const std::string kDrive1 = "library-drive1";

// Runs until the library is open.
void wait_open(AdminStage& stage) {
    stage.wait_ready();
    for (int i = 0; i < 600 && stage.answer("/v1/drives").status != 200; ++i) stage.run_for(1s);
    REQUIRE(stage.answer("/v1/drives").json["drives"].size() == 2);
}

json named(const json& rows, const std::string& name) {
    for (const json& each : rows) {
        if (each["name"] == name) return each;
    }
    return {};
}
json cartridge(AdminStage& stage, const std::string& barcode) {
    return named(stage.answer("/v1/media").json["media"], barcode);
}
json drive(AdminStage& stage, const std::string& name) {
    return named(stage.answer("/v1/drives").json["drives"], name);
}

const std::vector<std::byte> kBytes(300'000, std::byte{5});

}  // namespace

// -- lists --

TEST_CASE("sim admin tape: a node without a library has no cartridges and no drives", "[sim]") {
    AdminStage stage(81, {.nodes = 1, .disks = 1});
    CHECK(stage.refused("/v1/media") == "503 the node is starting");
    CHECK(stage.refused("/v1/drives") == "503 the node is starting");
    stage.wait_ready();
    CHECK(stage.answer("/v1/media").json ==
          json({{"media", json::array()}, {"drives", json::array()}}));
    CHECK(stage.answer("/v1/drives").json == json({{"drives", json::array()}}));
}

TEST_CASE("sim admin tape: a library that does not open is said, and listed once it does",
          "[sim]") {
    AdminStage stage(82, with_library());
    stage.node().library().set_faults({.robot = {.gone = true}});
    stage.wait_ready();
    stage.run_for(10s);
    for (const char* const path : {"/v1/media", "/v1/drives"}) {
        CAPTURE(path);
        CHECK(stage.refused(path).starts_with("503 the tape library is not open: "));
    }

    stage.node().library().set_faults({});
    wait_open(stage);
    const json listed = stage.answer("/v1/media").json;
    REQUIRE(listed["media"].size() == 3);
    for (const json& each : listed["media"]) {
        CAPTURE(each.dump());
        CHECK(each["family"] == "tape");
        // It is learned from the first drive that has the cartridge.
        CHECK(each["technology"] == "");
        CHECK(each["state"] == "blank");
        CHECK(each["pool"] == "");
        CHECK(each["generation"] == 0);
        CHECK(each["drive"] == nullptr);
        CHECK(each["scrubbed"] == nullptr);
    }
    CHECK(listed["drives"] == stage.answer("/v1/drives").json["drives"]);
    for (const json& each : listed["drives"]) {
        CAPTURE(each.dump());
        CHECK(each["state"] == "idle");
        CHECK(each["medium"] == nullptr);
        CHECK(each["mounts"] == 0);
    }
}

// -- format --

TEST_CASE("sim admin tape: a format labels a cartridge for a pool", "[sim]") {
    AdminStage stage(83, with_library());
    wait_open(stage);
    ObjectCaller caller(stage);

    caller.done(caller.tape().format({.barcode = kSecond, .pool = "cold"}, {}));

    const json labelled = cartridge(stage, kSecond);
    CHECK(labelled["state"] == "ok");
    CHECK(labelled["pool"] == "cold");
    CHECK(labelled["generation"] == 1);
    CHECK(labelled["files"] == 0);
    CHECK(labelled["mounts"] == 1);
    const json with_it = drive(stage, labelled["drive"].get<std::string>());
    CHECK(with_it["medium"] == kSecond);
    CHECK(with_it["mounts"] == 1);
    CHECK(cartridge(stage, kFirst)["state"] == "blank");
    CHECK(stage.node().events().count("library.formatted") == 1);
}

TEST_CASE("sim admin tape: a format is refused that names what is not there", "[sim]") {
    AdminStage stage(84, with_library());
    wait_open(stage);
    ObjectCaller caller(stage);
    TapeCalls& tape = caller.tape();

    CHECK(caller.refused(tape.format({.barcode = "V99999L9", .pool = "cold"}, {})) ==
          "not_found: there is no cartridge V99999L9");
    CHECK(caller.refused(tape.format({.barcode = kFirst, .pool = "fast"}, {})) ==
          "exists: pool fast is not a tape pool of this node");
    for (const std::string& each : {kDrive0, kDrive1}) {
        caller.done(tape.set_drive(each, TapeCalls::DriveUse::kDown, {}));
        CHECK(drive(stage, each)["state"] == "down");
    }
    CHECK(caller.refused(tape.format({.barcode = kFirst, .pool = "cold"}, {})) ==
          "exists: all drives are down");
    CHECK(cartridge(stage, kFirst)["state"] == "blank");

    caller.done(tape.set_drive(kDrive1, TapeCalls::DriveUse::kUp, {}));
    caller.done(tape.format({.barcode = kFirst, .pool = "cold"}, {}));
    CHECK(cartridge(stage, kFirst)["drive"] == kDrive1);
}

TEST_CASE("sim admin tape: a format that loses data takes as much force as the data are worth",
          "[sim]") {
    AdminStage stage(85, with_library());
    wait_open(stage);
    ObjectCaller caller(stage);
    TapeCalls& tape = caller.tape();
    caller.done(tape.format({.barcode = kFirst, .pool = "cold"}, {}));
    const fop::Fid fid = caller.put("cold", "one", kBytes);
    caller.done(tape.sync("cold", {}));
    const json written = cartridge(stage, kFirst);
    REQUIRE(written["files"] == 1);
    CHECK(written["used"].get<std::uint64_t>() >= kBytes.size());
    CHECK(written["live"] == kBytes.size());
    CHECK(written["dead"] == 0);
    CHECK(written["failures"] == 0);
    const auto format = [&](TapeCalls::Force force) {
        return tape.format({.barcode = kFirst, .pool = "cold", .force = force}, {});
    };

    const std::string has = "exists: cartridge " + kFirst + " has copies of 1 object; ";
    CHECK(caller.refused(format(TapeCalls::Force::kRefuseData)) ==
          has + "none would be lost; --force forgets the copies");
    caller.done(tape.release(fid, {}));
    for (const auto force : {TapeCalls::Force::kRefuseData, TapeCalls::Force::kForgetData}) {
        CHECK(
            caller.refused(format(force)) ==
            has +
                "1 object with no other copy would be lost for good; --force --yes confirms that");
    }
    CHECK(cartridge(stage, kFirst) == written);

    // What is dead is not worth anything, but it is still there.
    caller.done(caller.objects().remove(fid, "", {}));
    CHECK(cartridge(stage, kFirst)["dead"] == kBytes.size());
    CHECK(cartridge(stage, kFirst)["live"] == 0);
    CHECK(caller.refused(format(TapeCalls::Force::kRefuseData)) ==
          "exists: cartridge " + kFirst +
              " has data, but no live copies; --force discards the data");
    caller.done(format(TapeCalls::Force::kForgetData));
    const json anew = cartridge(stage, kFirst);
    CHECK(anew["generation"] == 2);
    CHECK(anew["files"] == 0);
    CHECK(anew["dead"] == 0);
}

// -- load and unload --

TEST_CASE("sim admin tape: a cartridge is loaded into a drive, and back in its element afterwards",
          "[sim]") {
    AdminStage stage(86, with_library());
    wait_open(stage);
    ObjectCaller caller(stage);
    TapeCalls& tape = caller.tape();

    caller.done(tape.load({.barcode = kSecond, .drive = kDrive1}, {}));
    CHECK(drive(stage, kDrive1)["medium"] == kSecond);
    CHECK(drive(stage, kDrive1)["mounts"] == 1);
    CHECK(drive(stage, kDrive0)["medium"] == nullptr);
    CHECK(cartridge(stage, kSecond)["drive"] == kDrive1);
    // A load says nothing about the label.
    CHECK(cartridge(stage, kSecond)["state"] == "blank");

    caller.done(tape.unload(kDrive1, {}));
    CHECK(drive(stage, kDrive1)["medium"] == nullptr);
    CHECK(cartridge(stage, kSecond)["drive"] == nullptr);
    CHECK(stage.node().library().image().full_elements().size() == 3);
    // There is nothing to unload, which is done.
    caller.done(tape.unload(kDrive1, {}));
}

TEST_CASE("sim admin tape: loads and unloads that cannot be are refused, and change nothing",
          "[sim]") {
    AdminStage stage(87, with_library());
    wait_open(stage);
    ObjectCaller caller(stage);
    TapeCalls& tape = caller.tape();
    caller.done(tape.load({.barcode = kFirst, .drive = kDrive0}, {}));
    const json before = stage.answer("/v1/media").json;

    CHECK(caller.refused(tape.load({.barcode = kFirst, .drive = "nowhere"}, {})) ==
          "not_found: there is no drive nowhere");
    CHECK(caller.refused(tape.load({.barcode = "V99999L9", .drive = kDrive1}, {})) ==
          "not_found: there is no cartridge V99999L9");
    CHECK(caller.refused(tape.unload("nowhere", {})) == "not_found: there is no drive nowhere");
    CHECK(caller.refused(tape.load({.barcode = kFirst, .drive = kDrive1}, {})) ==
          "exists: cartridge " + kFirst + " is in drive " + kDrive0);
    CHECK(stage.answer("/v1/media").json == before);

    caller.done(tape.set_drive(kDrive1, TapeCalls::DriveUse::kDown, {}));
    CHECK(caller.refused(tape.load({.barcode = kSecond, .drive = kDrive1}, {}))
              .starts_with("exists: drive " + kDrive1 + " is down: "));
    CHECK(drive(stage, kDrive1)["state"] == "down");
    CHECK(drive(stage, kDrive1)["reason"] != "");
}

// -- queue --

TEST_CASE("sim admin tape: a recall is in the queue until its object is back", "[sim]") {
    AdminStage stage(88, with_library());
    wait_open(stage);
    ObjectCaller caller(stage);
    TapeCalls& tape = caller.tape();
    const fop::Fid fid = caller.put("cold", "one", kBytes);
    caller.done(tape.sync("cold", {}));
    caller.done(tape.release(fid, {}));
    CHECK(caller.done(tape.recalls({})).total == 0);
    std::string barcode;
    const json media_listed = stage.answer("/v1/media").json;
    for (const json& each : media_listed["media"]) {
        if (each["files"] == 1) barcode = each["name"].get<std::string>();
    }
    const json drives_listed = stage.answer("/v1/drives").json;
    for (const json& each : drives_listed["drives"]) {
        if (each["medium"] == nullptr) continue;
        caller.done(tape.unload(each["name"].get<std::string>(), {}));
    }

    CHECK(caller.done(tape.stage({.fid = fid}, {})).waits);
    const client::RecallQueue queue = caller.done(tape.recalls({}));
    REQUIRE(queue.recalls.size() == 1);
    CHECK(queue.total == 1);
    CHECK(queue.recalls[0].fid == fid);
    CHECK(queue.recalls[0].name == "one");
    CHECK(queue.recalls[0].size_bytes == kBytes.size());
    CHECK(queue.recalls[0].place == 0);
    CHECK(queue.recalls[0].cartridge == barcode);
    // Its cartridge is not to be lost meanwhile.
    CHECK(caller.refused(tape.format(
              {.barcode = barcode, .pool = "cold", .force = TapeCalls::Force::kLoseObjects}, {})) ==
          "exists: cartridge " + barcode + " is needed by a recall");

    std::vector<std::byte> read(kBytes.size());
    CHECK(caller.done(caller.objects().read(fid, 0, read, {})) == kBytes.size());
    CHECK(read == kBytes);
    CHECK(caller.done(tape.recalls({})).total == 0);
    CHECK_FALSE(caller.done(tape.copies(fid, {})).copies.empty());
    CHECK(cartridge(stage, barcode)["mounts"] == 2);
}

TEST_CASE("sim admin tape: a recall that is cancelled leaves its object on tape", "[sim]") {
    AdminStage stage(89, with_library());
    wait_open(stage);
    ObjectCaller caller(stage);
    TapeCalls& tape = caller.tape();
    const fop::Fid fid = caller.put("cold", "one", kBytes);
    caller.done(tape.sync("cold", {}));
    caller.done(tape.release(fid, {}));
    for (const std::string& each : {kDrive0, kDrive1}) {
        caller.done(tape.set_drive(each, TapeCalls::DriveUse::kDown, {}));
    }

    CHECK(caller.done(tape.stage({.fid = fid}, {})).waits);
    const client::RecallQueue queue = caller.done(tape.recalls({}));
    CHECK(queue.total == 1);
    CHECK(queue.reason.starts_with("all drives of library "));
    caller.done(tape.cancel(fid, {}));
    CHECK(caller.done(tape.recalls({})).total == 0);
    CHECK_FALSE(caller.done(tape.copies(fid, {})).on_disk);
}

// -- drain --

TEST_CASE("sim admin tape: a drain that unloads leaves no cartridge in a drive", "[sim]") {
    AdminStage stage(90, with_library());
    wait_open(stage);
    ObjectCaller caller(stage);
    caller.done(caller.tape().load({.barcode = kFirst, .drive = kDrive0}, {}));
    caller.done(caller.tape().load({.barcode = kSecond, .drive = kDrive1}, {}));

    auto drained = stage.ask("/v1/drain", {{"unload", "yes"}});
    for (int i = 0; i < 1000 && !AdminStage::answered(drained); ++i) stage.run_for(1s);
    CHECK(AdminStage::take(std::move(drained)).json["state"] == "drained");
    const json drives_listed = stage.answer("/v1/drives").json;
    for (const json& each : drives_listed["drives"]) {
        CHECK(each["medium"] == nullptr);
    }
}

TEST_CASE("sim admin tape: a drain says which drive did not give its cartridge back", "[sim]") {
    AdminStage stage(91, with_library());
    wait_open(stage);
    ObjectCaller caller(stage);
    caller.done(caller.tape().load({.barcode = kFirst, .drive = kDrive0}, {}));
    caller.done(caller.tape().load({.barcode = kSecond, .drive = kDrive1}, {}));
    stage.node().library().image().drive(0).dead = true;

    auto drained = stage.ask("/v1/drain", {{"unload", "yes"}});
    for (int i = 0; i < 2000 && !AdminStage::answered(drained); ++i) stage.run_for(1s);
    CHECK(AdminStage::refusal(AdminStage::take(std::move(drained)))
              .starts_with("503 drained, but not unloaded: drive " + kDrive0 + " has " + kFirst));
    CHECK(drive(stage, kDrive1)["medium"] == nullptr);
    CHECK(stage.answer("/v1/status").json["state"] == "drained");
}

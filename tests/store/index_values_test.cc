// Goal: what is written into an index is read back, what is not whole is refused, and
// docs/formats/index.md shows it as it is.
#include <fstream>
#include <iterator>

#include "store/copy.h"
#include "store/lmdb_file.h"
#include "store/object.h"
#include "tests/store/index_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

constexpr Fid kFid{.high = 0x0001020304050607, .low = 0x08090a0b0c0d0e0f};

ClientId example_client() {
    ClientId client;
    for (std::size_t i = 0; i < client.bytes.size(); ++i) {
        client.bytes[i] = static_cast<std::byte>(0x20 + i);
    }
    return client;
}

Object documented_object() {
    return {.size_bytes = 10'000,
            .version = 3,
            .created = {1'700'000'000'000'000'000},
            .changed = {1'700'000'001'000'000'000},
            .pool = 1,
            .mode = 0640,
            .last_writer = {.incarnation = 9, .others_in = 7, .who = example_client()},
            .owner = "ann",
            .group = "staff",
            .name = "reports/2026",
            .name_version = 2};
}

Copy documented_copy() {
    return {.fid = kFid,
            .offset = 4096,
            .length = 5904,
            .version = 3,
            .cartridge = {.vsn = {'F', 'P', '0', '0', '0', '7'}, .generation = 2},
            .position = {.file = 9, .member = 4096},
            .block = 1234,
            .checksum = 0x11223344,
            .written_s = 1'800'000'000};
}

ReplyKey example_reply_key() {
    return {.client = example_client(), .request_number = 0x1'4d07};
}

constexpr std::array<std::uint32_t, 2> kChecksums{0x11223344, 0x55667788};

std::string hex(std::byte byte) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto value = static_cast<std::size_t>(byte);
    return {kDigits[value / 16], kDigits[value % 16]};
}

std::string block(const std::string& name, Bytes bytes) {
    std::string text = "    " + name + ", " + std::to_string(bytes.size()) + " bytes\n";
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        const std::string offset = std::to_string(at);
        text += "    " + std::string(4 - offset.size(), ' ') + offset + " ";
        for (const auto byte : bytes.subspan(at, std::min<std::size_t>(16, bytes.size() - at))) {
            text += " " + hex(byte);
        }
        text += "\n";
    }
    return text;
}

void require_shown(const std::string& name, Bytes bytes) {
    // Relative to the root of the project, where tests run.
    std::ifstream file("docs/formats/index.md");
    REQUIRE(file.good());
    const std::string document(std::istreambuf_iterator<char>(file), {});
    const auto text = block(name, bytes);
    INFO("the document should show\n" << text);
    REQUIRE(document.find(text) != std::string::npos);
}

void require_shown(const std::string& name, const Key& key, Bytes value) {
    require_shown(name + ", key", key);
    std::vector<std::byte> stored(value.begin(), value.end());
    const auto sum = entry_sum(key, value);
    const auto sum_bytes = std::as_bytes(std::span(&sum, 1));
    stored.insert(stored.end(), sum_bytes.begin(), sum_bytes.end());
    require_shown(name + ", value", stored);
}

// Every beginning of a value, and one byte more, is refused.
template <typename Read>
void require_refused_unless_whole(Bytes value, std::size_t shortest, const Read& read) {
    for (std::size_t size = 0; size < value.size(); ++size) {
        INFO("size " << size);
        if (size < shortest) REQUIRE(!read(value.first(size)).has_value());
    }
    std::vector<std::byte> longer(value.begin(), value.end());
    longer.push_back(std::byte{1});
    REQUIRE(!read(Bytes(longer)).has_value());
}

}  // namespace

TEST_CASE("store index values: an object is read back, and only whole", "[store]") {
    ValueBuffer buffer;
    const auto value = write_object(buffer, documented_object());
    const auto object = read_object(value);

    REQUIRE(object.has_value());
    REQUIRE(object->size_bytes == 10'000);
    REQUIRE(object->version == 3);
    REQUIRE(object->created.unix_ns == 1'700'000'000'000'000'000);
    REQUIRE(object->changed.unix_ns == 1'700'000'001'000'000'000);
    REQUIRE(object->pool == 1);
    REQUIRE(object->mode == 0640);
    REQUIRE(object->last_writer == documented_object().last_writer);
    REQUIRE(object->owner == "ann");
    REQUIRE(object->group == "staff");
    REQUIRE(object->name == "reports/2026");
    REQUIRE(object->name_version == 2);
    require_refused_unless_whole(value, value.size(), read_object);
}

TEST_CASE("store index values: an object of an older program has no last writer", "[store]") {
    ValueBuffer buffer;
    const auto value = write_object(buffer, documented_object());
    std::vector<std::byte> older(value.begin(), value.begin() + 56);
    older.insert(older.end(), value.begin() + 76, value.end());
    older[0] = std::byte{1};
    const auto object = read_object(Bytes(older));

    REQUIRE(object.has_value());
    REQUIRE(object->last_writer == LastWriter{.incarnation = 9});
    REQUIRE(object->owner == "ann");
    REQUIRE(object->name == "reports/2026");
    require_refused_unless_whole(Bytes(older), older.size(), read_object);
}

TEST_CASE("store index values: a released object says so, and which version its content has",
          "[store]") {
    ValueBuffer buffer;
    Object released = documented_object();
    released.version = 5;
    released.attribute_changes = 2;
    released.is_released = true;
    released.released_blocks = 3;
    const auto value = write_object(buffer, released);
    const auto object = read_object(value);

    REQUIRE(object.has_value());
    REQUIRE(object->is_released);
    REQUIRE(object->released_blocks == 3);
    REQUIRE(object->version == 5);
    REQUIRE(object->content_version() == 3);
    REQUIRE(object->last_writer == documented_object().last_writer);
    REQUIRE(object->owner == "ann");
    require_refused_unless_whole(value, value.size(), read_object);
    const auto changed = [&](std::size_t at, std::byte to) {
        std::vector<std::byte> bytes(value.begin(), value.end());
        bytes[at] = to;
        return read_object(Bytes(bytes)).has_value();
    };
    REQUIRE(!changed(3, std::byte{2}));
    // Nothing needs this layout then.
    REQUIRE(!changed(3, std::byte{0}));
    REQUIRE(!changed(87, std::byte{1}));
    REQUIRE(!changed(76, std::byte{6}));
    std::vector<std::byte> of_nothing(value.begin(), value.end());
    std::ranges::fill(std::span(of_nothing).subspan(16, 8), std::byte{0});
    REQUIRE(!read_object(Bytes(of_nothing)).has_value());
    ValueBuffer other;
    const Object plain = documented_object();
    REQUIRE(write_object(other, plain).size() + 12 == value.size());
    std::vector<std::byte> upload(24);
    upload[0] = std::byte{1};
    upload.insert(upload.end(), value.begin(), value.end());
    REQUIRE(!read_upload(Bytes(upload)).has_value());
}

TEST_CASE("store index values: an object that was released by an older program is read",
          "[store]") {
    ValueBuffer buffer;
    Object changed = documented_object();
    changed.attribute_changes = 2;
    const auto value = write_object(buffer, changed);
    std::vector<std::byte> older(value.begin(), value.end());
    REQUIRE(older[0] == std::byte{3});
    older[3] = std::byte{1};
    const auto object = read_object(Bytes(older));

    REQUIRE(object.has_value());
    REQUIRE(object->is_released);
    REQUIRE(object->released_blocks == 0);
    REQUIRE(object->content_version() == 1);
    REQUIRE(object->name == "reports/2026");
    require_refused_unless_whole(Bytes(older), older.size(), read_object);
    std::ranges::fill(std::span(older).subspan(76, 4), std::byte{0});
    REQUIRE(read_object(Bytes(older))->is_released);
    older[0] = std::byte{2};
    REQUIRE_FALSE(read_object(Bytes(older)).has_value());
    // What it becomes with its next change.
    ValueBuffer next;
    REQUIRE(read_object(write_object(next, *object))->is_released);
}

TEST_CASE(
    "store index values: an object may have a collection, and is kept with its group otherwise",
    "[store]") {
    ValueBuffer buffer;
    Object collected = documented_object();
    REQUIRE(collected.kept_with() == "staff");
    collected.collection = "run-7";
    const auto value = write_object(buffer, collected);
    const auto object = read_object(value);

    REQUIRE(object.has_value());
    REQUIRE(object->collection == "run-7");
    REQUIRE(object->kept_with() == "run-7");
    REQUIRE(object->name == "reports/2026");
    REQUIRE(object->attribute_changes == 0);
    REQUIRE_FALSE(object->is_released);
    require_refused_unless_whole(value, value.size(), read_object);
    Object released = collected;
    released.is_released = true;
    released.released_blocks = 3;
    ValueBuffer both;
    const auto again = read_object(write_object(both, released));
    REQUIRE(again.has_value());
    REQUIRE(again->collection == "run-7");
    REQUIRE(again->is_released);
    REQUIRE(again->released_blocks == 3);
    // A layout for collections without one, and one without a place for it.
    std::vector<std::byte> bytes(value.begin(), value.end() - 5);
    bytes[75] = std::byte{0};
    REQUIRE_FALSE(read_object(Bytes(bytes)).has_value());
    bytes.assign(value.begin(), value.end());
    bytes[0] = std::byte{3};
    REQUIRE_FALSE(read_object(Bytes(bytes)).has_value());
    // What an older version wrote has none.
    ValueBuffer older;
    REQUIRE(read_object(write_object(older, documented_object()))->collection.empty());
}

TEST_CASE("store index values: the longest names fit into an upload", "[store]") {
    const std::string principal(kPrincipalBytesMax, 'p');
    const std::string name(kObjectNameBytesMax, 'n');
    ValueBuffer buffer;
    const auto value = write_upload(
        buffer,
        {.object = {.owner = principal, .group = principal, .name = name, .collection = principal},
         .rule = NameRule::kNoReplace,
         .write_count = 5,
         .written_bytes = 6});
    const auto upload = read_upload(value);

    REQUIRE(upload.has_value());
    REQUIRE(upload->object.name == name);
    REQUIRE(upload->object.group == principal);
    REQUIRE(upload->object.collection == principal);
    REQUIRE(upload->rule == NameRule::kNoReplace);
    REQUIRE(upload->write_count == 5);
    REQUIRE(upload->written_bytes == 6);
    require_refused_unless_whole(value, value.size(), read_upload);
}

TEST_CASE("store index values: an extent is read back, within its bounds", "[store]") {
    ValueBuffer buffer;
    const auto key = Key::extent(kFid, 5);
    const auto checksums = std::as_bytes(std::span(kChecksums));
    const auto value = write_extent(buffer, 1000, checksums);
    const auto extent = read_extent(key, value);

    REQUIRE(extent.has_value());
    REQUIRE(extent->fid == kFid);
    REQUIRE(extent->first == 5);
    REQUIRE(extent->block == 1000);
    REQUIRE(extent->count == 2);
    std::array<std::uint32_t, 1> second{};
    extent->copy_checksums(1, second);
    REQUIRE(second[0] == kChecksums[1]);

    REQUIRE(!read_extent(Key::extent(kFid, kObjectBlocksMax - 1), value).has_value());
    REQUIRE(read_extent(Key::extent(kFid, kObjectBlocksMax - 2), value).has_value());
    REQUIRE(!read_extent(Key::object(kFid), value).has_value());
    REQUIRE(!read_extent(key, value.first(8)).has_value());
    REQUIRE(!read_extent(key, value.first(11)).has_value());
    std::vector<std::byte> far_away(value.begin(), value.end());
    std::ranges::fill(std::span(far_away).first(8), std::byte{0xff});
    REQUIRE(!read_extent(key, far_away).has_value());
    const std::vector<std::byte> too_long(8 + 4 * (kExtentBlocksMax + 1));
    REQUIRE(!read_extent(key, too_long).has_value());
}

TEST_CASE("store index values: keys are ordered as what they name", "[store]") {
    const std::vector<Key> ascending{Key::cleared({.high = 1}, 255),
                                     Key::cleared({.high = 1}, 256),
                                     Key::extent({.high = 0, .low = 0xffff}, 1),
                                     Key::extent({.high = 1}, 255),
                                     Key::extent({.high = 1}, 256),
                                     Key::extent({.high = 1, .low = 1}, 0),
                                     Key::object({.high = 255}),
                                     Key::object({.high = 256}),
                                     Key::reply(example_reply_key()),
                                     Key::upload({.high = 0})};
    for (std::size_t i = 1; i < ascending.size(); ++i) {
        REQUIRE(text_of(ascending[i - 1]) < text_of(ascending[i]));
    }
    REQUIRE(read_fid_key(KeyKind::kObject, Key::object(kFid)) == kFid);
    REQUIRE(!read_fid_key(KeyKind::kUpload, Key::object(kFid)).has_value());
    const auto reply_key = read_reply_key(Key::reply(example_reply_key()));
    REQUIRE(reply_key->client == example_reply_key().client);
    REQUIRE(reply_key->request_number == example_reply_key().place());

    const Key written = Key::reply({.client = {}, .request_number = 1023});
    std::vector<std::byte> beyond(written.bytes().begin(), written.bytes().end());
    REQUIRE(read_reply_key(beyond).has_value());
    beyond[beyond.size() - 2] = std::byte{4};  // There are 1024 places.
    beyond.back() = std::byte{0};
    REQUIRE(!read_reply_key(beyond).has_value());
}

TEST_CASE("store index values: the document shows them as they are", "[store]") {
    ValueBuffer buffer;
    require_shown("object", Key::object(kFid), write_object(buffer, documented_object()));
    require_shown("extent", Key::extent(kFid, 5),
                  write_extent(buffer, 1000, std::as_bytes(std::span(kChecksums))));
    require_shown("upload", Key::upload(kFid),
                  write_upload(buffer, {.object = documented_object(),
                                        .rule = NameRule::kNoReplace,
                                        .write_count = 2,
                                        .written_bytes = 8192}));
    require_shown("reply", Key::reply(example_reply_key()),
                  write_reply(buffer, {.key = example_reply_key(),
                                       .made = Duration(1'700'000'000'000'000'000),
                                       .reply = bytes_of("done")}));
    require_shown("cleared range", Key::cleared(kFid, 7), write_cleared(buffer, 5));
    Object released = documented_object();
    released.version = 5;
    released.attribute_changes = 2;
    released.is_released = true;
    released.released_blocks = 3;
    released.collection = "run-7";
    require_shown("released object", Key::object(kFid), write_object(buffer, released));
    const Copy copy = documented_copy();
    require_shown("copy", copy_key(key_of(copy)), write_copy(buffer, copy));
    require_shown("position", position_key(copy.cartridge.vsn, copy.position),
                  write_position(buffer, key_of(copy)));
    require_shown("total", Key::total(copy.cartridge.vsn),
                  write_total(buffer, {.cartridge = copy.cartridge, .copies = 2, .bytes = 70'000}));
    require_shown("recall", Key::recall(kFid),
                  write_recall(buffer, {.ticket = 0x9'0000'0001,
                                        .priority = 5,
                                        .asked = {1'800'000'000'000'000'000},
                                        .pinned_until = {1'800'000'060'000'000'000},
                                        .client = example_client(),
                                        .requester = "ann"}));
}

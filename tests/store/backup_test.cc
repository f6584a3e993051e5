// Goal: what a backup has is read as it was written, in parts of any size; anything else is
// refused. The worked example is that of docs/formats/backup.md.

#include "store/backup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/byte_order.h"
#include "core/crc32c.h"
#include "tests/catch.h"
#include "tests/store/text_bytes.h"

using namespace fopd;
using namespace fopd::store;

namespace {

using Buffer = std::vector<std::byte>;

Bytes as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

BackupHead example_head() {
    BackupHead head{.made = {.unix_ns = 0x1122334455667788}};
    for (std::size_t i = 0; i < head.node.size(); ++i) head.node[i] = static_cast<std::byte>(i);
    return head;
}

BackupTree example_tree() {
    BackupTree tree{.kind = BackupTree::Kind::kNames, .part = 1, .applied = 5};
    tree.owner = example_head().node;
    return tree;
}

Buffer example() {
    BackupWriter writer(example_head());
    writer.slots("1 x fast\n");
    writer.begin_tree(example_tree());
    writer.entry({.key = as_bytes("a"), .value = as_bytes("12")});
    writer.entry({.key = as_bytes("b"), .value = {}});
    writer.end_tree();
    writer.end();
    return {writer.bytes().begin(), writer.bytes().end()};
}

struct Read {
    std::vector<BackupTree> trees;
    std::string media;
    std::vector<std::pair<std::string, std::string>> entries;
};

using fopd::store::testing::text_of;

Result<Read> read(Bytes bytes) {
    BackupReader reader;
    Read all;
    const Error early{.code = Errc::kCorrupt, .context = "early"};
    if (bytes.size() < kBackupHeadBytes) return std::unexpected(early);
    if (const auto head = reader.head(bytes.first(kBackupHeadBytes)); !head) {
        return std::unexpected(head.error());
    }
    bytes = bytes.subspan(kBackupHeadBytes);
    while (!reader.ended()) {
        if (bytes.size() < kBackupChunkHeadBytes) return std::unexpected(early);
        const auto chunk = reader.chunk_head(bytes.first(kBackupChunkHeadBytes));
        if (!chunk) return std::unexpected(chunk.error());
        bytes = bytes.subspan(kBackupChunkHeadBytes);
        if (bytes.size() < chunk->payload_bytes) return std::unexpected(early);
        const Bytes payload = bytes.first(chunk->payload_bytes);
        bytes = bytes.subspan(chunk->payload_bytes);
        const auto tree = reader.payload(*chunk, payload);
        if (!tree) return std::unexpected(tree.error());
        if (*tree) all.trees.push_back(**tree);
        if (chunk->kind == BackupChunk::kMedia) all.media += text_of(payload);
        if (chunk->kind != BackupChunk::kEntries) continue;
        BackupEntries entries(payload);
        for (auto entry = entries.next(); entry && *entry; entry = entries.next()) {
            all.entries.emplace_back(text_of((*entry)->key), text_of((*entry)->value));
        }
    }
    if (!bytes.empty()) return std::unexpected(early);
    return all;
}

std::string hex(Bytes bytes) {
    std::string text;
    for (const std::byte each : bytes) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        text += kDigits[std::to_integer<unsigned>(each) >> 4];
        text += kDigits[std::to_integer<unsigned>(each) & 15];
    }
    return text;
}

}  // namespace

TEST_CASE("store backup: what was written is read", "[store]") {
    const auto all = read(example());
    REQUIRE(all.has_value());
    REQUIRE(all->trees == std::vector{example_tree()});
    REQUIRE(all->entries ==
            std::vector<std::pair<std::string, std::string>>{{"a", "12"}, {"b", ""}});
}

TEST_CASE("store backup: many entries are many chunks, in order", "[store]") {
    BackupWriter writer(example_head());
    writer.begin_tree(example_tree());
    Buffer bytes;
    std::vector<std::pair<std::string, std::string>> entries;
    for (unsigned i = 0; i < 3000; ++i) {
        std::string number = std::to_string(100'000 + i);
        entries.emplace_back(number, std::string(i % 200, 'v'));
        writer.entry(
            {.key = as_bytes(entries.back().first), .value = as_bytes(entries.back().second)});
        bytes.insert(bytes.end(), writer.bytes().begin(), writer.bytes().end());
        writer.clear();
    }
    writer.end_tree();
    writer.end();
    bytes.insert(bytes.end(), writer.bytes().begin(), writer.bytes().end());
    const auto all = read(bytes);
    REQUIRE(all.has_value());
    REQUIRE(all->entries == entries);
}

TEST_CASE("store backup: the example of the document is this one", "[store]") {
    std::ifstream file("docs/formats/backup.md");
    std::stringstream text;
    text << file.rdbuf();
    std::string digits;
    std::string line;
    bool inside = false;
    while (std::getline(text, line)) {
        if (line == "## Example") inside = true;
        if (!inside || !line.starts_with("    ")) continue;
        for (const char c : line.substr(4, line.find("  ", 4) - 4)) {
            if (c != ' ') digits += c;
        }
    }
    REQUIRE(digits == hex(example()));
}

TEST_CASE("store backup: the head has the schema version of the indexes", "[store]") {
    const auto head_of = [](std::uint32_t schema_version) {
        BackupHead head = example_head();
        head.schema_version = schema_version;
        const BackupWriter writer(head);
        return BackupReader().head(writer.bytes());
    };
    REQUIRE(head_of(kSchema.version)->schema_version == kSchema.version);
    REQUIRE(head_of(1)->schema_version == 1);
    // Those of the first version did not say.
    REQUIRE(head_of(0)->schema_version == 1);
    REQUIRE(head_of(kSchema.version + 1).error().code == Errc::kUnsupported);
}

TEST_CASE("store backup: any byte that differs is noticed", "[store]") {
    const Buffer whole = example();
    for (std::size_t at = 0; at < whole.size(); ++at) {
        Buffer damaged = whole;
        damaged[at] ^= std::byte{0x10};
        CAPTURE(at);
        REQUIRE_FALSE(read(damaged).has_value());
    }
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        REQUIRE_FALSE(read(Bytes(whole).first(size)).has_value());
    }
}

TEST_CASE("store backup: chunks out of order are refused", "[store]") {
    const auto refused = [](auto make) {
        BackupWriter writer(example_head());
        make(writer);
        writer.end();
        return !read(writer.bytes()).has_value();
    };
    REQUIRE(refused([](BackupWriter& writer) {
        writer.slots("");
        writer.slots("");
    }));
    REQUIRE(refused([](BackupWriter& writer) { writer.begin_tree(example_tree()); }));
    REQUIRE(refused([](BackupWriter& writer) { writer.end_tree(); }));
    REQUIRE(refused([](BackupWriter& writer) {
        writer.begin_tree(example_tree());
        writer.begin_tree(example_tree());
    }));
    REQUIRE(refused([](BackupWriter& writer) {
        writer.begin_tree(example_tree());
        writer.end_tree();
        writer.slots("");
    }));
    REQUIRE(refused([](BackupWriter& writer) {
        writer.begin_tree(example_tree());
        writer.entry({.key = as_bytes("b"), .value = {}});
        writer.entry({.key = as_bytes("a"), .value = {}});
        writer.end_tree();
    }));
    REQUIRE(refused([](BackupWriter& writer) {
        writer.begin_tree(example_tree());
        writer.entry({.key = as_bytes("a"), .value = {}});
        writer.entry({.key = as_bytes("a"), .value = {}});
        writer.end_tree();
    }));
    REQUIRE_FALSE(refused([](BackupWriter& writer) {
        writer.begin_tree(example_tree());
        writer.end_tree();
    }));
}

TEST_CASE("store backup: a table of media is read as it was written", "[store]") {
    BackupHead head = example_head();
    head.has_media = true;
    const std::string table(kBackupChunkBytesMax + 7, 'm');
    const auto backup = [&](auto make) {
        BackupWriter writer(head);
        writer.slots("1 x fast\n");
        make(writer);
        writer.end();
        return Buffer{writer.bytes().begin(), writer.bytes().end()};
    };
    const auto all = read(backup([&](BackupWriter& writer) {
        writer.media(table);
        writer.begin_tree(example_tree());
        writer.end_tree();
    }));
    REQUIRE(all.has_value());
    const bool is_same = all->media == table;
    CHECK(is_same);
    // What the head promises must be there, in its place.
    CHECK_FALSE(read(backup([](BackupWriter&) {})).has_value());
    CHECK_FALSE(read(backup([](BackupWriter& writer) {
                    writer.begin_tree(example_tree());
                    writer.end_tree();
                    writer.media("m");
                })).has_value());
    head.has_media = false;
    CHECK_FALSE(read(backup([](BackupWriter& writer) { writer.media("m"); })).has_value());
}

TEST_CASE("store backup: one of a newer fopd is called so", "[store]") {
    Buffer newer = example();
    newer[8] = std::byte{3};
    REQUIRE(read(newer).error().code == Errc::kUnsupported);
}

// Goal: the note of how much of an image is durable is right whenever the image is changed.
#include "devices/tape/tape_file.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <sys/stat.h>

#include "tests/catch.h"
#include "tests/temp_dir.h"

namespace tape_file_test {

using namespace fopd;
using namespace fopd::devices;

namespace {

std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

Result<TapeFile> open_image(const TempDir& directory, const std::string& boot_id) {
    return TapeFile::open({.path = directory / "a.tap", .boot_id = boot_id});
}

Result<TapeRoom> write_letter(TapeFile& file, std::uint64_t number) {
    std::array<std::byte, 1> block{std::byte{'x'}};
    return file.write(number * image_bytes(1), {.data = block.data(), .size_bytes = 1});
}

}  // namespace

TEST_CASE("devices tape file: nothing is written without the note", "[devices]") {
    const TempDir directory;
    auto file = open_image(directory, "boot");
    REQUIRE(file.has_value());
    const std::string note = directory / "a.tap.durable";
    // It can be opened, but not written at an offset.
    REQUIRE(::mkfifo(note.c_str(), 0600) == 0);
    REQUIRE_FALSE(write_letter(*file, 0).has_value());
    REQUIRE_FALSE(write_letter(*file, 0).has_value());
    REQUIRE(std::filesystem::file_size(directory / "a.tap") == 0);
    REQUIRE(std::filesystem::remove(note));

    REQUIRE(write_letter(*file, 0).has_value());

    REQUIRE(text_of(note).starts_with("00000000000000000000 boot "));
    REQUIRE(text_of(note).size() == 61);
    REQUIRE(file->sync(10).has_value());
    REQUIRE(text_of(note).starts_with("00000000000000000010 boot "));
    REQUIRE(write_letter(*file, 0).has_value());
    REQUIRE(text_of(note).starts_with("00000000000000000000 boot "));
    REQUIRE(file->close(10).has_value());
    REQUIRE_FALSE(std::filesystem::exists(note));
}

TEST_CASE("devices tape file: a note of another boot is renewed when the image is opened",
          "[devices]") {
    const TempDir directory;
    {
        auto file = open_image(directory, "first");
        REQUIRE(file.has_value());
        REQUIRE(write_letter(*file, 0).has_value());
        REQUIRE(file->sync(10).has_value());
    }
    {
        auto file = open_image(directory, "second");
        REQUIRE(file.has_value());
        REQUIRE(file->take_records().count() == 1);
        REQUIRE(write_letter(*file, 1).has_value());
    }

    auto file = open_image(directory, "second");

    REQUIRE(file.has_value());
    REQUIRE(file->take_records().count() == 2);
    REQUIRE(file->close(20).has_value());
}

TEST_CASE("devices tape file: a note that is no file is none", "[devices]") {
    const TempDir directory;
    REQUIRE(::mkfifo((directory / "a.tap.durable").c_str(), 0600) == 0);

    auto file = open_image(directory, "boot");

    REQUIRE(file.has_value());
    REQUIRE(file->take_records().count() == 0);
}

}  // namespace tape_file_test

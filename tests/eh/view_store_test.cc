// Goal: a view store never has a view that it denied, and tells when it does not know. Method: a
// file in memory that fails before or after it has the new bytes, and a real one.

#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "eh/posix_small_file.h"
#include "eh/static_view_store.h"
#include "tests/catch.h"
#include "tests/temp_dir.h"

using namespace fopd;
using namespace fopd::eh;

namespace {

constexpr Error kNoDisk{.code = Errc::kNoSpace, .context = "full"};

class MemoryFile final : public SmallFile {
public:
    void read(SmallFileUser& user) override {
        later_.emplace_back([this, &user] {
            if (fails_read) return user.on_file_read(std::unexpected(kNoDisk));
            if (!bytes) return user.on_file_read(std::unexpected(Error{.code = Errc::kNotFound}));
            user.on_file_read(*bytes);
        });
    }
    void replace(std::vector<std::byte> next, SmallFileUser& user) override {
        later_.emplace_back([this, next = std::move(next), &user] {
            if (!fails_before) bytes = next;
            if (fails_before || fails_after) {
                return user.on_file_replaced(
                    std::unexpected(NotReplaced{.error = kNoDisk, .has_old_bytes = fails_before}));
            }
            user.on_file_replaced({});
        });
    }
    void finish() {
        while (!later_.empty()) {
            const auto next = std::move(later_.front());
            later_.pop_front();
            next();
        }
    }

    std::optional<std::vector<std::byte>> bytes;
    bool fails_read = false;
    bool fails_before = false;
    bool fails_after = false;

private:
    std::deque<std::function<void()>> later_;
};

struct Asking final : ViewStoreUser {
    explicit Asking(MemoryFile& of) : file(of), store(of) {}
    void on_view_read(Result<ViewHandle> view) override { read = view; }
    void on_view_swapped(Swapped outcome) override { swapped = outcome; }

    Result<ViewHandle> ask() {
        store.read(*this);
        file.finish();
        return read;
    }
    Swapped write(ViewNumber expected, std::uint64_t attempt) {
        View view{.number = expected + 1, .epoch_low = 1, .epoch_high = 9};
        view.roster = {{.name = "a", .incarnation = 1, .address = "x", .joined = 1}};
        view.writer = {.name = "a", .incarnation = 1, .attempt = attempt};
        store.swap(expected, std::make_shared<const CommittedView>(std::move(view)), *this);
        file.finish();
        return swapped;
    }

    MemoryFile& file;
    StaticViewStore store;
    Result<ViewHandle> read;
    Swapped swapped = Swapped::kUnknown;
};

}  // namespace

TEST_CASE("eh store: views are written one after the other", "[eh]") {
    MemoryFile file;
    Asking asking(file);
    CHECK(asking.ask().value() == nullptr);
    CHECK(asking.write(1, 1) == Swapped::kNo);
    CHECK(asking.write(0, 2) == Swapped::kYes);
    CHECK(asking.write(0, 3) == Swapped::kNo);
    CHECK(asking.write(1, 4) == Swapped::kYes);
    CHECK((*asking.ask())->number() == 2);
    CHECK((*asking.ask())->view().writer.attempt == 4);
}

TEST_CASE("eh store: an error says whether the view may have been written", "[eh]") {
    MemoryFile file;
    Asking asking(file);
    REQUIRE(asking.write(0, 1) == Swapped::kYes);

    file.fails_before = true;
    CHECK(asking.write(1, 2) == Swapped::kNo);
    CHECK((*asking.ask())->view().writer.attempt == 1);
    file.fails_before = false;
    file.fails_after = true;
    CHECK(asking.write(1, 3) == Swapped::kUnknown);
    CHECK((*asking.ask())->view().writer.attempt == 3);

    file.fails_read = true;
    CHECK_FALSE(asking.ask());
    CHECK(asking.write(2, 4) == Swapped::kUnknown);
    file.fails_read = false;
    file.bytes->pop_back();
    CHECK(asking.ask().error().code == Errc::kCorrupt);
}

TEST_CASE("eh store: a file is replaced as a whole", "[eh]") {
    const TempDir dir;
    const std::string path = dir / "epochs";
    const auto bytes = [](std::size_t size, int value) {
        return std::vector<std::byte>(size, static_cast<std::byte>(value));
    };
    CHECK(read_small_file(path).error().code == Errc::kNotFound);
    REQUIRE(replace_small_file(path, bytes(200'000, 7)));
    CHECK(read_small_file(path).value() == bytes(200'000, 7));
    REQUIRE(replace_small_file(path, bytes(10, 8)));
    CHECK(read_small_file(path).value() == bytes(10, 8));
    const auto failed = replace_small_file(dir / "missing/epochs", bytes(1, 1));
    REQUIRE_FALSE(failed);
    CHECK(failed.error().has_old_bytes);
}

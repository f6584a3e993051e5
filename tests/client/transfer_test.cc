// Goal: what is larger than memory arrives whole, in the right order, over losses of the server,
// and from a source that tells everything once only. Method: small windows, a source and a sink in
// memory, the fake store in the simulated world.
#include "client/transfer.h"

#include <cstring>
#include <string>
#include <utility>

#include "tests/catch.h"
#include "tests/client/object_stage.h"

namespace fopd::client::testing {

namespace {

constexpr std::uint64_t kWindow = 2 * fop::kBlockBytes;
constexpr TransferOptions kSmall{.window_bytes = kWindow, .lanes = 3, .patience = 60s};

enum class Repeats : std::uint8_t { kNo, kYes };

class Bytes final : public ByteSource {
public:
    Bytes(Stage& stage, std::vector<std::byte> bytes, Repeats repeats)
        : stage_(stage), bytes_(std::move(bytes)), repeats_(repeats == Repeats::kYes) {}

    Task<Outcome<std::size_t>> read(std::uint64_t offset, std::span<std::byte> into) override {
        REQUIRE((repeats_ || offset == read_));
        REQUIRE_FALSE(std::exchange(is_reading_, true));
        co_await stage_.reactor->yield();
        is_reading_ = false;
        const std::uint64_t from = std::min<std::uint64_t>(offset, bytes_.size());
        const std::size_t size = std::min<std::size_t>(into.size(), bytes_.size() - from);
        std::ranges::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(from),
                            static_cast<std::ptrdiff_t>(size), into.begin());
        read_ = offset + size;
        if (cancels_at && offset >= *cancels_at) cancel.cancel();
        if (fails_at && offset >= *fails_at) {
            co_return std::unexpected(Problem{.words = "the source failed"});
        }
        if (crash_at && offset >= *crash_at) {
            crash_at.reset();
            crash_is_due = true;
            const auto slept = co_await stage_.reactor->sleep_for(2ms);
            REQUIRE(slept.has_value());
        }
        co_return size;
    }
    bool repeats() const override { return repeats_; }
    std::uint64_t size_bytes() const override { return repeats_ ? bytes_.size() : 0; }

    std::optional<std::uint64_t> fails_at{};
    std::optional<std::uint64_t> cancels_at{};
    core::CancelSource cancel;
    std::optional<std::uint64_t> crash_at{};  // The server's, before this window is sent.
    bool crash_is_due = false;

private:
    Stage& stage_;
    const std::vector<std::byte> bytes_;
    const bool repeats_;
    std::uint64_t read_ = 0;
    bool is_reading_ = false;
};

class Collected final : public ByteSink {
public:
    Task<Outcome<void>> write(std::span<const std::byte> from) override {
        bytes.insert(bytes.end(), from.begin(), from.end());
        if (fails) co_return std::unexpected(Problem{.words = "the sink failed"});
        co_return {};
    }
    std::vector<std::byte> bytes;
    bool fails = false;
};

// What a later program would know of an upload.
class Witness final : public UploadWatcher {
public:
    void on_begun(const BegunUpload& begun) override { upload = begun; }
    void on_sent(const fop::Fid& fid, UploadedWindow window) override {
        REQUIRE(fid == upload.fid);
        upload.windows.push_back(window);
    }
    BegunUpload upload{};
};

// Cancels a put when it reads this window.
Witness put_until(Stage& stage, const std::vector<std::byte>& bytes, std::uint64_t offset) {
    Bytes source(stage, bytes, Repeats::kYes);
    source.cancels_at = offset;
    TransferOptions options = kSmall;
    options.cancel = &source.cancel;
    Witness witness;
    Put put(*stage.reactor, *stage.client, source, options);
    put.watch(witness);
    REQUIRE_FALSE(stage.run(put.run({.name = "a"})).has_value());
    return witness;
}

template <typename T>
std::vector<T> part(const std::vector<T>& all, std::size_t from, std::size_t count) {
    const std::size_t begin = std::min(from, all.size());
    const std::size_t end = begin + std::min(count, all.size() - begin);
    return {all.begin() + static_cast<std::ptrdiff_t>(begin),
            all.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

TEST_CASE("client transfer: a put of any length stores the bytes that were read", "[client]") {
    const auto repeats = GENERATE(Repeats::kNo, Repeats::kYes);
    Stage stage;
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{1}, std::size_t{kWindow - 1}, std::size_t{kWindow},
          std::size_t{kWindow + 1}, std::size_t{4 * kWindow}, std::size_t{11 * kWindow + 5}}) {
        CAPTURE(length);
        const auto bytes = pattern(length);
        Bytes source(stage, bytes, repeats);
        Put put(*stage.reactor, *stage.client, source, kSmall);
        stage.done(put.run({.name = "a"}));
        REQUIRE(stage.store.find("a")->bytes == bytes);
        REQUIRE(put.moved_bytes() == length);
    }
}

TEST_CASE("client transfer: a put over a crash of the server is whole, wherever it comes",
          "[client]") {
    const auto repeats = GENERATE(Repeats::kNo, Repeats::kYes);
    const bool forgets = GENERATE(false, true);
    for (std::uint64_t crash_at = 0; crash_at < 8 * kWindow; crash_at += kWindow) {
        CAPTURE(forgets, crash_at);
        Stage stage;
        stage.store.begins_uploads_durably = !forgets;
        const auto bytes = pattern(7 * kWindow + 100);
        Bytes source(stage, bytes, repeats);
        source.crash_at = crash_at;
        Put put(*stage.reactor, *stage.client, source, kSmall);
        const auto fid = stage.run_watched(put.run({.name = "a"}), [&] {
            if (std::exchange(source.crash_is_due, false)) stage.crash();
        });
        CAPTURE(fid ? std::string() : fid.error().words);
        REQUIRE(fid.has_value());
        REQUIRE(stage.store.find("a")->bytes == bytes);
    }
}

TEST_CASE("client transfer: a put that fails leaves nothing behind", "[client]") {
    Stage stage;
    Bytes source(stage, pattern(9 * kWindow), Repeats::kNo);
    source.fails_at = 5 * kWindow;
    Put put(*stage.reactor, *stage.client, source, kSmall);
    const auto fid = stage.run(put.run({.name = "a"}));
    REQUIRE_FALSE(fid.has_value());
    REQUIRE(fid.error().words == "the source failed");
    REQUIRE(stage.store.find("a") == nullptr);
    REQUIRE(stage.store.count("upload_abort") == 1);
    REQUIRE(stage.store.now.objects.empty());
}

TEST_CASE("client transfer: a put goes on where a cancelled one has stopped", "[client]") {
    const auto length = GENERATE(std::uint64_t{12 * kWindow}, std::uint64_t{12 * kWindow + 5});
    for (std::uint64_t stop = kWindow; stop <= 12 * kWindow; stop += kWindow) {
        CAPTURE(length, stop);
        Stage stage;
        const auto bytes = pattern(length);
        const Witness witness = put_until(stage, bytes, stop);
        REQUIRE(stage.store.count("upload_abort") == 0);
        REQUIRE(witness.upload.windows.size() * kWindow <= stop + kWindow);
        REQUIRE((witness.upload.windows.size() + 3) * kWindow >= stop);
        stage.world.run_for(1s);  // What was in flight arrives.
        const std::size_t written = stage.store.count("upload_write");

        Bytes source(stage, bytes, Repeats::kYes);
        Put put(*stage.reactor, *stage.client, source, kSmall);
        put.go_on(witness.upload);
        REQUIRE(stage.done(put.run({.name = "a"})) == witness.upload.fid);

        REQUIRE(put.size_bytes() == length);
        REQUIRE(put.moved_bytes() == length);
        REQUIRE(stage.store.find("a")->bytes == bytes);
        const std::size_t windows = (length + kWindow - 1) / kWindow;
        REQUIRE(stage.store.count("upload_write") - written ==
                windows - witness.upload.windows.size());
    }
}

TEST_CASE("client transfer: a put does not go on with what the server has lost", "[client]") {
    const bool forgets = GENERATE(false, true);
    Stage stage;
    stage.store.begins_uploads_durably = !forgets;
    const auto bytes = pattern(12 * kWindow + 5);
    const Witness witness = put_until(stage, bytes, 6 * kWindow);
    REQUIRE(witness.upload.windows.size() > 2);
    stage.crash();

    Bytes source(stage, bytes, Repeats::kYes);
    Put put(*stage.reactor, *stage.client, source, kSmall);
    put.go_on(witness.upload);
    const fop::Fid fid = stage.done(put.run({.name = "a"}));

    REQUIRE((fid == witness.upload.fid) == !forgets);
    REQUIRE(stage.store.find("a")->bytes == bytes);
    REQUIRE(put.moved_bytes() == bytes.size());
}

TEST_CASE("client transfer: an upload of other windows, or of nobody, begins anew", "[client]") {
    Stage stage;
    const auto bytes = pattern(12 * kWindow);
    Witness witness = put_until(stage, bytes, 6 * kWindow);
    SECTION("other windows") {
        witness.upload.window_bytes *= 2;
    }
    SECTION("no upload") {
        witness.upload.fid.low += 1000;
    }
    Bytes source(stage, bytes, Repeats::kYes);
    Put put(*stage.reactor, *stage.client, source, kSmall);
    put.go_on(witness.upload);
    REQUIRE(stage.done(put.run({.name = "a"})) != witness.upload.fid);
    REQUIRE(stage.store.find("a")->bytes == bytes);
}

TEST_CASE("client transfer: ranges come in order, and end where the object does", "[client]") {
    Stage stage;
    const auto bytes = pattern(7 * kWindow + 100);
    const fop::Fid fid = stage.done(stage.client->put({.name = "a"}, bytes, kNoWait));
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{5}, kWindow, 3 * kWindow + 1,
                                       7 * kWindow + 99, 8 * kWindow, 20 * kWindow}) {
        for (const std::uint64_t length :
             {std::uint64_t{0}, std::uint64_t{1}, kWindow, 4 * kWindow + 7, 1000 * kWindow}) {
            CAPTURE(offset, length);
            Collected sink;
            Get get(*stage.reactor, *stage.client, sink, kSmall);
            const auto got = stage.done(get.run(fid, {.offset = offset, .length = length}));
            REQUIRE(sink.bytes == part(bytes, offset, length));
            REQUIRE(got == sink.bytes.size());
        }
    }
}

TEST_CASE("client transfer: a sink that fails ends a get", "[client]") {
    Stage stage;
    const fop::Fid fid =
        stage.done(stage.client->put({.name = "a"}, pattern(9 * kWindow), kNoWait));
    Collected sink;
    sink.fails = true;
    Get get(*stage.reactor, *stage.client, sink, kSmall);
    const auto got = stage.run(get.run(fid, {.offset = 0, .length = 9 * kWindow}));
    REQUIRE_FALSE(got.has_value());
    REQUIRE(got.error().words == "the sink failed");
    REQUIRE(sink.bytes.size() == kWindow);
}

TEST_CASE("client transfer: overwritten and appended bytes are at their offsets", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    const auto bytes = pattern(5 * kWindow + 77);
    Bytes source(stage, bytes, Repeats::kNo);
    Overwrite write(*stage.reactor, *stage.client, source, kSmall);
    stage.done(write.run({.fid = fid, .offset = 10}));
    REQUIRE(part(stage.store.find("a")->bytes, 10, bytes.size()) == bytes);

    const auto more = pattern(100'000);
    Bytes tail(stage, more, Repeats::kNo);
    Appending append(*stage.reactor, *stage.client, tail, kSmall);
    const auto at = stage.done(append.run(fid));
    REQUIRE(at == 10 + bytes.size());
    REQUIRE(stage.store.count("append") == 1);
    REQUIRE(part(stage.store.find("a")->bytes, 10 + bytes.size(), more.size()) == more);
}

}  // namespace fopd::client::testing

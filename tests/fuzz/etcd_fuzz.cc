// Whatever an endpoint of etcd answers: it is understood or refused, a view that is found says the
// same when it is written again, and nothing of it gets into a header or the log as it is.
//
//     build/fuzz/bin/fuzz_etcd -max_len=4096 tests/fuzz/corpus/etcd
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ensure.h"
#include "core/events.h"
#include "eh/etcd/client.h"
#include "fop/base64.h"

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::etcd;

namespace {

class StandingClock final : public core::Clock {
public:
    Instant now() const override { return Instant{1s}; }
    WallTime wall() const override { return {}; }
};

// Gives the same answer to every request.
class OneAnswer final : public Http {
public:
    explicit OneAnswer(HttpAnswer answer) : answer_(std::move(answer)) {}
    std::expected<HttpAnswer, HttpFailure> post(const HttpRequest& request) override {
        for (const char character : request.token) ENSURE(character > ' ' && character < 0x7f);
        return answer_;
    }
    void cancel() override {}

private:
    const HttpAnswer answer_;
};

class OneLine final : public core::EventSink {
public:
    void emit(core::Level, std::string_view, std::span<const core::Field> fields) override {
        for (const core::Field& field : fields) {
            const auto* const text = std::get_if<std::string_view>(&field.value);
            if (text == nullptr) continue;
            for (const char character : *text) ENSURE(static_cast<unsigned char>(character) >= ' ');
        }
    }
    bool wants(core::Level) const override { return true; }
};

ViewHandle some_view() {
    View view{.number = 1, .epoch_low = 1, .epoch_high = 9};
    view.roster = {{.name = "a", .incarnation = 1, .address = "x", .joined = 1}};
    return std::make_shared<const CommittedView>(std::move(view));
}

void check_client(const std::string& text, int status) {
    OneAnswer http({.status = status, .body = text});
    const StandingClock clock;
    OneLine events;
    EtcdClient client({.endpoints = {"http://a"}, .user = "u", .password = "p"}, http, clock,
                      events);
    const auto read = client.read();
    if (read && *read != nullptr) ENSURE(decode_view((*read)->bytes()).has_value());
    const Swapped swapped = client.swap(0, some_view());
    // Only etcd's word for it makes a yes.
    if (status != 200) ENSURE(swapped != Swapped::kYes);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const std::string text(reinterpret_cast<const char*>(data), size_bytes);
    for (const auto form : {fop::Base64::kPadded, fop::Base64::kUrlSafeUnpadded}) {
        const auto bytes = fop::from_base64(text, form);
        if (bytes) ENSURE(fop::to_base64(*bytes, form) == text);
    }
    const auto found = parse_read(text);
    if (found && *found) ENSURE((*found)->revision > 0);
    const auto swap = parse_swap(text);
    if (swap) ENSURE(swap->revision > 0 && (!swap->is_put || !swap->found));
    (void)parse_token(text);
    check_client(text, 200);
    check_client(text, 503);
    // The client takes other statuses differently only if etcd has said why.
    if (parse_refusal(text).message.empty()) return 0;
    for (const int status : {400, 429}) check_client(text, status);
    return 0;
}

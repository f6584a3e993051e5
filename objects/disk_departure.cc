#include "objects/disk_departure.h"

#include <array>
#include <string_view>

namespace fopd::objects {

namespace {

constexpr std::uint64_t kCountMax = 200'000;
constexpr std::size_t kRepliesATurn = 256;

class ContentsCounter final : public store::MapVisitor {
public:
    Result<void> object(store::Fid /*fid*/, const store::Object& /*object*/) override {
        ++contents.objects;
        return count_one();
    }
    Result<void> upload(store::Fid /*fid*/, const store::Upload& /*upload*/) override {
        ++contents.uploads;
        return count_one();
    }
    Result<void> reply(const store::ReplyRecord& /*record*/) override {
        ++contents.replies;
        return count_one();
    }

    DiskContents contents;

private:
    Result<void> count_one() {
        if (++counted_ < kCountMax) return {};
        contents.is_all = false;
        return std::unexpected(
            Error{.code = Errc::kNoSpace, .context = "there are too many to count them"});
    }

    std::uint64_t counted_ = 0;
};

void add(std::vector<std::string>& parts, std::uint64_t count, std::string_view one,
         std::string_view many) {
    if (count == 0) return;
    parts.push_back(std::to_string(count) + " " + std::string(count == 1 ? one : many));
}

}  // namespace

std::string describe(const DiskContents& contents) {
    std::vector<std::string> parts;
    add(parts, contents.objects, "object", "objects");
    add(parts, contents.uploads, "upload", "uploads");
    add(parts, contents.replies, "recorded reply that a client may still ask for",
        "recorded replies that clients may still ask for");
    if (parts.empty()) return "nothing";
    std::string text = contents.is_all ? "" : "more than ";
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
        text += parts[i];
    }
    return text;
}

Result<HomeVolume*> DiskDeparture::home() {
    HomeVolume* const found = stores_.find(slot_);
    if (found != nullptr) return found;
    return std::unexpected(Error{.code = Errc::kNotFound, .context = "the disk is not there"});
}

Task<Result<DiskContents>> DiskDeparture::look(const Unheard* unheard) {
    const auto found = home();
    if (!found) co_return std::unexpected(found.error());
    const HomeVolume::Hold hold(**found);
    store::ObjectMap& map = (*found)->volume().map();
    ContentsCounter counter;
    constexpr std::array kKinds{store::KeyKind::kObject, store::KeyKind::kUpload};
    for (const store::KeyKind kind : kKinds) {
        const auto counted = co_await map.for_each(kind, &counter);
        if (!counter.contents.is_all) break;
        if (!counted) co_return std::unexpected(counted.error());
    }
    if (unheard->may_be_any && counter.contents.is_all) {
        const auto counted = co_await map.for_each(store::KeyKind::kReply, &counter);
        if (!counted && counter.contents.is_all) co_return std::unexpected(counted.error());
        co_return counter.contents;
    }
    for (std::size_t i = 0; i < unheard->keys.size(); ++i) {
        if (i % kRepliesATurn == kRepliesATurn - 1) co_await stores_.parts().reactor.yield();
        const auto reply = map.find_reply(unheard->keys[i]);
        if (!reply) co_return std::unexpected(reply.error());
        const bool is_there = reply->has_value() && (*reply)->key == unheard->keys[i];
        if (is_there) ++counter.contents.replies;
    }
    co_return counter.contents;
}

Task<Result<void>> DiskDeparture::begin(Instant deadline) {
    const auto found = home();
    if (!found) co_return std::unexpected(found.error());
    (*found)->begin_departure();
    const auto left = co_await (*found)->wait_until_free(deadline);
    if (!left) call_off();
    co_return left;
}

void DiskDeparture::call_off() {
    if (const auto found = home(); found) (*found)->cancel_departure();
}

Task<Result<void>> DiskDeparture::end() {
    const auto found = home();
    if (!found) co_return std::unexpected(found.error());
    (*found)->shut();
    co_return co_await (*found)->wait_until_free(kNever);
}

}  // namespace fopd::objects

// Goal: a policy is given the attributes by which it may order a fop. Method: a handler in the
// simulated world whose policy records what it is given.

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "reqh/request_handler.h"
#include "tests/reqh/fake_fop.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

// Keeps what it was told of each request.
class NotingPolicy final : public lrs::Policy {
public:
    explicit NotingPolicy(std::vector<lrs::RequestAttributes>& seen) : seen_(seen) {}

    void push(lrs::Request& request, Instant /*now*/) override {
        seen_.push_back(request.attributes);
        waiting_.push_back(request);
    }
    Next pop(Instant /*now*/) override {
        return {.request = static_cast<lrs::Request*>(waiting_.pop_front())};
    }
    void remove(lrs::Request& request) override { request.PolicyPlace::unlink(); }
    void complete(lrs::Request& /*request*/, Instant /*now*/) override {}

private:
    std::vector<lrs::RequestAttributes>& seen_;
    core::IntrusiveList<lrs::PolicyPlace> waiting_;
};

}  // namespace

TEST_CASE("reqh: a policy learns what a fop is about", "[reqh]") {
    HandlerWorld node;
    std::vector<lrs::RequestAttributes> seen;
    node.requests.use(std::make_unique<NotingPolicy>(seen));
    const fop::Fid fid{.high = (std::uint64_t{3} << 48) | 1, .low = 9};
    const std::array<fop::Range, 2> ranges{fop::Range{.offset = 8192, .length = 100},
                                           fop::Range{.offset = 0, .length = 28}};
    const auto send = [&](std::string_view type, fop::RequestBody body, std::string payload = {}) {
        node.send({.type = node.type(type).number,
                   .body = std::move(body),
                   .payload = std::move(payload),
                   .groups = {"crew", "staff"}});
        node.settle();
        REQUIRE_FALSE(seen.empty());
        return seen.back();
    };

    const auto read = send("read", fop::Read{.fid = fid, .ranges = ranges});
    CHECK(read.direction == lrs::Direction::kRead);
    CHECK(read.object == fid);
    CHECK(read.offset == 8192);
    CHECK(read.size_bytes == 128);
    CHECK(read.device == 3);
    CHECK(read.user == "alice");
    CHECK(std::ranges::equal(read.groups, std::array{"crew", "staff"}));
    CHECK(read.peer == "mem://client:1");

    const auto append = send("append", fop::Append{.fid = fid, .length = 5}, "bytes");
    CHECK(append.direction == lrs::Direction::kWrite);
    CHECK(append.offset == lrs::kAtEnd);
    CHECK(append.size_bytes == 5);

    const auto upload =
        send("upload_write", fop::UploadWrite{.fid = fid, .range = {.offset = 4096}});
    CHECK(upload.direction == lrs::Direction::kWrite);
    CHECK(upload.offset == 4096);

    const auto truncate = send("truncate", fop::Truncate{.fid = fid});
    CHECK(truncate.direction == lrs::Direction::kNone);
    CHECK(truncate.object == fid);

    const auto create = send("create", fop::Create{.name = "new", .slot = 5});
    CHECK_FALSE(create.object.is_set());
    CHECK(create.device == 5);

    const auto list = send("list", fop::ListObjects{});
    CHECK_FALSE(list.object.is_set());
    CHECK(list.device == lrs::kNoDevice);
}

// Goal: what `lrs which` says of a fop that is described is what happens to one that comes. Method:
// every type of fop and every key that rules look at, from their tables; a rule of that key holds
// back what it is for, and `which` is asked about the same fop.

#include "reqh/executors.h"

#include <string>
#include <vector>

#include "lrs/classes/described_request.h"
#include "lrs/tbf/tbf.h"
#include "objects/fids.h"
#include "tests/fop/samples.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;
using lrs::Key;

namespace {

// That of the samples, and the one their fops about names name.
constexpr const char* kSlotPool = "fast";
constexpr const char* kNamedPool = "slow";
constexpr store::Slot kSampleSlot = 7;

objects::StoreLayoutPtr two_pools() {
    auto layout = std::make_shared<objects::StoreLayout>();
    layout->version = 1000;
    layout->pools.push_back({.id = objects::pool_id(kNamedPool), .name = kNamedPool});
    layout->pools.push_back({.id = objects::pool_id(kSlotPool), .name = kSlotPool});
    layout->slots.push_back({.slot = kSampleSlot, .pool = objects::pool_id(kSlotPool)});
    return layout;
}

FopSpec sample_of(const fop::FopType& type) {
    const fop::Request request = fop::sample_request(type.number);
    FopSpec spec{.type = type.number, .body = request.body};
    spec.payload_bytes.assign(request.payload.begin(), request.payload.end());
    spec.pool = kNamedPool;
    spec.job = "sim-42";
    spec.user = "bob";
    spec.address = "tcp://10.1.2.3:4711";
    spec.principal = "alice";
    spec.groups = {"users", "staff", "dev"};
    spec.client[0] = std::byte{0xab};
    return spec;
}

std::string object_in(const fop::RequestBody& body) {
    return std::visit(
        [](const auto& each) -> std::string {
            if constexpr (requires { each.fid; })
                return objects::format_fid(objects::store_fid(each.fid));
            return {};
        },
        body);
}

// The samples' bytes, by what their bodies say.
std::uint64_t moved_by(const FopSpec& spec) {
    std::uint64_t bytes = spec.payload_bytes.size();
    if (const auto* const echo = std::get_if<fop::BulkEcho>(&spec.body)) bytes += echo->bytes;
    if (const auto* const append = std::get_if<fop::Append>(&spec.body)) bytes += append->length;
    if (const auto* const read = std::get_if<fop::Read>(&spec.body)) {
        for (const fop::Range& range : read->ranges) bytes += range.length;
    }
    if (const auto* const part = std::get_if<fop::UploadWrite>(&spec.body)) {
        bytes += part->range.length;
    }
    return bytes;
}

std::string pool_in(const fop::FopType& type, const FopSpec& spec) {
    if (!object_in(spec.body).empty()) return kSlotPool;
    if (type.name == "create" || type.name == "upload_begin") return kSlotPool;
    if (type.name == "lookup" || type.name == "list" || type.name == "sync_tape") {
        return kNamedPool;
    }
    return {};
}

// The values the sample has for a key, all of them, and one that it does not have.
struct Values {
    std::vector<std::string> own;
    std::string other;
};
Values values_of(Key key, const fop::FopType& type, const FopSpec& spec) {
    switch (key) {
        case Key::kAddress: return {{"10.1.2.3"}, "10.9.9.9"};
        case Key::kClient: return {{"ab" + std::string(30, '0')}, std::string(32, 'c')};
        case Key::kGroup: return {{"users", "staff", "dev"}, "wheel"};
        case Key::kJob: return {{"sim-42"}, "sim-43"};
        case Key::kNetwork: return {{"tcp"}, "verbs"};
        case Key::kObject: return {{object_in(spec.body)}, std::string(32, 'd')};
        case Key::kOp: return {{std::string(type.name)}, type.name == "read" ? "write" : "read"};
        case Key::kPool: return {{pool_in(type, spec)}, "elsewhere"};
        case Key::kPrincipal: return {{"alice"}, "bob"};
        case Key::kSize: return {{std::to_string(moved_by(spec))}, "77777"};
        case Key::kUser: return {{"bob"}, "alice"};
    }
    return {};
}

// As an administrator would, who knows what the fop is and not where its object lies.
std::string described(const fop::FopType& type, const FopSpec& spec) {
    std::string text;
    for (std::size_t i = 0; i < lrs::kKeyCount; ++i) {
        const Key key = static_cast<Key>(i);
        const Values values = values_of(key, type, spec);
        const bool is_known_by_object = key == Key::kPool && !object_in(spec.body).empty();
        if (values.own.front().empty() || is_known_by_object) continue;
        text += std::string(lrs::name_of(key)) + "=";
        if (values.own.size() == 1) {
            text += values.own.front() + " ";
            continue;
        }
        text += "{";
        for (const std::string& value : values.own) text += value + " ";
        text += "} ";
    }
    return text;
}

class Both {
public:
    Both() { stage_.stores().set_layout(layout_); }
    ~Both() { stage_.lose_power(); }
    Both(const Both&) = delete;
    Both& operator=(const Both&) = delete;

    // Puts a rule in force that lets nothing pass, and looks at the class a fop is of.
    void try_rule(const std::string& expression, const fop::FopType& type, bool is_for) {
        const lrs::TbfSettings settings{.rules = {"probe " + expression + " rate=0"}};
        INFO(settings.rules.front());
        lrs::TbfNode node(1);
        const lrs::TbfShare share = node.share(settings, Instant{});
        stage_.requests().use(lrs::make_tbf(settings, share, 1));
        const FopSpec spec = sample_of(type);
        FakeFop& fop = stage_.send(spec);
        stage_.run_for(0ns);

        const std::string text = described(type, spec);
        INFO(text);
        const auto request = lrs::DescribedRequest::parse(text);
        REQUIRE(request.has_value());
        lrs::RequestAttributes attributes = (*request)->attributes();
        const auto wrong = complete(attributes, *layout_);
        INFO((wrong ? wrong->words : std::string()));
        REQUIRE_FALSE(wrong.has_value());
        const lrs::Rule& rule = share.rules->rule_for(attributes);
        CHECK((rule.name == "probe") == is_for);
        CHECK(has_class(rule.class_name(attributes)));
        const bool waits = stage_.requests().figures(lrs::Lane::kData).queued.get() == 1;
        CHECK(waits == is_for);
        stage_.requests().use(lrs::make_fifo());
        stage_.wait_for(fop);
    }

private:
    bool has_class(const std::string& name) {
        const auto classes = stage_.requests().class_figures();
        return std::ranges::find(classes, name, &lrs::ClassFigures::name) != classes.end();
    }

    const objects::StoreLayoutPtr layout_ = two_pools();
    StoreStage stage_;
};

template <typename Try>
void for_each_ruled_type(Try each) {
    for (const fop::FopType& type : fop::kFopTypes) {
        if (type.lane == fop::Lane::kData) each(type);
    }
}

std::string quoted(const std::string& value) {
    return value.empty() ? "\"\"" : value;
}

}  // namespace

TEST_CASE("reqh executors: what the store remembers is told again by its slot, and nothing else is",
          "[reqh]") {
    for (const fop::FopType& type : fop::kFopTypes) {
        CAPTURE(type.name);
        const Executor& executor = executor_of(type);
        const bool is_recorded = type.repeat == fop::Repeat::kRecorded;
        CHECK((executor.told_again != nullptr) == is_recorded);
        if (is_recorded) CHECK(executor.slot != nullptr);
    }
}

TEST_CASE("reqh rules: what is said of a fop of any type, by any key, is what happens", "[reqh]") {
    Both both;
    for_each_ruled_type([&both](const fop::FopType& type) {
        const FopSpec spec = sample_of(type);
        for (std::size_t i = 0; i < lrs::kKeyCount; ++i) {
            const auto key = static_cast<Key>(i);
            const std::string name(lrs::name_of(key));
            const Values values = values_of(key, type, spec);
            for (const std::string& own : values.own) {
                both.try_rule(name + "=" + quoted(own), type, true);
                both.try_rule(name + "!=" + quoted(own), type, false);
            }
            both.try_rule(name + "=" + values.other, type, false);
            both.try_rule(name + "!=" + values.other, type, true);
        }
    });
}

TEST_CASE("reqh rules: the class by all keys together is the one that is said", "[reqh]") {
    Both both;
    std::string keys;
    for (const std::string_view name : lrs::kKeyNames) {
        if (name != lrs::name_of(Key::kSize)) keys += std::string(name) + " ";
    }
    for_each_ruled_type([&](const fop::FopType& type) {
        both.try_rule("* by={" + keys + "}", type, true);
        both.try_rule("group={dev staff}", type, true);
    });
}

TEST_CASE("reqh rules: of fops that cannot be nothing is said", "[reqh]") {
    const objects::StoreLayoutPtr layout = two_pools();
    const auto wrong = [&layout](std::string_view text) {
        const auto request = lrs::DescribedRequest::parse(text);
        REQUIRE(request.has_value());
        lrs::RequestAttributes attributes = (*request)->attributes();
        const auto impossible = complete(attributes, *layout);
        return impossible ? impossible->words : std::string();
    };
    CHECK(wrong("op=echo pool=fast") == "echo is about no pool");
    CHECK(wrong("op=create object=00070000000000010000000000000001") ==
          "create names no object by its id");
    CHECK(wrong("op=stat size=4k") == "stat moves no data");
    CHECK(wrong("op=read pool=none") == "there is no pool none");
    CHECK(wrong("pool=slow object=00070000000000010000000000000001") ==
          "the object is in the pool fast");
    CHECK(wrong("object=00080000000000010000000000000001") ==
          "the object is on no slot of this node");
    CHECK(wrong("op=read pool=fast size=4k") == "");
}

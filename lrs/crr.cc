#include "lrs/crr.h"

#include <bit>
#include <utility>
#include <vector>

#include "config/types.h"
#include "core/printable.h"
#include "core/random.h"
#include "fop/principal.h"
#include "lrs/classes/keyed_hash.h"
#include "lrs/policies.h"
#include "lrs/turns.h"

namespace fopd::lrs {

namespace {

// Idle queues kept in each locality.
constexpr std::size_t kIdleMax = 4096;

// Whether the principal has a share of its own.
bool is_proved(const RequestAttributes& attributes) {
    const fop::Identity identity{.kind = fop::AuthKind::kPrincipal,
                                 .name = std::string(attributes.principal)};
    return attributes.share == fop::share_name(identity);
}

class Crr final : public Policy {
public:
    Crr(const Turns::Rule& rule, Key by) : turns_(rule), by_(by), hash_key_(made_of(rule.seed)) {}

    void push(Request& request, Instant /*now*/) override {
        std::string& name = push_by_key(request);
        if (name.empty()) name = crr_class_name(request.attributes, by_);
    }
    Next pop(Instant now) override {
        Request* const request = turns_.pop();
        if (request != nullptr) count(*request, now);
        return {.request = request};
    }
    Adapted adapt(const PolicySettings& settings, const PolicyParts& /*parts*/,
                  Instant /*now*/) override {
        if (settings.crr.by != by_) return Adapted::kNot;
        turns_.set_quantum(settings.crr.quantum);
        return Adapted::kAtOnce;
    }
    void let_pass(Request& request, Instant now) override {
        count(request, now);
        turns_.remove(request);
    }
    bool visit_classes(Instant /*now*/, const ClassVisitor& visitor) override {
        turns_.for_each([&visitor](const Turns::Shown& shown) {
            visitor({.name = shown.name,
                     .queued = shown.queued,
                     .oldest = shown.oldest == nullptr ? kNever : shown.oldest->arrived_at(),
                     .tally = shown.tally});
        });
        return true;
    }
    ClassLabel class_of(const Request& request) const override {
        return {.name = Turns::name_of(request)};
    }
    void remove(Request& request) override { turns_.remove(request); }
    void complete(Request& /*request*/, Instant /*now*/) override {}

private:
    static HashKey made_of(std::uint64_t seed) {
        core::Random random(seed);
        const std::uint64_t first = random.next();
        return {.first = first, .second = random.next()};
    }
    std::string& push_by_key(Request& request) {
        const QueueKey key = hash_of(by_, request.attributes);
        if (by_ != Key::kClient) return turns_.push(request, key);
        // Two principals that use the same client id get a queue each.
        const QueueKey principal = hash_of(Key::kPrincipal, request.attributes);
        return turns_.push(request,
                           {.high = key.high ^ principal.high, .low = key.low ^ principal.low},
                           &principal);
    }
    // A client's id is random already; other texts are hashed with a secret key.
    QueueKey hash_of(Key key, const RequestAttributes& attributes) const {
        if (key == Key::kClient) return std::bit_cast<QueueKey>(attributes.client);
        KeyedHash hash(hash_key_);
        Digits digits;
        hash.add(key == Key::kPrincipal ? attributes.share : text_of(key, attributes, digits));
        return std::bit_cast<QueueKey>(hash.result());
    }
    static void count(const Request& request, Instant now) {
        Turns::tally_of(request).add_request(request.attributes.size_bytes, now);
    }

    Turns turns_;
    const Key by_;
    const HashKey hash_key_;
};

config::TypePtr<Key> those_who_ask() {
    std::vector<std::pair<std::string, Key>> words;
    for (const Key key : {Key::kClient, Key::kJob, Key::kPrincipal, Key::kUser})
        words.emplace_back(name_of(key), key);
    return config::choice<Key>(std::move(words));
}

}  // namespace

config::Record<CrrSettings> crr_record() {
    config::Record<CrrSettings> record;
    record.field("quantum", &CrrSettings::quantum,
                 config::integer<std::uint32_t>({.min = 1, .max = 65535}),
                 "How many fops run in one turn.", {.reload = config::Reload::kLive});
    record.field("by", &CrrSettings::by, those_who_ask(),
                 "The parties that take turns. client: principals take turns, and within them "
                 "their clients.",
                 {.reload = config::Reload::kLive});
    return record;
}

std::unique_ptr<Policy> make_crr(const CrrSettings& settings, std::uint64_t seed) {
    return std::make_unique<Crr>(
        Turns::Rule{.quantum = settings.quantum, .seed = seed, .idle_max = kIdleMax}, settings.by);
}

std::string crr_class_name(const RequestAttributes& attributes, Key by) {
    Digits digits;
    const std::string_view text = text_of(by, attributes, digits);
    if (by == Key::kClient) {
        std::string name = crr_class_name(attributes, Key::kPrincipal);
        // A described request may be of any client.
        if (attributes.client == ClientId{}) return name;
        if (!name.empty()) name += ' ';
        return name.append(name_of(by)).append("=").append(text);
    }
    if (by == Key::kPrincipal && !is_proved(attributes)) return std::string(attributes.share);
    std::string name(name_of(by));
    name += '=';
    core::append_printable(name, text);
    return name;
}

}  // namespace fopd::lrs

#include "daemon/access.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include <string.h>
#include <unistd.h>

#include "config/section.h"
#include "config/types.h"
#include "config/units.h"
#include "config/yaml_reader.h"
#include "daemon/secret_file.h"
#include "fop/hex.h"
#include "fop/key.h"
#include "fop/rights.h"

namespace fopd::daemon {

namespace {

lrs::HashKey class_key_of(const fop::Key& peer_key) {
    constexpr std::string_view kUse = "fopd: classes of rules";
    const fop::Hash hash = fop::keyed_hash(peer_key, {std::as_bytes(std::span(kUse))});
    lrs::HashKey key;
    std::memcpy(&key.first, hash.data(), sizeof key.first);
    std::memcpy(&key.second, hash.data() + sizeof key.first, sizeof key.second);
    return key;
}

// The entries of a principals file.
struct QuotaEntry {
    std::string pool;
    std::optional<std::uint64_t> bytes;
    std::optional<std::uint64_t> objects;
};
struct PrincipalEntry {
    std::string name;
    fop::Key key;
    std::vector<fop::Key> previous_keys;
    std::vector<fop::Rights> rights;
    std::vector<std::string> groups;
    bool delegate = false;
    std::vector<QuotaEntry> quotas;
};
struct Revoked {
    std::vector<fop::TokenId> tokens;
    std::uint64_t generation = 0;
};
struct PrincipalsFile {
    std::vector<PrincipalEntry> principals;
    Revoked revoked;
};

// The messages do not quote the text: it may be most of a key.
config::TypePtr<fop::Key> key_type() {
    return std::make_shared<config::ScalarType<fop::Key>>(
        "64 hexadecimal digits",
        [](const config::Node& scalar) -> std::expected<fop::Key, config::Mistake> {
            auto key = fop::parse_key(scalar.text);
            if (key) return *key;
            return std::unexpected(
                config::Mistake{.wrong = "not a key", .right = "write 64 hexadecimal digits"});
        },
        [](const fop::Key&) { return config::plain_scalar("(secret)"); });
}

config::TypePtr<fop::TokenId> token_id_type() {
    return std::make_shared<config::ScalarType<fop::TokenId>>(
        "the 32 hexadecimal digits of a token",
        [](const config::Node& scalar) -> std::expected<fop::TokenId, config::Mistake> {
            // fop::parse_hex() reads keys, which are twice as long; so the id is padded.
            std::array<std::byte, 2 * std::tuple_size_v<fop::TokenId>> wide{};
            const std::string padded = scalar.text + std::string(wide.size(), '0');
            if (scalar.text.size() == wide.size() && fop::parse_hex(padded, wide)) {
                fop::TokenId id{};
                std::copy_n(wide.begin(), id.size(), id.begin());
                return id;
            }
            return std::unexpected(config::Mistake{
                .wrong = config::in_quotes(scalar.text) + " is not the number of a token",
                .right = "write the 32 hexadecimal digits that `fopctl token create` showed"});
        },
        [](const fop::TokenId& id) { return config::plain_scalar(fop::to_hex(id)); });
}

config::TypePtr<fop::Rights> right_type() {
    return config::choice<fop::Rights>({{"read", fop::kRead},
                                        {"write", fop::kWrite},
                                        {"create", fop::kCreate},
                                        {"delete", fop::kDelete},
                                        {"admin", fop::kAdmin}});
}

config::Record<QuotaEntry> quota_record() {
    config::Record<QuotaEntry> quota;
    quota
        .field("pool", &QuotaEntry::pool,
               config::text({.length_min = 1, .length_max = fop::kNameBytesMax}), "Where.",
               {.need = config::Need::kRequired, .example = "fast"})
        .field("bytes", &QuotaEntry::bytes, config::none_or(config::size()),
               "How many bytes its objects there may have.")
        .field("objects", &QuotaEntry::objects,
               config::none_or(config::integer<std::uint64_t>({.min = 0, .max = INT64_MAX})),
               "How many of them there may be.");
    quota.identified_by("pool");
    quota.check([](const QuotaEntry& entry, config::Complaints& complaints) {
        if (entry.bytes || entry.objects) return;
        complaints.add("pool", "a quota without a limit", "write bytes, objects, or both");
    });
    return quota;
}

config::Record<PrincipalsFile> principals_record() {
    const auto name_type = config::text({.length_min = 1, .length_max = fop::kNameBytesMax});
    config::Record<PrincipalEntry> entry;
    entry
        .field("name", &PrincipalEntry::name, name_type, "Its name in logs and rules.",
               {.need = config::Need::kRequired, .example = "backup"})
        .field("key", &PrincipalEntry::key, key_type(), "The secret with which it authenticates.",
               {.need = config::Need::kRequired, .example = "(secret)"})
        .field("previous_keys", &PrincipalEntry::previous_keys,
               config::list_of(key_type(), {.length_max = 16}), "Keys that are still accepted.")
        .field("rights", &PrincipalEntry::rights, config::list_of(right_type(), {.length_max = 5}),
               "The rights it has.")
        .field("groups", &PrincipalEntry::groups, config::list_of(name_type, {.length_max = 64}),
               "The groups it belongs to.")
        .field("delegate", &PrincipalEntry::delegate, config::boolean(),
               "Whether it may name another user it acts for.")
        .field("quotas", &PrincipalEntry::quotas,
               config::list_of(config::map_of(quota_record()), {.length_max = 64}),
               "The most its objects may use in each pool.");
    entry.identified_by("name");
    config::Record<Revoked> revoked;
    revoked
        .field("tokens", &Revoked::tokens, config::list_of(token_id_type(), {.length_max = 65536}),
               "Tokens that are void.")
        .field("generation", &Revoked::generation,
               config::integer<std::uint64_t>({.min = 0, .max = INT64_MAX}),
               "Tokens of smaller generations are void.");
    config::Record<PrincipalsFile> file;
    file.field("principals", &PrincipalsFile::principals,
               config::list_of(config::map_of(std::move(entry)), {.length_max = 65536}),
               "The principals that may connect.");
    file.field("revoked", &PrincipalsFile::revoked, config::map_of(std::move(revoked)),
               "Which tokens are void.");
    return file;
}

std::unexpected<StartProblem> refuse_settings(const std::string& message) {
    return std::unexpected(StartProblem{.exit_code = kExitConfig, .message = message});
}

// "rights=read,write groups=staff keys=1f0c… quota.fast=10GiB,1000". Has no secret: the id of
// a key is a hash, which clients send before they have proved anything.
std::string principal_in_words(const fop::Principal& principal,
                               const std::vector<QuotaEntry>& quotas) {
    std::string text = "rights=" + fop::to_text(principal.rights);
    std::string_view before = " groups=";
    for (const std::string& group : principal.groups) {
        text += std::string(before) + group;
        before = ",";
    }
    if (principal.delegation == fop::Delegation::kAllowed) text += " delegate=true";
    before = " keys=";
    for (const fop::Key& key : principal.keys) {
        text += std::string(before) + fop::to_text(fop::key_id(key));
        before = ",";
    }
    for (const QuotaEntry& quota : quotas) {
        text += " quota." + quota.pool + "=";
        if (quota.bytes) text += config::format_size(*quota.bytes);
        if (quota.objects) text += "," + std::to_string(*quota.objects);
    }
    return text;
}

Started<PrincipalsFile> parse_principals(const std::string& name, const std::string& text) {
    config::Problems problems;
    const auto root = config::read_yaml(text, problems);
    std::optional<PrincipalsFile> file;
    if (root) file = principals_record().read(*root, "", problems);
    if (problems.empty() && file) return *std::move(file);
    std::string message;
    for (config::Problem& problem : problems) {
        problem.file = name;
        if (!message.empty()) message += "; ";
        message += to_string(problem);
    }
    return refuse_settings(message);
}

}  // namespace

fabric::Admission Access::admission() const {
    return {.keys = keys,
            .unauthenticated = open_to_all ? std::optional(fop::kAllRights) : std::nullopt};
}

Started<AccessPtr> make_access(const AccessTexts& texts) {
    auto access = std::make_shared<Access>();
    PrincipalsFile file;
    if (!texts.principals.empty()) {
        auto parsed = parse_principals(texts.principals_file, texts.principals);
        if (!parsed) return std::unexpected(parsed.error());
        file = *std::move(parsed);
    }
    fop::KeyRing::Contents contents;
    for (PrincipalEntry& entry : file.principals) {
        fop::Rights rights;
        for (const fop::Rights right : entry.rights) rights = rights | right;
        for (const QuotaEntry& quota : entry.quotas) {
            access->quotas.push_back({.principal = entry.name,
                                      .pool = quota.pool,
                                      .bytes = quota.bytes,
                                      .objects = quota.objects});
        }
        std::vector<fop::Key> keys{entry.key};
        keys.insert(keys.end(), entry.previous_keys.begin(), entry.previous_keys.end());
        contents.principals.push_back(
            {.name = entry.name,
             .keys = std::move(keys),
             .rights = rights,
             .groups = std::move(entry.groups),
             .delegation = entry.delegate ? fop::Delegation::kAllowed : fop::Delegation::kNone});
        access->principals[entry.name] =
            principal_in_words(contents.principals.back(), entry.quotas);
    }
    contents.peer_keys = texts.peer_keys;
    access->peer_keys = texts.peer_keys;
    access->principal_count = contents.principals.size();
    auto ring = fop::KeyRing::make(std::move(contents));
    if (!ring) return refuse_settings(texts.principals_file + ": " + ring.error());
    access->keys = std::make_shared<const fop::KeyRing>(*std::move(ring));
    access->principals_file = texts.principals_file;
    access->principals_hash = fop::hash({std::as_bytes(std::span(texts.principals))});
    for (const fop::Key& key : texts.peer_keys) {
        access->peer_keys_hash = fop::hash({access->peer_keys_hash, key.bytes()});
    }
    if (!texts.peer_keys.empty()) access->class_key = class_key_of(texts.peer_keys.front());
    if (texts.issuer) access->issuer_hash = fop::hash({texts.issuer->bytes});
    access->open_to_all = texts.mode == AuthSettings::Mode::kNone;
    std::ranges::sort(file.revoked.tokens);
    access->revoked_tokens = file.revoked.tokens;
    access->revoked_generation = file.revoked.generation;
    if (texts.issuer) {
        access->tokens.emplace(
            fop::TokenChecker::Options{.issuer = *texts.issuer,
                                       .generation_min = file.revoked.generation,
                                       .revoked = std::move(file.revoked.tokens)});
    }
    return access;
}

std::vector<std::string> changed_files(const Access& before, const Access& now) {
    std::vector<std::string> keys;
    if (before.principals_hash != now.principals_hash) keys.emplace_back("auth.principals");
    if (before.peer_keys_hash != now.peer_keys_hash) keys.emplace_back("auth.peer_key");
    if (before.issuer_hash != now.issuer_hash) keys.emplace_back("auth.issuer_public");
    return keys;
}

namespace {

// Adds changes of one kind up to a limit, then how many more there are.
class ChangeList {
public:
    ChangeList(config::Changes& changes, std::string what, std::size_t count_max)
        : changes_(changes), what_(std::move(what)), left_(count_max) {}

    void add(std::string path, std::string_view old_value, std::string_view new_value) {
        if (old_value == new_value) return;
        if (left_ == 0) {
            ++left_out_;
            return;
        }
        --left_;
        put(std::move(path), old_value, new_value);
    }
    void end() {
        if (left_out_ > 0) put(what_, {}, std::to_string(left_out_) + " more have changed");
    }

private:
    void put(std::string path, std::string_view old_value, std::string_view new_value) {
        changes_.push_back({.path = std::move(path),
                            .old_value = std::string(old_value),
                            .new_value = std::string(new_value),
                            .reload = config::Reload::kLive});
    }

    config::Changes& changes_;
    const std::string what_;
    std::size_t left_;
    std::uint64_t left_out_ = 0;
};

void add_revoked(config::Changes& changes, const Access& before, const Access& now) {
    static constexpr const char* kTokens = "auth.revoked.tokens";
    ChangeList list(changes, kTokens, kTokenChangesMax);
    const auto is_in = [](const Access& access, const fop::TokenId& id) {
        return std::ranges::binary_search(access.revoked_tokens, id);
    };
    for (const fop::TokenId& id : now.revoked_tokens) {
        if (!is_in(before, id)) list.add(kTokens, {}, fop::to_hex(id));
    }
    for (const fop::TokenId& id : before.revoked_tokens) {
        if (!is_in(now, id)) list.add(kTokens, fop::to_hex(id), {});
    }
    list.end();
    ChangeList generation(changes, {}, 1);
    generation.add("auth.revoked.generation", std::to_string(before.revoked_generation),
                   std::to_string(now.revoked_generation));
}

}  // namespace

config::Changes changed_principals(const Access& before, const Access& now) {
    config::Changes changes;
    ChangeList list(changes, "auth.principals", kPrincipalChangesMax);
    for (const auto& [name, words] : before.principals) {
        const auto kept = now.principals.find(name);
        list.add("auth.principals." + name, words,
                 kept == now.principals.end() ? std::string_view() : kept->second);
    }
    for (const auto& [name, words] : now.principals) {
        if (!before.principals.contains(name)) list.add("auth.principals." + name, {}, words);
    }
    list.end();
    add_revoked(changes, before, now);
    return changes;
}

Started<void> check_quotas(const Access& access, const std::vector<devices::PoolSettings>& pools) {
    for (const PrincipalQuota& each : access.quotas) {
        if (std::ranges::find(pools, each.pool, &devices::PoolSettings::name) != pools.end()) {
            continue;
        }
        return refuse_settings(access.principals_file + ": principals: " + each.principal +
                               " has a quota in " + config::in_quotes(each.pool) +
                               ", write the name of one of the pools");
    }
    return {};
}

Started<AccessPtr> load_access(const AuthSettings& settings) {
    AccessTexts texts{.principals_file = settings.principals.value_or(""),
                      .principals = {},
                      .peer_keys = {},
                      .issuer = std::nullopt,
                      .mode = settings.mode};
    for (const std::string& file : settings.peer_keys) {
        const auto key = read_key_file(file);
        if (!key) return std::unexpected(key.error());
        texts.peer_keys.push_back(*key);
    }
    if (settings.issuer_public) {
        // The file is not secret, but a user who can write it decides which tokens are accepted. So
        // it is checked like a secret file.
        const auto text = read_secret_file(*settings.issuer_public);
        if (!text) return std::unexpected(text.error());
        const auto issuer = fop::parse_issuer_public(*text);
        if (!issuer)
            return refuse_settings(*settings.issuer_public + ": " + issuer.error().context);
        texts.issuer = *issuer;
    }
    if (settings.principals) {
        auto text = read_secret_file(*settings.principals);
        if (!text) {
            StartProblem problem = text.error();
            const bool is_there = ::access(settings.principals->c_str(), F_OK) == 0;
            if (!is_there) problem.message += "; fopctl key create NAME makes it";
            return std::unexpected(std::move(problem));
        }
        texts.principals = *std::move(text);
    }
    auto access = make_access(texts);
    ::explicit_bzero(texts.principals.data(), texts.principals.size());
    return access;
}

Result<reqh::TokenGrant> AccessTokens::check(std::span<const std::byte> token, Instant now) {
    if (!access_->tokens) {
        return std::unexpected(
            Error{.code = Errc::kDenied,
                  .context =
                      "the server accepts no tokens: its configuration has no auth.issuer_public"});
    }
    const WallTime wall = clock_.wall();
    // The token's own principal passes this check; the caller compares it with the session's
    // principal.
    const auto read = fop::read_unverified(token);
    const std::string principal = read ? read->principal : std::string();
    const auto checked = access_->tokens->check(token, {.now = wall, .principal = principal});
    if (!checked) return std::unexpected(checked.error());
    // A token's expiry in nanoseconds may exceed the range of Duration.
    constexpr std::int64_t kLastSecond = Duration::max().count() / 1'000'000'000 - 1;
    const std::int64_t last_second = std::min(checked->not_after, kLastSecond);
    const Duration left = Duration(std::chrono::seconds(last_second + 1)) - Duration(wall.unix_ns);
    return reqh::TokenGrant{.rights = checked->rights,
                            .principal = checked->principal,
                            .pool = checked->pool,
                            .object = fop::fid_of(checked->object),
                            .expires_at = after(now, left)};
}

}  // namespace fopd::daemon

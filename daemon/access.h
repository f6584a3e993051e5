#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/type.h"
#include "core/clock.h"
#include "daemon/settings.h"
#include "daemon/start_problem.h"
#include "devices/settings.h"
#include "fabric/rpc/server.h"
#include "fop/hash.h"
#include "fop/principal.h"
#include "fop/token.h"
#include "lrs/classes/keyed_hash.h"
#include "reqh/tokens.h"

namespace fopd::daemon {

// The limits of a principal in a pool.
struct PrincipalQuota {
    std::string principal;
    std::string pool;
    std::optional<std::uint64_t> bytes;
    std::optional<std::uint64_t> objects;
};

// The keys, rights and quotas from the files of `auth`. Immutable; a reload makes a new one. Safe
// from any thread.
struct Access {
    std::shared_ptr<const fop::KeyRing> keys;
    // Keys with which this daemon connects to other daemons: the current one first.
    std::vector<fop::Key> peer_keys;
    bool open_to_all = false;  // auth.mode none.
    std::optional<fop::TokenChecker> tokens;
    std::size_t principal_count = 0;
    std::vector<PrincipalQuota> quotas;
    // Each principal by name, in words: its rights, its groups, the ids of its keys and its quotas.
    std::map<std::string, std::string> principals;
    std::vector<fop::TokenId> revoked_tokens;  // Sorted.
    std::uint64_t revoked_generation = 0;      // Tokens of smaller generations are void.
    std::string principals_file;               // The file's name in problem messages.
    fop::Hash principals_hash{};               // These are hashes of the files' contents.
    fop::Hash peer_keys_hash{};
    // Made of the current peer key, for the hashes of classes. Nothing: there is no peer key.
    std::optional<lrs::HashKey> class_key;
    fop::Hash issuer_hash{};

    fabric::Admission admission() const;
};
using AccessPtr = std::shared_ptr<const Access>;

// The configuration keys whose files have different contents now.
std::vector<std::string> changed_files(const Access& before, const Access& now);

// For the audit trail: the principals that were added, removed or changed, the tokens that were
// revoked or are not any more, and the generation of revoked tokens. At most kPrincipalChangesMax
// principals and kTokenChangesMax tokens, and then how many more there are. The old or the new
// value is empty if there was none.
inline constexpr std::size_t kPrincipalChangesMax = 100;
inline constexpr std::size_t kTokenChangesMax = 100;
config::Changes changed_principals(const Access& before, const Access& now);

// Refuses a quota for a pool that is not configured: it would never apply.
Started<void> check_quotas(const Access& access, const std::vector<devices::PoolSettings>& pools);

// Reads the files. A problem message names the file, and the line if there is one; it never
// contains a key.
Started<AccessPtr> load_access(const AuthSettings& settings);

// File contents for the simulated world and for tests. Empty text: no such file.
struct AccessTexts {
    std::string principals_file;  // The file's name in problem messages.
    std::string principals;
    std::vector<fop::Key> peer_keys;  // The current one first, then older ones still accepted.
    std::optional<fop::IssuerPublic> issuer;
    AuthSettings::Mode mode = AuthSettings::Mode::kRequired;
};
Started<AccessPtr> make_access(const AccessTexts& texts);

// Verifies tokens for one locality. Used only on the locality's reactor.
class AccessTokens final : public reqh::TokenVerdicts {
public:
    AccessTokens(const core::Clock& clock, AccessPtr access)
        : clock_(clock), access_(std::move(access)) {}

    void replace(AccessPtr access) {
        access_ = std::move(access);
        ++version_;
    }

    Result<reqh::TokenGrant> check(std::span<const std::byte> token, Instant now) override;
    std::uint64_t version() const override { return version_; }

private:
    const core::Clock& clock_;
    AccessPtr access_;
    std::uint64_t version_ = 1;
};

}  // namespace fopd::daemon

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "daemon/settings.h"
#include "daemon/start_problem.h"
#include "devices/settings.h"
#include "fabric/rpc/server.h"
#include "fop/hash.h"
#include "fop/principal.h"
#include "fop/token.h"
#include "reqh/tokens.h"

namespace fopd::daemon {

// What a principal may have in a pool.
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
    bool open_to_all = false;  // auth.mode none.
    std::optional<fop::TokenChecker> tokens;
    std::size_t principal_count = 0;
    std::vector<PrincipalQuota> quotas;
    std::string principals_file;  // What problems call it.
    fop::Hash principals_hash{};  // Of what the files said.
    fop::Hash peer_keys_hash{};
    fop::Hash issuer_hash{};

    fabric::Admission admission() const;
};
using AccessPtr = std::shared_ptr<const Access>;

// The keys of the configuration whose files say something else now.
std::vector<std::string> changed_files(const Access& before, const Access& now);

// A quota of a pool that is none would be no quota.
Started<void> check_quotas(const Access& access, const std::vector<devices::PoolSettings>& pools);

// Reads the files. A problem has the file, and the line where there is one; never a key.
Started<AccessPtr> load_access(const AuthSettings& settings);

// The contents of these files, for the simulated world and for tests. Empty: no such file.
struct AccessTexts {
    std::string principals_file;  // What problems call it.
    std::string principals;
    std::vector<fop::Key> peer_keys;  // The current one first, then those still accepted.
    std::optional<fop::IssuerPublic> issuer;
    AuthSettings::Mode mode = AuthSettings::Mode::kRequired;
};
Started<AccessPtr> make_access(const AccessTexts& texts);

// What a locality asks about tokens. Belongs to its reactor.
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

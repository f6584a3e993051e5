#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/section.h"
#include "core/time.h"
#include "eh/peers/member.h"
#include "fabric/address.h"

namespace fopd::eh {

// The section `eh` of the configuration.
struct EpochSettings {
    enum class Kind : std::uint8_t { kLocal, kPeers };
    struct Node {
        std::string name{};
        fabric::Address address{};
    };
    struct Store {
        enum class Kind : std::uint8_t { kStatic };
        Kind kind = Kind::kStatic;
        std::string root{};
    };

    Kind kind = Kind::kLocal;
    Duration timeout = 5s;
    std::optional<Duration> grace{};  // Unset: derived from the timeout.
    Duration root_silent = peers::MemberOptions{}.root_silent;
    std::uint32_t fanout = 16;
    std::uint32_t expect = 1;
    Duration bootstrap_timeout = peers::MemberOptions{}.bootstrap_timeout;
    peers::Quorum quorum = peers::Quorum::kParticipants;
    Store store{};
    std::vector<Node> members{};

    // Null if there is no member of that name.
    const Node* find(std::string_view name) const;
};

config::Section<EpochSettings> epoch_section();

// Mistakes that only the name of this node shows; empty if there are none.
std::vector<config::Mistake> check_epochs(const EpochSettings& settings,
                                          std::string_view node_name);

// The options of this node as a member. `parts_hash`: members with another one are refused.
// REQUIRES: kind peers, and check_epochs() found no mistake.
peers::MemberOptions member_options(const EpochSettings& settings, const EpochRules& rules,
                                    std::uint64_t parts_hash);

}  // namespace fopd::eh

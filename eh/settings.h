#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/section.h"
#include "core/time.h"
#include "eh/etcd/options.h"
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
    struct Tls {
        std::optional<std::string> ca{};  // Files.
        std::optional<std::string> cert{};
        std::optional<std::string> key{};
    };
    struct Store {
        enum class Kind : std::uint8_t { kStatic, kEtcd };
        Kind kind = Kind::kStatic;
        // -- static --
        std::string root{};
        // -- etcd --
        std::vector<std::string> endpoints{};
        std::string prefix = EtcdStoreOptions{}.prefix;
        Duration timeout = EtcdStoreOptions{}.timeout;
        Tls tls{};
        std::string user{};
        std::optional<std::string> password_file{};
    };

    Kind kind = Kind::kLocal;
    std::optional<fabric::Address> address{};  // Unset: derived, see own_address().
    Duration timeout = 5s;
    std::optional<Duration> grace{};  // Unset: derived from the timeout.
    Duration root_silent = peers::MemberOptions{}.root_silent;
    std::uint32_t fanout = 16;
    std::uint32_t expect = 1;
    Duration bootstrap_timeout = peers::MemberOptions{}.bootstrap_timeout;
    peers::Quorum quorum = peers::Quorum::kParticipants;
    Store store{};
    std::vector<Node> members{};

    // `grace`, or if that is not set, the value that is derived from the timeout.
    Duration grace_in_force() const;
    // Null if there is no member of that name.
    const Node* find(std::string_view name) const;
    // Whether daemons that are not in `members` may take part.
    bool is_open() const { return members.empty(); }
};

// The facts about this node that are in other sections of the configuration.
struct OwnNode {
    std::string name{};
    std::vector<fabric::Address> listen{};
};

config::Section<EpochSettings> epoch_section();

// Whether other machines can connect to the address.
bool is_reachable(const fabric::Address& address);

// The mistakes in the section that can be seen only together with this node's name and addresses;
// empty if there are none.
std::vector<config::Mistake> check_epochs(const EpochSettings& settings, const OwnNode& node);

// The address at which the other members reach this node: its address in `members`. If that has
// none: `address`. If that is not set: the first address at which the node listens and to which
// other machines can connect. Empty if there is none.
std::optional<fabric::Address> own_address(const EpochSettings& settings, const OwnNode& node);

// REQUIRES: kind peers with etcd.
EtcdStoreOptions etcd_options(const EpochSettings::Store& store, std::string password);

// The options of this node as a member. Members with another `parts_hash` are refused. REQUIRES:
// kind peers, and check_epochs() found no mistake.
peers::MemberOptions member_options(const EpochSettings& settings, const EpochRules& rules,
                                    std::uint64_t parts_hash);

}  // namespace fopd::eh

#include "eh/settings.h"

#include <algorithm>
#include <set>
#include <utility>

#include "config/types.h"
#include "core/random.h"
#include "fabric/settings.h"

namespace fopd::eh {

namespace {

config::TypePtr<std::string> name_type() {
    return config::text({.length_max = kMemberNameMax, .charset = config::Charset::kName});
}

config::Record<EpochSettings::Node> node_record() {
    config::Record<EpochSettings::Node> record;
    record.field("name", &EpochSettings::Node::name, name_type(), "Its node.name.",
                 {.need = config::Need::kRequired, .example = "node-a"});
    record.field(
        "address", &EpochSettings::Node::address, fabric::address_type(),
        "The address at which the others reach it: where it listens, or with 0.0.0.0 there, "
        "one of the machine's addresses.",
        {.need = config::Need::kRequired, .example = "tcp://10.0.0.1:31470"});
    record.identified_by("name");
    return record;
}

config::Record<EpochSettings::Tls> tls_record() {
    using Tls = EpochSettings::Tls;
    config::Record<Tls> record;
    record.field("ca", &Tls::ca, config::auto_or(config::path()),
                 "The certificate of the authority that has signed etcd's. auto: any that this "
                 "system trusts.");
    record.field("cert", &Tls::cert, config::none_or(config::path()),
                 "The client certificate that this daemon presents to etcd.");
    record.field("key", &Tls::key, config::none_or(config::path()),
                 "The private key of the client certificate.");
    return record;
}

config::Record<EpochSettings::Store> store_record() {
    using Store = EpochSettings::Store;
    config::Record<Store> record;
    record.field("kind", &Store::kind,
                 config::choice<Store::Kind>(
                     {{"static", Store::Kind::kStatic}, {"etcd", Store::Kind::kEtcd}}),
                 "static: a file of one member, the root. While the root is down, no epochs begin. "
                 "etcd: when the root is lost, another member becomes root. The keys that say "
                 "etcd: below have no effect with static.");
    record.field("root", &Store::root, name_type(),
                 "static: the member that keeps the view, in its node.data_dir.");
    record.field("endpoints", &Store::endpoints,
                 config::list_of(config::text(), {.length_max = 16}),
                 "etcd: its addresses, http://HOST:PORT or https://HOST:PORT. They are tried in "
                 "turn.");
    record.field("prefix", &Store::prefix, config::text({.length_min = 1}),
                 "etcd: the view is at the key PREFIX/view. Each cluster has a prefix of its own.");
    record.field("timeout", &Store::timeout, config::duration({.min = 50ms, .max = 1min}),
                 "etcd: the longest time for a call.");
    record.field("tls", &Store::tls, config::map_of(tls_record()),
                 "etcd: certificates, for endpoints with https://.");
    record.field("user", &Store::user, config::text(),
                 "etcd: a user that may read and write the prefix; empty: none.");
    record.field("password_file", &Store::password_file, config::none_or(config::path()),
                 "etcd: a file with the password of the user.");
    return record;
}

bool is_wildcard(const std::string& host) {
    return host == "0.0.0.0" || host == "::";
}

// Whether a daemon that listens at the one may be reached at the other. At 0.0.0.0 it may be in a
// container, behind another port.
bool serves(const fabric::Address& listen, const fabric::Address& address) {
    return is_wildcard(listen.host) || (listen.host == address.host && listen.port == address.port);
}

void check_address(const fabric::Address& address, const std::string& key,
                   config::Complaints& complaints) {
    if (is_reachable(address)) return;
    complaints.add(key, "nobody can connect to " + format_address(address),
                   "write the address and port at which the others reach it");
}

void check_members(const EpochSettings& settings, config::Complaints& complaints) {
    std::set<std::string> addresses;
    for (std::size_t i = 0; i < settings.members.size(); ++i) {
        const EpochSettings::Node& each = settings.members[i];
        const std::string key = "members[" + std::to_string(i) + "]";
        if (each.name.empty())
            complaints.add(key + ".name", "a member without a name", "write its node.name");
        check_address(each.address, key + ".address", complaints);
        const bool is_new = addresses.insert(format_address(each.address)).second;
        if (is_new) continue;
        complaints.add(key + ".address", "two members have this address",
                       "each member has an address of its own");
    }
    if (!settings.address) return;
    check_address(*settings.address, "address", complaints);
    if (settings.is_open()) return;
    complaints.add("address", "eh.members also has the address of this daemon",
                   "leave out one of the two keys");
}

void check_static(const EpochSettings& settings, config::Complaints& complaints) {
    if (settings.is_open()) {
        complaints.add("members", "the list is empty, and the store is static",
                       "list all daemons that take part, this one too");
        return;
    }
    if (settings.store.root.empty()) {
        complaints.add("store.root", "it is empty",
                       "write the name of the member that keeps the view");
    } else if (settings.find(settings.store.root) == nullptr) {
        complaints.add("store.root", settings.store.root + " is not in members",
                       "write the name of a member");
    }
    if (!settings.store.endpoints.empty())
        complaints.add("store.endpoints", "a static store has no endpoints", "write kind: etcd");
}

void check_etcd(const EpochSettings::Store& store, config::Complaints& complaints) {
    if (!store.root.empty())
        complaints.add("store.root", "with etcd any member can become root", "leave it out");
    const std::string problem = problem_of(etcd_options(store, store.password_file ? "-" : ""));
    if (!problem.empty()) complaints.add("store", problem, "see eh.store in fopd.yaml(5)");
}

void check_local(const EpochSettings& settings, config::Complaints& complaints) {
    const EpochSettings::Store& store = settings.store;
    const bool has_store = store.kind == EpochSettings::Store::Kind::kEtcd || !store.root.empty() ||
                           !store.endpoints.empty();
    if (has_store) complaints.add("store", "kind: local uses no store", "write kind: peers");
    if (!settings.members.empty())
        complaints.add("members", "kind: local has no members", "write kind: peers");
}

void check_peers(const EpochSettings& settings, config::Complaints& complaints) {
    if (settings.kind == EpochSettings::Kind::kLocal) return check_local(settings, complaints);
    if (settings.store.kind == EpochSettings::Store::Kind::kEtcd) {
        check_etcd(settings.store, complaints);
    } else {
        check_static(settings, complaints);
    }
    if (settings.grace && *settings.grace > settings.timeout)
        complaints.add("grace", "it is longer than eh.timeout", "a tenth of the timeout is usual");
    if (!settings.is_open() && settings.expect > settings.members.size()) {
        complaints.add("expect", "it is larger than the number of members",
                       "at most " + std::to_string(settings.members.size()));
    }
}

}  // namespace

Duration EpochSettings::grace_in_force() const {
    return grace.value_or(std::clamp<Duration>(timeout / 10, 50ms, 1s));
}

const EpochSettings::Node* EpochSettings::find(std::string_view name) const {
    const auto found = std::ranges::find(members, name, &Node::name);
    return found == members.end() ? nullptr : &*found;
}

config::Section<EpochSettings> epoch_section() {
    config::Section<EpochSettings> section(
        "eh",
        "Epochs: intervals with a number, which the request schedulers of several daemons begin "
        "together.");
    section.field("kind", &EpochSettings::kind,
                  config::choice<EpochSettings::Kind>({{"local", EpochSettings::Kind::kLocal},
                                                       {"peers", EpochSettings::Kind::kPeers}}),
                  "local: this daemon has epochs of its own; of the other keys only timeout has an "
                  "effect. peers: it begins them together with the other daemons that have the "
                  "same auth.peer_key.");
    section.field("address", &EpochSettings::address, config::auto_or(fabric::address_type()),
                  "If eh.members is empty: the address at which the other daemons reach this one. "
                  "auto: the first address of fabric.listen to which they can connect.");
    section.field("timeout", &EpochSettings::timeout, config::duration({.min = 20ms, .max = 10min}),
                  "How long the first member that is ready for the next epoch waits for the "
                  "others. Members that are late are left out until they join again. All members "
                  "need the same value.");
    section.field("grace", &EpochSettings::grace,
                  config::auto_or(config::duration({.min = 5ms, .max = 1min})),
                  "How long a member may take to answer a message of another member. After the "
                  "timeout, a member that takes longer counts as silent and is left out. All "
                  "members need the same value. auto: a tenth of the timeout, but at least 50 ms "
                  "and at most 1 s.");
    section.field("root_silent", &EpochSettings::root_silent,
                  config::duration({.min = 50ms, .max = 10min}),
                  "When the members have heard nothing from the root for this time, they take it "
                  "for dead. All members need the same value.");
    section.field("fanout", &EpochSettings::fanout,
                  config::integer<std::uint32_t>({.min = 2, .max = 256}),
                  "How many members report to one member, in a tree whose root starts the epochs. "
                  "All members need the same value.");
    section.field("expect", &EpochSettings::expect,
                  config::integer<std::uint32_t>({.min = 1, .max = kRosterMax}),
                  "The first epoch of a new cluster waits until this many members have joined, "
                  "but not longer than bootstrap_timeout.");
    section.field("bootstrap_timeout", &EpochSettings::bootstrap_timeout,
                  config::duration({.min = Duration{0}, .max = 24h}),
                  "How long the first epoch of a new cluster waits at most.");
    section.field("quorum", &EpochSettings::quorum,
                  config::choice<peers::Quorum>({{"participants", peers::Quorum::kParticipants},
                                                 {"store", peers::Quorum::kStore}}),
                  "Which members may go on when some are lost or cut off. participants: more "
                  "than half of all. store: those whose root reaches the store. With etcd, a "
                  "lost root is replaced only by more than half of all, whatever this says.");
    section.field("store", &EpochSettings::store, config::map_of(store_record()),
                  "Where the list of members is kept.");
    section.field(
        "members", &EpochSettings::members,
        config::list_of(config::map_of(node_record()), {.length_max = 1024}),
        "All daemons that may take part. With etcd it may be left out: then all that have "
        "the auth.peer_key may.");
    section.check(&check_members);
    section.check(&check_peers);
    return section;
}

bool is_reachable(const fabric::Address& address) {
    return address.port != 0 && !is_wildcard(address.host);
}

std::vector<config::Mistake> check_epochs(const EpochSettings& settings, const OwnNode& node) {
    if (settings.kind == EpochSettings::Kind::kLocal) return {};
    if (!settings.is_open() && settings.find(node.name) == nullptr) {
        return {{.wrong = "this node, " + node.name + ", is not in members",
                 .right = "add it, or set node.name to the name that it has there",
                 .key = "members"}};
    }
    const auto address = own_address(settings, node);
    if (!address) {
        return {{.wrong = "other daemons cannot connect to any address of fabric.listen",
                 .right = "write the address and port at which they reach this daemon",
                 .key = "address"}};
    }
    const bool is_served =
        settings.address.has_value() ||
        std::ranges::any_of(node.listen, [&](const auto& each) { return serves(each, *address); });
    if (is_served) return {};
    return {{.wrong = "this node does not listen at " + format_address(*address),
             .right = "write one of the addresses in fabric.listen",
             .key = "members"}};
}

std::optional<fabric::Address> own_address(const EpochSettings& settings, const OwnNode& node) {
    const EpochSettings::Node* const self = settings.find(node.name);
    if (self != nullptr) return self->address;
    if (settings.address) return settings.address;
    const auto found = std::ranges::find_if(node.listen, &is_reachable);
    if (found == node.listen.end()) return std::nullopt;
    return *found;
}

EtcdStoreOptions etcd_options(const EpochSettings::Store& store, std::string password) {
    return {.endpoints = store.endpoints,
            .prefix = store.prefix,
            .ca = store.tls.ca.value_or(""),
            .cert = store.tls.cert.value_or(""),
            .key = store.tls.key.value_or(""),
            .user = store.user,
            .password = std::move(password),
            .timeout = store.timeout};
}

peers::MemberOptions member_options(const EpochSettings& settings, const EpochRules& rules,
                                    std::uint64_t parts_hash) {
    peers::MemberOptions options{.rules = rules};
    options.fanout = settings.fanout;
    options.grace = settings.grace_in_force();
    options.resend = options.grace / 4;
    options.root_silent = settings.root_silent;
    // Members with other trees or other patience would not understand each other.
    options.rules_hash = parts_hash;
    for (const std::int64_t each :
         {settings.timeout.count(), options.grace.count(), settings.root_silent.count(),
          static_cast<std::int64_t>(settings.fanout)}) {
        options.rules_hash = core::mix(options.rules_hash, static_cast<std::uint64_t>(each));
    }
    options.expect = settings.expect;
    for (const auto& each : settings.members)
        options.others.push_back({.name = each.name, .address = format_address(each.address)});
    options.bootstrap_timeout = settings.bootstrap_timeout;
    options.quorum = settings.quorum;
    const EpochSettings::Node* const root = settings.find(settings.store.root);
    if (root != nullptr)
        options.root = {.name = root->name, .address = format_address(root->address)};
    return options;
}

}  // namespace fopd::eh

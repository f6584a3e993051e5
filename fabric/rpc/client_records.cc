#include "fabric/rpc/client_records.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::fabric {

namespace {

// Fops of one client that must not run twice, until the client has the reply.
constexpr std::size_t kRememberedMax = 1024;
// An idle client keeps memory for so many numbers of recorded replies.
constexpr std::size_t kRecordedKept = 16;
// The memory of a remembered fop, without the bytes of its reply.
constexpr std::uint64_t kRememberedBytes = 512;
// How many clients, fops and shares one forget_old() destroys or looks at.
constexpr std::size_t kForgottenPerStep = 256;
// What the map and the allocator add to an entry.
constexpr std::size_t kEntryOverheadBytes = 64;
static_assert(sizeof(std::pair<const std::uint64_t, RememberedFop>) + kEntryOverheadBytes <=
              kRememberedBytes);

// Whether a principal that uses `own` of the `of_all` in use may take one more. It may use up to
// four times as much as is free, so a single principal gets at most four fifths of `max`.
bool may_have_more(std::uint64_t own, std::uint64_t of_all, std::uint64_t max) {
    return of_all < max && own < 4 * (max - of_all);
}

// Whether a principal that uses nothing may take one when `of_all` are in use: many principals
// together may have used up `max`. Each of them has at most one of these.
bool may_have_first(std::uint64_t of_all, std::uint64_t max) {
    return of_all < max + max / 2;
}

// Whether a principal that uses `own` of the `of_all` in use may take one more, or a first one.
bool may_take(std::uint64_t own, std::uint64_t of_all, std::uint64_t max) {
    return own == 0 ? may_have_first(of_all, max) : may_have_more(own, of_all, max);
}

std::size_t place_of(std::uint64_t request) {
    return request % fop::kRequestPlaces;
}

std::uint64_t cost_of(const RememberedFop& fop) {
    return kRememberedBytes + (fop.reply ? fop.reply->size_bytes() : 0);
}

}  // namespace

// -- sessions --

ClientRecords::TakenSession ClientRecords::take_session(const fop::Identity& identity,
                                                        Instant now) {
    std::string name = fop::share_name(identity);
    const auto [at, is_new] = shares_.try_emplace(name);
    PrincipalShare& share = at->second;
    if (is_new) share.name = std::move(name);
    const std::string_view refusal = refusal_of_session(share, now);
    if (!refusal.empty()) {
        release_if_empty(share);
        return {.refusal = refusal};
    }
    share.opens_until = after(std::max(share.opens_until, now), limits_.open_interval);
    ++share.sessions;
    ++sessions_;
    return {.share = &share};
}

std::string_view ClientRecords::refusal_of_session(const PrincipalShare& share, Instant now) const {
    if (!may_have_more(share.sessions, sessions_, limits_.sessions_max)) {
        return sessions_ < limits_.sessions_max
                   ? "the principal has as many sessions as its share allows"
                   : "too many sessions";
    }
    const bool is_at_pace =
        share.opens_until <= now ||
        share.opens_until - now <= limits_.open_interval * (limits_.opens_max - 1);
    return is_at_pace ? "" : "the principal opens too many sessions in a short time";
}

void ClientRecords::give_back(PrincipalShare& share) {
    --share.sessions;
    --sessions_;
    release_if_empty(share);
}

void ClientRecords::release_if_empty(PrincipalShare& share) {
    if (share.sessions > 0 || share.clients > 0 || share.request_bytes > 0) return;
    const std::string name = share.name;
    shares_.erase(name);
}

// -- clients --

ClientRecord* ClientRecords::find(const fop::ClientId& id, const fop::Identity& identity) {
    const auto found = clients_.find(key_of(id, identity));
    return found == clients_.end() ? nullptr : found->second.get();
}

ClientRecord& ClientRecords::enter(const fop::ClientId& id, const fop::Identity& identity,
                                   PrincipalShare& share, ClientLine& line) {
    auto& client = clients_[key_of(id, identity)];
    if (client == nullptr) {
        client = std::make_unique<ClientRecord>(id, identity, share);
        ++share.clients;
    }
    client->identity_ = identity;
    client->absent_.unlink();
    client->abandoned_before_ = 0;
    set_idle(*client, false);
    ClientLine* const before = std::exchange(client->line_, &line);
    if (before != nullptr) before->replaced();
    return *client;
}

void ClientRecords::leave(ClientRecord& client, const ClientLine& line, Instant now) {
    if (client.line_ != &line) return;
    client.line_ = nullptr;
    client.idle_since_ = now;
    if (client.running_ > 0) {
        absent_.push_back(client.absent_);
    } else {
        set_idle(client, true);
    }
}

void ClientRecords::set_idle(ClientRecord& client, bool is_idle) {
    if (client.linked() == is_idle) return;
    PrincipalShare& share = client.share_;
    by_idle_.erase(&share);
    by_idle_bytes_.erase(&share);
    if (is_idle) {
        share.idle.push_back(client);
        ++share.idle_count;
        ++idle_count_;
        share.idle_bytes += client.bytes_;
    } else {
        client.unlink();
        --share.idle_count;
        --idle_count_;
        share.idle_bytes -= client.bytes_;
    }
    if (share.idle_count > 0) by_idle_.insert(&share);
    if (share.idle_bytes > 0) by_idle_bytes_.insert(&share);
    // The principal with the most idle clients loses one.
    while (idle_count_ > limits_.idle_max) {
        forget((*std::prev(by_idle_.end()))->idle.front());
    }
}

void ClientRecords::forget(ClientRecord& client) {
    PrincipalShare& share = client.share_;
    set_idle(client, false);
    while (!client.fops_.empty()) erase_fop(client, client.fops_.begin());
    client.recorded_ = {};
    count_recorded(client);
    clients_.erase(Key{client.id_, share.name, client.principal()});
    --share.clients;
    release_if_empty(share);
}

// Abandons the next fop of the client that runs, which may destroy the client. If there is none,
// takes the client out of its list.
void ClientRecords::abandon_next(ClientRecord& client) {
    for (auto each = client.fops_.lower_bound(client.abandoned_before_); each != client.fops_.end();
         ++each) {
        client.abandoned_before_ = each->first + 1;
        RememberedRun* const run = std::exchange(each->second.run, nullptr);
        if (run != nullptr) return run->abandon();
    }
    client.absent_.unlink();
}

bool ClientRecords::forget_old(Instant now) {
    while (!absent_.empty() && now - absent_.front().client.idle_since_ >= limits_.idle_time) {
        lost_.push_back(*absent_.pop_front());
    }
    std::size_t done = 0;
    for (; !lost_.empty(); ++done) {
        if (done >= kForgottenPerStep) return true;
        abandon_next(lost_.front().client);
    }
    for (auto each = shares_.lower_bound(sweep_from_); each != shares_.end();) {
        PrincipalShare& share = (each++)->second;  // The share is destroyed with its last client.
        ++done;
        while (share.idle_count > 0) {
            ClientRecord& oldest = share.idle.front();
            if (now - oldest.idle_since_ < limits_.idle_time) break;
            if (done >= kForgottenPerStep) {
                sweep_from_ = share.name;
                return true;
            }
            done += 1 + oldest.fops_.size();
            const bool is_last = share.clients == 1 && share.sessions == 0;
            forget(oldest);
            if (is_last) break;
        }
        if (done >= kForgottenPerStep && each != shares_.end()) {
            sweep_from_ = each->first;
            return true;
        }
    }
    sweep_from_.clear();
    return false;
}

// -- fops --

// A principal that uses less memory than one record takes may have one more record, even if several
// other principals together have used up the memory, but not the reserve beyond it.
bool ClientRecords::may_remember_more(const PrincipalShare& share) const {
    const bool is_first = share.reply_bytes < kRememberedBytes &&
                          may_have_first(reply_bytes_, limits_.reply_bytes_max);
    return is_first || may_have_more(share.reply_bytes, reply_bytes_, limits_.reply_bytes_max);
}

bool ClientRecords::make_room(PrincipalShare& share) {
    while (!may_remember_more(share)) {
        PrincipalShare* const giver = who_gives_room(share);
        if (giver == nullptr) return false;
        forget(giver->idle.front());
    }
    return true;
}

// The principal whose longest idle client is forgotten. Null: nobody has any for this one.
PrincipalShare* ClientRecords::who_gives_room(PrincipalShare& to) {
    if (!by_idle_bytes_.empty()) {
        PrincipalShare& most = **std::prev(by_idle_bytes_.end());
        if (most.reply_bytes > to.reply_bytes) return &most;
    }
    return to.idle_count > 0 ? &to : nullptr;
}

void ClientRecords::recount(ClientRecord& client, std::uint64_t before, std::uint64_t now) {
    for (std::uint64_t* const each : {&client.bytes_, &client.share_.reply_bytes, &reply_bytes_}) {
        *each = *each - before + now;
    }
}

ClientRecords::Found ClientRecords::remember(ClientRecord& client, std::uint64_t request) {
    if (const auto known = client.fops_.find(request); known != client.fops_.end()) {
        return {.fop = &known->second, .is_new = false};
    }
    if (client.fops_.size() >= kRememberedMax) return {};
    PrincipalShare& share = client.share_;
    if (!make_room(share)) return {};
    RememberedFop& fop = client.fops_[request];
    fop.client = &client;
    ++client.running_;
    recount(client, 0, cost_of(fop));
    return {.fop = &fop, .is_new = true};
}

void ClientRecords::answered(RememberedFop& fop, const fop::Reply& reply, Instant now) {
    ClientRecord& client = *fop.client;
    ClientLine* const line = client.line_;
    if (line != nullptr && line->id() == fop.line) line->reply(reply, fop.lane);
    const std::uint64_t before = cost_of(fop);
    fop.reply.emplace(reply);
    fop.run = nullptr;
    recount(client, before, cost_of(fop));
    // The client gave it up. No later acknowledgement looks at it again.
    if (reply.id < client.acknowledged_before_) erase_fop(client, client.fops_.find(reply.id));
    end_running(client, now);
}

void ClientRecords::forget(RememberedFop& fop, std::uint64_t request, Instant now) {
    ClientRecord& client = *fop.client;
    erase_fop(client, client.fops_.find(request));
    end_running(client, now);
}

void ClientRecords::end_running(ClientRecord& client, Instant now) {
    if (--client.running_ > 0 || client.line_ != nullptr) return;
    client.absent_.unlink();
    client.idle_since_ = now;
    set_idle(client, true);
}

bool ClientRecords::may_record(ClientRecord& client, std::uint64_t request) {
    const auto at = std::ranges::lower_bound(client.recorded_, place_of(request), {}, place_of);
    if (at != client.recorded_.end() && place_of(*at) == place_of(request)) return true;
    return make_room(client.share_);
}

void ClientRecords::note_recorded(ClientRecord& client, std::uint64_t request) {
    if (request < client.acknowledged_before_) return;  // The client gave it up.
    auto& recorded = client.recorded_;
    const auto at = std::ranges::lower_bound(recorded, place_of(request), {}, place_of);
    if (at != recorded.end() && place_of(*at) == place_of(request)) {
        *at = request;
        return;
    }
    recorded.insert(at, request);
    count_recorded(client);
}

void ClientRecords::count_recorded(ClientRecord& client) {
    const std::uint64_t bytes = client.recorded_.capacity() * sizeof(std::uint64_t);
    recount(client, std::exchange(client.recorded_bytes_, bytes), bytes);
}

void ClientRecords::acknowledged(ClientRecord& client, std::uint64_t before) {
    const std::uint64_t known_before = client.acknowledged_before_;
    if (before <= known_before) return;
    client.acknowledged_before_ = before;
    auto& recorded = client.recorded_;
    std::erase_if(recorded, [&client](std::uint64_t request) {
        return request < client.acknowledged_before_;
    });
    // Only a large reduction frees memory, so that normal fluctuation does not.
    if (recorded.capacity() > kRecordedKept && recorded.size() < recorded.capacity() / 4) {
        recorded.shrink_to_fit();
        count_recorded(client);
    }
    // Earlier ones that still run were passed over before: however often a client acknowledges,
    // each fop is looked at once.
    auto& fops = client.fops_;
    for (auto each = fops.lower_bound(known_before); each != fops.end() && each->first < before;) {
        ++looked_at_;
        const auto next = std::next(each);
        if (each->second.reply) erase_fop(client, each);
        each = next;
    }
}

// -- what is in memory for sessions --

bool ClientRecords::take_unsent(PrincipalShare& share, UnsentReplies& session,
                                std::uint64_t bytes) {
    while (!may_take_unsent(share)) {
        PrincipalShare& giver = who_gives_unsent(share);
        UnsentReplies& slowest = giver.unsent.front();
        if (&slowest == &session) return false;
        give_back_all_unsent(giver, slowest);
        slowest.on_lost();
    }
    session.bytes += bytes;
    set_unsent(share, share.unsent_bytes + bytes);
    if (!session.linked()) share.unsent.push_back(session);
    return true;
}

bool ClientRecords::may_take_unsent(const PrincipalShare& share) const {
    return may_take(share.unsent_bytes, unsent_bytes_, limits_.unsent_bytes_max);
}

// A principal that has replies which wait gives up its own.
PrincipalShare& ClientRecords::who_gives_unsent(PrincipalShare& to) {
    if (to.unsent_bytes > 0) return to;
    ENSURE(!by_unsent_.empty());
    return **std::prev(by_unsent_.end());
}

void ClientRecords::set_unsent(PrincipalShare& share, std::uint64_t bytes) {
    auto place = by_unsent_.extract(&share);  // The order depends on the bytes.
    unsent_bytes_ = unsent_bytes_ - share.unsent_bytes + bytes;
    share.unsent_bytes = bytes;
    if (bytes == 0) return;
    if (place.empty()) {
        by_unsent_.insert(&share);
    } else {
        by_unsent_.insert(std::move(place));
    }
}

void ClientRecords::give_back_unsent(PrincipalShare& share, UnsentReplies& session,
                                     std::uint64_t bytes) {
    ENSURE(bytes <= session.bytes);
    session.bytes -= bytes;
    set_unsent(share, share.unsent_bytes - bytes);
    session.unlink();
    if (session.bytes > 0) share.unsent.push_back(session);
}

void ClientRecords::give_back_all_unsent(PrincipalShare& share, UnsentReplies& session) {
    give_back_unsent(share, session, session.bytes);
}

bool ClientRecords::may_take_request(const PrincipalShare& share) const {
    return may_take(share.request_bytes, request_bytes_, limits_.request_bytes_max);
}

bool ClientRecords::may_grow_request(const PrincipalShare& share, const Growth& growth) const {
    ENSURE(growth.bytes_before <= share.request_bytes);
    const std::uint64_t of_others = request_bytes_ - growth.bytes_before;
    return may_take(share.request_bytes - growth.bytes_before, of_others + growth.more_bytes,
                    limits_.request_bytes_max);
}

void ClientRecords::take_request(PrincipalShare& share, std::uint64_t bytes) {
    share.request_bytes += bytes;
    request_bytes_ += bytes;
}

void ClientRecords::give_back_request(PrincipalShare& share, std::uint64_t bytes) {
    ENSURE(bytes <= share.request_bytes);
    share.request_bytes -= bytes;
    request_bytes_ -= bytes;
    release_if_empty(share);
}

void ClientRecords::erase_fop(ClientRecord& client,
                              std::map<std::uint64_t, RememberedFop>::iterator fop) {
    ENSURE(fop != client.fops_.end());
    recount(client, cost_of(fop->second), 0);
    client.fops_.erase(fop);
}

}  // namespace fopd::fabric

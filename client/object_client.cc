// SPDX-License-Identifier: BSD-2-Clause
#include "client/object_client.h"

#include <algorithm>
#include <array>
#include <utility>

#include "client/request_fault.h"
#include "core/ensure.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

constexpr Duration kRetryPauseMin = 1ms;
constexpr Duration kRetryPauseMax = 500ms;
// How often an upload is begun anew because the server forgot it, or told to commit after what it
// had lost was sent again.
constexpr int kUploadTries = 4;
// For what is only cleaned up.
constexpr Duration kAbortMax = 5s;

const fop::FopType* type_of(const fop::RequestBody& body) {
    ENSURE(body.index() > 0);
    return &fop::kFopTypes[body.index() - 1];
}

std::unexpected<Problem> failed(fop::Status status, std::string words) {
    return std::unexpected(Problem{.status = status, .words = std::move(words)});
}

std::unexpected<Problem> failed(const Error& error) {
    return failed(fop::status_of(error.code), describe(error));
}

// What a server says that keeps to no format.
std::unexpected<Problem> nonsense() {
    return failed(fop::Status::kInternal, "the server's answer makes no sense");
}

std::unexpected<Problem> refused(const fabric::Answer& answer) {
    Problem problem{.status = answer.status, .answered = true, .words = {}};
    core::append_printable(problem.words, answer.words.empty()
                                              ? fop::status_row(answer.status).summary
                                              : std::string_view(answer.words));
    // Others look for what they have done before, and say so.
    problem.may_be_done = answer.sent_before && answer.status == fop::Status::kMediumMissing;
    if (problem.may_be_done) problem.words += "; it may have been done before that";
    return std::unexpected(std::move(problem));
}

// The body of an answer that says "done"; null when it is another one or none.
template <typename Body>
const Body* body_of(const fabric::Answer& answer) {
    return std::get_if<Body>(&answer.body);
}

bool is_worth_repeating(const fop::FopType& type, fop::Status status) {
    if (status == fop::Status::kTryAgain) return true;  // Nothing was begun.
    return status == fop::Status::kOutcomeUnknown && type.repeat == fop::Repeat::kIdempotent;
}

// The server only reads what is opened to it for reading.
std::span<std::byte> lent(std::span<const std::byte> bytes) {
    return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

// Before there is a session nobody knows what travels in a message; memory always does.
bool fits_message(const fabric::Client& session, std::size_t bytes) {
    return session.open() && bytes <= session.session().inline_max();
}

// What the reply about one object says of it.
template <typename Body>
const fop::Receipt* receipt_in(const Body& body) {
    if constexpr (requires { body.changed; }) return &body.changed.receipt;
    if constexpr (requires { body.receipt; }) return &body.receipt;
    return nullptr;
}
const fop::Receipt* receipt_of(const fabric::Answer& answer) {
    return std::visit([](const auto& body) { return receipt_in(body); }, answer.body);
}

// Why a buffered write can never be written again: what is to be written is lost then.
bool is_lost_for_good(const Problem& problem) {
    return problem.answered &&
           (problem.status == fop::Status::kLost || problem.status == fop::Status::kNotFound ||
            problem.status == fop::Status::kDenied);
}

std::string why_lost(const Problem& problem) {
    if (problem.status == fop::Status::kNotFound) return "the object was removed since";
    return problem.words;
}

// A disk that has come is used for new objects within this.
constexpr Duration kPlacesGoodFor = 1s;

// How often the server is asked where there is room, when it was nowhere where it had been.
constexpr unsigned kPlaceTries = 4;

// What a slot answers whose disk is about to go, or gone: there may be another by now.
bool may_have_moved(const Problem& problem) {
    if (problem.may_be_done) return false;
    return problem.status == fop::Status::kReadOnly ||
           problem.status == fop::Status::kMediumMissing;
}

// What one slot answers to a new object, and another may not.
bool is_worth_another_slot(const Problem& problem) {
    return problem.status == fop::Status::kNoSpace || may_have_moved(problem);
}

ObjectInfo info_of(const fop::Attributes& from) {
    return {.fid = from.fid,
            .size_bytes = from.size_bytes,
            .version = from.version,
            .created_ns = from.created_ns,
            .changed_ns = from.changed_ns,
            .allocated_bytes = from.allocated_bytes,
            .incarnation = from.incarnation,
            .owner = std::string(from.owner),
            .group = std::string(from.group),
            .name = std::string(from.name),
            .mode = from.mode};
}

}  // namespace

// What is long, and is moved piece by piece. Pieces end where multiples of their length do, so that
// they consist of whole blocks.
struct ObjectClient::Train {
    fop::Fid fid{};
    fop::Range whole{};
    std::span<std::byte> into{};
    std::span<const std::byte> from{};
    fop::Durability durability = fop::Durability::kDurable;
    std::uint64_t lost_in = 0;  // Not 0: it is written again, after this incarnation has lost it.
    Wait wait{};
    std::uint64_t piece_bytes = 0;
    Task<Outcome<void>> (ObjectClient::*move)(Train*, std::size_t) = nullptr;

    // What became of each piece: how many bytes were read, or in which incarnation it was uploaded,
    // where 0 means that it has to be.
    std::vector<std::uint64_t> results{};
    std::uint64_t incarnation = 0;  // The newest that a reply showed.
    std::uint64_t seq = 0;          // Likewise.
    std::size_t next = 0;
    std::optional<Problem> problem{};

    std::size_t count() const {
        if (whole.length == 0) return 0;
        return (whole.end() - 1) / piece_bytes - whole.offset / piece_bytes + 1;
    }
    fop::Range piece(std::size_t index) const {
        const std::uint64_t first = whole.offset / piece_bytes + index;
        const std::uint64_t start = std::max(whole.offset, first * piece_bytes);
        return {.offset = start,
                .length = std::min(whole.end(), (first + 1) * piece_bytes) - start};
    }
    template <typename Span>
    Span part(Span all, const fop::Range& range) const {
        return all.subspan(range.offset - whole.offset, range.length);
    }
};

ObjectClient::ObjectClient(fabric::SessionHost& host, ObjectClientOptions options)
    : host_(host),
      options_(std::move(options)),
      turn_(host.entropy().number()),
      changed_(host.reactor()) {
    ENSURE(options_.window > 0);
    ENSURE(options_.fop_bytes > 0);
    ENSURE(options_.fop_bytes % fop::kBlockBytes == 0);
    ENSURE(options_.fop_bytes <= fop::kTransferBytesMax);
}

ObjectClient::~ObjectClient() = default;

void ObjectClient::start() {
    if (sessions_.empty()) connect(options_.server.locality);
}

Task<void> ObjectClient::close() {
    closing_ = true;
    changed_.wake_all();
    // No session is added any more.
    for (std::size_t i = 0; i < sessions_.size(); ++i) co_await sessions_[i]->close();
}

// -- asking --

fabric::CallRequest ObjectClient::request(fop::RequestBody body, Wait wait) const {
    return {.type = type_of(body),
            .body = body,
            .header = {.job = wait.job.empty() ? std::string_view(options_.job) : wait.job},
            .token = options_.token,
            .deadline = wait.deadline,
            .cancel = wait.cancel};
}

// The answer to a fop, whatever its status.
Task<Outcome<fabric::Answer>> ObjectClient::ask(fabric::Client* session,
                                                fabric::CallRequest request) {
    std::string fault = fault_of(request);
    if (!fault.empty()) co_return failed(fop::Status::kMalformed, std::move(fault));
    core::Reactor& reactor = host_.reactor();
    Instant patience = request.deadline;
    Duration pause = kRetryPauseMin;
    for (;;) {
        auto answer = co_await session->call(request);
        if (!answer) co_return std::unexpected(no_answer(*session, answer.error()));
        if (!is_worth_repeating(*request.type, answer->status)) co_return std::move(*answer);
        // However long it took to be heard at all.
        if (pause == kRetryPauseMin) {
            patience = std::min(patience, after(reactor.now(), options_.patience));
        }
        if (after(reactor.now(), pause) > patience) co_return std::move(*answer);
        const auto slept = co_await reactor.sleep_for(pause, request.cancel);
        if (!slept) co_return failed(slept.error());
        pause = std::min(pause * 2, kRetryPauseMax);
    }
}

Task<Outcome<fabric::Answer>> ObjectClient::ask_home(fabric::CallRequest request) {
    ENSURE(!sessions_.empty());
    auto answer = co_await ask(sessions_.front().get(), request);
    if (answer && answer->status != fop::Status::kDone) co_return refused(*answer);
    co_return answer;
}

Task<Outcome<fabric::Answer>> ObjectClient::ask_slot(std::uint16_t slot,
                                                     fabric::CallRequest request) {
    const Wait wait{.deadline = request.deadline, .cancel = request.cancel};
    auto session = co_await session_of(slot, wait);
    if (!session) co_return std::unexpected(std::move(session.error()));
    co_return co_await ask(*session, request);
}

Problem ObjectClient::no_answer(const fabric::Client& session, const Error& error) const {
    Problem problem{.status = fop::status_of(error.code), .answered = false, .words = {}};
    if (error.code == Errc::kClosed) problem.status = fop::Status::kCancelled;
    if (error.code == Errc::kInvalid) problem.status = fop::Status::kTooLarge;
    core::append_printable(problem.words, describe(error));
    if (!session.open() && !session.last_problem().empty()) {
        problem.words += "; " + fabric::format_address(options_.server) + ": ";
        core::append_printable(problem.words, session.last_problem());
    }
    return problem;
}

// -- sessions and slots --

fabric::Client& ObjectClient::connect(std::optional<std::uint16_t> locality) {
    fabric::ClientOptions options;
    options.server = options_.server;
    options.server.locality = locality;
    options.credentials = options_.credentials;
    sessions_.push_back(std::make_unique<fabric::Client>(host_, std::move(options)));
    sessions_.back()->start();
    return *sessions_.back();
}

// A table holds for one life of the server: fops that arrive at another locality than the object's
// are passed on, so that one that has become old costs time only.
bool ObjectClient::knows_slots() const {
    if (!slots_of_) return false;
    const fabric::Client& home = *sessions_.front();
    return !home.open() || home.session().accepted().incarnation == *slots_of_;
}

Task<Outcome<void>> ObjectClient::load_slots(Wait wait) {
    while (loading_) {
        const auto woken = co_await changed_.wait(wait);
        if (!woken) co_return failed(woken.error());
    }
    if (closing_) co_return failed(Error{.code = Errc::kCancelled, .context = "closed"});
    if (knows_slots()) co_return {};
    co_return co_await ask_for_slots(wait);
}

Task<Outcome<void>> ObjectClient::look_for_places(Wait wait) {
    auto loaded = co_await load_slots(wait);
    if (!loaded) co_return loaded;
    const bool are_good = host_.reactor().now() < places_good_until_;
    const bool will_do = are_good || loading_ || !sessions_.front()->open();
    if (will_do && !places_are_old_) co_return {};
    co_return co_await ask_for_slots(wait);
}

// Requires: nobody else does.
Task<Outcome<void>> ObjectClient::ask_for_slots(Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    fabric::CallRequest asked = request(fop::Slots{}, wait);
    asked.reply_into = payload;
    loading_ = true;
    const auto answer = co_await ask_home(asked);
    loading_ = false;
    changed_.wake_all();
    if (!answer) co_return std::unexpected(answer.error());

    const auto entries = fop::read_slots(std::span(payload).first(answer->payload_bytes));
    if (!entries || body_of<fop::SlotsReply>(*answer) == nullptr) co_return nonsense();
    const fabric::Client& home = *sessions_.front();
    if (home.open()) {
        const fop::AcceptHello& accepted = home.session().accepted();
        slots_of_ = accepted.incarnation;
        std::erase_if(by_locality_, [&home](const auto& each) { return each.second == &home; });
        by_locality_.try_emplace(accepted.locality, sessions_.front().get());
    }
    slots_.clear();
    places_good_until_ = after(host_.reactor().now(), kPlacesGoodFor);
    places_are_old_ = false;
    for (const fop::SlotEntry& entry : *entries) {
        slots_[entry.slot] = {.locality = entry.locality,
                              .state = entry.state,
                              .in_default_pool = entry.in_default_pool,
                              .pool = std::string(entry.pool)};
    }
    co_return {};
}

Task<Outcome<fabric::Client*>> ObjectClient::session_of(std::uint16_t slot, Wait wait) {
    ENSURE(!sessions_.empty());
    if (!knows_slots()) {
        auto loaded = co_await load_slots(wait);
        if (!loaded) co_return std::unexpected(std::move(loaded.error()));
    }
    const auto place = slots_.find(slot);
    fabric::Client* session = sessions_.front().get();
    if (place != slots_.end() && !closing_) {
        const auto [known, is_new] = by_locality_.try_emplace(place->second.locality, nullptr);
        if (is_new) known->second = &connect(place->second.locality);
        session = known->second;
    }
    co_return session;
}

// Where an object of a pool may be made, the one whose turn it is first.
std::vector<std::uint16_t> ObjectClient::places_for(const std::string& pool) {
    std::vector<std::uint16_t> places;
    for (const auto& [number, slot] : slots_) {
        if (slot.state == fop::SlotState::kOnline && slot.is_of(pool)) places.push_back(number);
    }
    if (places.empty()) return places;
    std::ranges::rotate(places,
                        places.begin() + static_cast<std::ptrdiff_t>(turn_++ % places.size()));
    return places;
}

// Why there are none.
Problem ObjectClient::no_place(const std::string& pool) const {
    if (std::string fault = fault_of_name("pool", pool); !fault.empty()) {
        return {.status = fop::Status::kMalformed, .words = std::move(fault)};
    }
    const bool has_disks =
        std::ranges::any_of(slots_, [&](const auto& each) { return each.second.is_of(pool); });
    if (has_disks) {
        return {.status = fop::Status::kReadOnly,
                .words = "no disk of " +
                         (pool.empty() ? "the default pool" : "pool " + core::printable(pool)) +
                         " takes new objects now"};
    }
    return {.status = fop::Status::kWrongPool, .words = "there is no such pool, or no disk in it"};
}

// -- names and attributes --

template <typename Attempt>
Task<Outcome<fop::Fid>> ObjectClient::try_places(const Attempt* attempt) {
    for (unsigned tries = 1;; ++tries) {
        auto outcome = co_await (*attempt)();
        const bool may_move = !outcome && may_have_moved(outcome.error());
        if (!may_move || tries == kPlaceTries) co_return outcome;
        places_are_old_ = true;
    }
}

Task<Outcome<fop::Fid>> ObjectClient::create(NewObject object, Wait wait) {
    const auto attempt = [&] { return create_somewhere(&object, wait); };
    co_return co_await try_places(&attempt);
}

Task<Outcome<fop::Fid>> ObjectClient::create_somewhere(const NewObject* object, Wait wait) {
    auto loaded = co_await look_for_places(wait);
    if (!loaded) co_return std::unexpected(std::move(loaded.error()));
    Outcome<fop::Fid> outcome = std::unexpected(no_place(object->pool));
    const std::vector<std::uint16_t> places = places_for(object->pool);
    for (const std::uint16_t slot : places) {
        fabric::CallRequest asked = request(fop::Create{.name = object->name,
                                                        .group = object->group,
                                                        .slot = slot,
                                                        .mode = object->mode,
                                                        .no_replace = object->no_replace},
                                            wait);
        asked.header.pool = object->pool;
        const auto answer = co_await ask_slot(slot, asked);
        if (!answer) co_return std::unexpected(answer.error());
        if (answer->status == fop::Status::kDone) {
            const auto* const created = body_of<fop::CreateReply>(*answer);
            if (created == nullptr || created->fid.slot() != slot) co_return nonsense();
            held_.release(created->receipt);
            co_return created->fid;
        }
        outcome = refused(*answer);
        if (!is_worth_another_slot(outcome.error())) co_return outcome;
    }
    co_return outcome;
}

Task<Outcome<ObjectInfo>> ObjectClient::lookup(std::string pool, std::string name, Wait wait) {
    for (;;) {
        fabric::CallRequest asked = request(fop::Lookup{.name = name}, wait);
        asked.header.pool = pool;
        const auto answer = co_await ask_home(asked);
        if (!answer) co_return std::unexpected(answer.error());
        const auto* const found = body_of<fop::LookupReply>(*answer);
        if (found == nullptr) co_return nonsense();
        const fop::Attributes& attributes = found->attributes;
        ObjectInfo info = info_of(attributes);
        const std::uint64_t incarnation = attributes.incarnation;
        auto told = tell_lost(info.fid);
        if (!told) co_return std::unexpected(std::move(told.error()));
        if (!held_.has_other(info.fid.slot(), incarnation)) co_return info;
        auto caught_up = co_await catch_up(info.fid.slot(), incarnation, wait);
        if (!caught_up) co_return std::unexpected(std::move(caught_up.error()));
    }
}

Task<Outcome<ObjectInfo>> ObjectClient::stat(fop::Fid fid, Wait wait) {
    for (;;) {
        auto told = tell_lost(fid);
        if (!told) co_return std::unexpected(std::move(told.error()));
        const auto answer = co_await ask_slot(fid.slot(), request(fop::Stat{.fid = fid}, wait));
        if (!answer) co_return std::unexpected(answer.error());
        if (answer->status != fop::Status::kDone) co_return refused(*answer);
        const auto* const found = body_of<fop::StatReply>(*answer);
        if (found == nullptr) co_return nonsense();
        ObjectInfo info = info_of(found->attributes);
        const std::uint64_t incarnation = found->attributes.incarnation;
        if (!held_.has_other(fid.slot(), incarnation)) co_return info;
        auto caught_up = co_await catch_up(fid.slot(), incarnation, wait);
        if (!caught_up) co_return std::unexpected(std::move(caught_up.error()));
    }
}

Task<Outcome<ObjectPage>> ObjectClient::list(ListWish wish, Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    fabric::CallRequest asked = request(
        fop::ListObjects{.prefix = wish.prefix, .cursor = wish.cursor, .count_max = wish.count_max},
        wait);
    asked.header.pool = wish.pool;
    asked.reply_into = payload;
    const auto answer = co_await ask_home(asked);
    if (!answer) co_return std::unexpected(answer.error());
    const auto* const reply = body_of<fop::ListObjectsReply>(*answer);
    const auto entries = fop::read_list(std::span(payload).first(answer->payload_bytes));
    if (reply == nullptr || !entries) co_return nonsense();
    ObjectPage page{.entries = {}, .cursor = std::string(reply->cursor), .end = reply->end};
    // Whoever goes on from where it was would go on for ever.
    if (!page.end && page.cursor <= wish.cursor) co_return nonsense();
    for (const fop::ListEntry& entry : *entries) {
        page.entries.push_back({.fid = entry.fid,
                                .size_bytes = entry.size_bytes,
                                .changed_ns = entry.changed_ns,
                                .name = std::string(entry.name)});
    }
    co_return page;
}

Task<Outcome<std::vector<PoolSpace>>> ObjectClient::statfs(Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    fabric::CallRequest asked = request(fop::Statfs{}, wait);
    asked.reply_into = payload;
    const auto answer = co_await ask_home(asked);
    if (!answer) co_return std::unexpected(answer.error());
    const auto entries = fop::read_pools(std::span(payload).first(answer->payload_bytes));
    if (!entries) co_return nonsense();
    std::vector<PoolSpace> pools;
    for (const fop::PoolEntry& entry : *entries) {
        pools.push_back({.pool = std::string(entry.pool),
                         .total_bytes = entry.total_bytes,
                         .used_bytes = entry.used_bytes,
                         .free_bytes = entry.free_bytes,
                         .objects = entry.objects});
    }
    co_return pools;
}

Task<Outcome<std::vector<QuotaUse>>> ObjectClient::quota(std::string pool, Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    std::vector<QuotaUse> uses;
    std::string cursor;
    for (bool is_end = false; !is_end;) {
        fabric::CallRequest asked = request(fop::Quota{.cursor = cursor}, wait);
        asked.header.pool = pool;
        asked.reply_into = payload;
        const auto answer = co_await ask_home(asked);
        if (!answer) co_return std::unexpected(answer.error());
        const auto* const reply = body_of<fop::QuotaReply>(*answer);
        const auto entries = fop::read_quotas(std::span(payload).first(answer->payload_bytes));
        if (reply == nullptr || !entries) co_return nonsense();
        is_end = reply->end;
        // Whoever goes on from where it was would go on for ever.
        if (!is_end && reply->cursor <= cursor) co_return nonsense();
        cursor = std::string(reply->cursor);
        for (const fop::QuotaEntry& entry : *entries) {
            const bool of_pool = entry.whose == fop::QuotaEntry::Whose::kPool;
            uses.push_back({.pool = std::string(entry.pool),
                            .owner = std::nullopt,
                            .used_bytes = entry.used_bytes,
                            .limit_bytes = entry.limit_bytes,
                            .used_objects = entry.used_objects,
                            .limit_objects = entry.limit_objects});
            if (!of_pool) uses.back().owner = std::string(entry.owner);
        }
    }
    co_return uses;
}

Task<Outcome<void>> ObjectClient::set_attributes(fop::Fid fid, AttributeWish wish, Wait wait) {
    fop::SetAttributes body{.fid = fid, .mode = wish.mode.value_or(0)};
    if (wish.owner) body.owner = *wish.owner;
    if (wish.group) body.group = *wish.group;
    body.which = static_cast<std::uint8_t>((wish.owner ? fop::SetAttributes::kOwner : 0) |
                                           (wish.group ? fop::SetAttributes::kGroup : 0) |
                                           (wish.mode ? fop::SetAttributes::kMode : 0));
    auto answer = co_await change(fid, request(body, wait));
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    end_change();
    co_return {};
}

Task<Outcome<void>> ObjectClient::rename(RenameWish wish, Wait wait) {
    fabric::CallRequest asked = request(
        fop::Rename{
            .fid = wish.fid, .from = wish.from, .name = wish.name, .no_replace = wish.no_replace},
        wait);
    asked.header.pool = wish.pool;
    auto answer = co_await change(wish.fid, asked);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    end_change();
    co_return {};
}

Task<Outcome<void>> ObjectClient::remove(fop::Fid fid, std::string from, Wait wait) {
    auto answer = co_await change(fid, request(fop::Delete{.fid = fid, .from = from}, wait));
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    held_.forget(fid);
    end_change();
    co_return {};
}

// -- pieces of what is long --

// Moves all pieces, several at a time. Those under way are waited for: each ends by the call's
// deadline or cancel source.
Task<Outcome<void>> ObjectClient::run(Train* train) {
    const std::size_t count = train->count();
    train->results.resize(count);
    if (count == 1) co_return co_await (this->*train->move)(train, 0);
    train->next = 0;
    core::Reactor& reactor = host_.reactor();
    core::Gate pieces;
    const std::size_t together = std::min<std::size_t>(options_.window, count);
    for (std::size_t i = 0; i < together; ++i) reactor.spawn(pieces, run_pieces(train));
    co_await pieces.close(reactor);
    if (train->problem) co_return std::unexpected(std::move(*train->problem));
    co_return {};
}

Task<void> ObjectClient::run_pieces(Train* train) {
    while (!train->problem && train->next < train->results.size()) {
        const std::size_t index = train->next++;
        auto moved = co_await (this->*train->move)(train, index);
        if (!moved && !train->problem) train->problem = std::move(moved.error());
    }
}

Task<Outcome<std::uint64_t>> ObjectClient::read(fop::Fid fid, std::uint64_t offset,
                                                std::span<std::byte> into, Wait wait) {
    // A read is short where the object ends, and none goes on beyond that.
    const std::uint64_t left = fop::kOffsetMax - std::min(offset, fop::kOffsetMax);
    const fop::Range whole{.offset = offset, .length = std::min<std::uint64_t>(into.size(), left)};
    const auto sound = fop::check_range(whole);
    if (!sound) co_return failed(fop::Status::kMalformed, sound.error().context);
    auto told = tell_lost(fid);
    if (!told) co_return std::unexpected(std::move(told.error()));
    Train train{.fid = fid,
                .whole = whole,
                .into = into,
                .wait = wait,
                .piece_bytes = options_.fop_bytes,
                .move = &ObjectClient::read_piece};
    auto moved = co_await run(&train);
    if (!moved) co_return std::unexpected(std::move(moved.error()));
    told = tell_lost(fid);
    if (!told) co_return std::unexpected(std::move(told.error()));
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < train.results.size(); ++i) {
        bytes += train.results[i];
        if (train.results[i] < train.piece(i).length) break;
    }
    co_return bytes;
}

Task<Outcome<void>> ObjectClient::read_piece(Train* train, std::size_t index) {
    const std::array ranges{train->piece(index)};
    const auto into = train->part(train->into, ranges[0]);
    const std::uint16_t slot = train->fid.slot();
    for (;;) {
        auto session = co_await session_of(slot, train->wait);
        if (!session) co_return std::unexpected(std::move(session.error()));
        fabric::CallRequest asked =
            request(fop::Read{.fid = train->fid, .ranges = ranges}, train->wait);
        const bool in_message = fits_message(**session, into.size());
        (in_message ? asked.reply_into : asked.target) = into;
        const auto answer = co_await ask(*session, asked);
        if (!answer) co_return std::unexpected(answer.error());
        if (answer->status != fop::Status::kDone) co_return refused(*answer);
        const auto* const reply = body_of<fop::ReadReply>(*answer);
        if (reply == nullptr) co_return nonsense();
        const std::array there{fop::within(ranges[0], reply->size_bytes)};
        if (reply->bytes != there[0].length ||
            reply->checksums.size() != fop::count_pieces(there) ||
            (in_message && answer->payload_bytes != reply->bytes)) {
            co_return nonsense();
        }
        if (!fop::pieces_intact(there, into.first(reply->bytes), reply->checksums)) {
            co_return failed(fop::Status::kCorrupt, "what was read does not match its checksums");
        }
        train->results[index] = reply->bytes;
        const std::uint64_t incarnation = reply->incarnation;
        if (!held_.has_other(slot, incarnation)) co_return {};
        auto caught_up = co_await catch_up(slot, incarnation, train->wait);
        if (!caught_up) co_return caught_up;
    }
}

Task<Outcome<void>> ObjectClient::write(WriteWish wish, Wait wait) {
    const fop::Range whole{.offset = wish.offset, .length = wish.from.size()};
    const auto sound = fop::check_range(whole);
    if (!sound) co_return failed(fop::Status::kMalformed, sound.error().context);
    if (wish.from.empty()) co_return {};
    Train train{.fid = wish.fid,
                .whole = whole,
                .from = wish.from,
                .durability = wish.durability,
                .wait = wait,
                .piece_bytes = options_.fop_bytes,
                .move = &ObjectClient::write_piece};
    if (wish.durability == fop::Durability::kBuffered) {
        if (whole.length > options_.held_bytes_max) {
            train.durability = fop::Durability::kDurable;  // It could not be kept.
        } else if (held_.bytes() + whole.length > options_.held_bytes_max) {
            auto synced = co_await make_durable(wait);
            if (!synced) co_return synced;
        }
    }
    auto begun = co_await begin_change(wish.fid, wait);
    if (!begun) co_return begun;
    auto moved = co_await run(&train);
    end_change();
    if (!moved) co_return moved;
    co_return co_await catch_up(wish.fid.slot(), train.incarnation, wait);
}

Task<Outcome<void>> ObjectClient::write_piece(Train* train, std::size_t index) {
    const std::array ranges{train->piece(index)};
    const auto from = train->part(train->from, ranges[0]);
    std::vector<std::uint32_t> checksums(fop::count_pieces(ranges));
    fop::checksum_pieces(ranges, from, checksums);
    auto session = co_await session_of(train->fid.slot(), train->wait);
    if (!session) co_return std::unexpected(std::move(session.error()));

    fabric::CallRequest asked = request(fop::Write{.fid = train->fid,
                                                   .ranges = ranges,
                                                   .checksums = checksums,
                                                   .source = {},
                                                   .durability = train->durability,
                                                   .lost_in = train->lost_in},
                                        train->wait);
    if (fits_message(**session, from.size())) {
        asked.payload = from;
    } else {
        std::get<fop::Write>(asked.body).source.emplace();
        asked.source = lent(from);
    }
    const auto answer = co_await ask(*session, asked);
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->status != fop::Status::kDone) co_return refused(*answer);
    const auto* const reply = body_of<fop::WriteReply>(*answer);
    if (reply == nullptr || reply->changed.receipt.slot != train->fid.slot()) co_return nonsense();
    const fop::Receipt& receipt = reply->changed.receipt;
    if (train->durability == fop::Durability::kBuffered) {
        held_.add(train->fid, ranges[0].offset, from, receipt);
    } else {
        held_.cut(train->fid, ranges[0]);
        held_.release(receipt);
    }
    train->incarnation = std::max(train->incarnation, receipt.incarnation);
    co_return {};
}

Task<Outcome<std::uint64_t>> ObjectClient::append(fop::Fid fid, std::span<const std::byte> from,
                                                  Wait wait) {
    if (from.size() > fop::kTransferBytesMax) {
        co_return failed(fop::Status::kTooLarge, "more than 4 MiB cannot be appended in one piece");
    }
    // Where the object ends must not depend on what a server may have lost.
    if (held_.holds(fid)) {
        auto synced = co_await make_durable(wait);
        if (!synced) co_return std::unexpected(std::move(synced.error()));
    }
    const std::array ranges{fop::Range{.offset = 0, .length = from.size()}};
    std::vector<std::uint32_t> checksums(fop::count_pieces(ranges));
    fop::checksum_pieces(ranges, from, checksums);
    auto session = co_await session_of(fid.slot(), wait);
    if (!session) co_return std::unexpected(std::move(session.error()));
    fop::Append body{.fid = fid, .length = from.size(), .checksums = checksums};
    const bool in_message = fits_message(**session, from.size());
    if (!in_message) body.source.emplace();
    fabric::CallRequest asked = request(body, wait);
    if (in_message) {
        asked.payload = from;
    } else {
        asked.source = lent(from);
    }
    auto answer = co_await change(fid, asked);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    const auto* const reply = body_of<fop::AppendReply>(*answer);
    const fop::Range appended{.offset = reply == nullptr ? 0 : reply->offset,
                              .length = from.size()};
    const bool makes_sense = reply != nullptr && fop::check_range(appended).has_value();
    if (makes_sense) held_.cut(fid, appended);
    end_change();
    if (!makes_sense) co_return nonsense();
    auto caught_up = co_await catch_up(fid.slot(), reply->changed.receipt.incarnation, wait);
    if (!caught_up) co_return std::unexpected(std::move(caught_up.error()));
    co_return appended.offset;
}

Task<Outcome<void>> ObjectClient::truncate(fop::Fid fid, std::uint64_t size_bytes, Wait wait) {
    const fop::Truncate body{.fid = fid, .size_bytes = size_bytes};
    auto answer = co_await change(fid, request(body, wait));
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    held_.cut(fid, {.offset = size_bytes, .length = fop::kOffsetMax - size_bytes});
    end_change();
    co_return co_await catch_up(fid.slot(), receipt_of(*answer)->incarnation, wait);
}

Task<Outcome<void>> ObjectClient::punch(fop::Fid fid, fop::Range range, Wait wait) {
    const fop::Punch body{.fid = fid, .range = range};
    auto answer = co_await change(fid, request(body, wait));
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    held_.clear(fid, range);
    end_change();
    co_return co_await catch_up(fid.slot(), receipt_of(*answer)->incarnation, wait);
}

// -- changes, and what the server may have lost --

// Changes go side by side, but not beside what is written again.
Task<Outcome<void>> ObjectClient::begin_change(fop::Fid fid, Wait wait) {
    while (writing_again_) {
        const auto woken = co_await changed_.wait(wait);
        if (!woken) co_return failed(woken.error());
    }
    auto told = tell_lost(fid);
    if (!told) co_return told;
    ++changes_;
    co_return {};
}

void ObjectClient::end_change() {
    ENSURE(changes_ > 0);
    if (--changes_ == 0) changed_.wake_all();
}

// A durable change of one fop. When it was done it is the caller's to end, after it has said what
// of the held writes it covers.
Task<Outcome<fabric::Answer>> ObjectClient::change(fop::Fid fid, fabric::CallRequest request) {
    const Wait wait{.deadline = request.deadline, .cancel = request.cancel};
    auto begun = co_await begin_change(fid, wait);
    if (!begun) co_return std::unexpected(std::move(begun.error()));
    auto answer = co_await ask_slot(fid.slot(), request);
    if (answer && answer->status == fop::Status::kDone) {
        const fop::Receipt* const receipt = receipt_of(*answer);
        if (receipt != nullptr && receipt->slot == fid.slot()) {
            held_.release(*receipt);
            co_return answer;
        }
        answer = nonsense();
    } else if (answer) {
        answer = refused(*answer);
    }
    end_change();
    co_return answer;
}

// A reply has shown in which incarnation the slot is: what is held from others and was lost with
// them is written again.
Task<Outcome<void>> ObjectClient::catch_up(std::uint16_t slot, std::uint64_t incarnation,
                                           Wait wait) {
    if (!held_.has_other(slot, incarnation)) co_return {};
    co_return co_await make_durable(wait);
}

Outcome<void> ObjectClient::tell_lost(fop::Fid fid) {
    auto lost = lost_.take(fid);
    if (!lost) return {};
    std::string words = describe(*lost);
    return std::unexpected(
        Problem{.status = fop::Status::kLost, .words = std::move(words), .lost = std::move(*lost)});
}

// One object at a time: words are short.
Outcome<void> ObjectClient::tell_all_lost() {
    auto lost = lost_.take_first();
    if (!lost && lost_.empty()) return {};
    if (!lost) {
        return failed(fop::Status::kLost,
                      std::to_string(lost_.take_unnamed()) + " more buffered writes are lost");
    }
    std::string words = describe(*lost);
    if (!lost_.empty()) words += "; other buffered writes are lost, too";
    return std::unexpected(
        Problem{.status = fop::Status::kLost, .words = std::move(words), .lost = std::move(*lost)});
}

Task<Outcome<void>> ObjectClient::sync(Wait wait) {
    auto durable = co_await make_durable(wait);
    if (!durable) co_return durable;
    co_return tell_all_lost();
}

// All that is held becomes durable, or is lost for good.
Task<Outcome<void>> ObjectClient::make_durable(Wait wait) {
    for (;;) {
        const std::vector<fop::Receipt> asked = held_.receipts();
        if (asked.empty()) co_return {};
        auto loaded = co_await load_slots(wait);
        if (!loaded) co_return loaded;
        std::map<std::uint16_t, std::vector<fop::Receipt>> by_locality;
        for (const fop::Receipt& each : asked) {
            const auto slot = slots_.find(each.slot);
            by_locality[slot == slots_.end() ? 0 : slot->second.locality].push_back(each);
        }
        std::vector<fop::Receipt> lost;
        for (const auto& each : by_locality) {
            const std::vector<fop::Receipt>& receipts = each.second;
            for (std::size_t first = 0; first < receipts.size(); first += fop::kReceiptsMax) {
                const auto part = std::span(receipts).subspan(first);
                const std::size_t count = std::min(part.size(), fop::kReceiptsMax);
                std::vector<fop::Receipt> some(part.begin(),
                                               part.begin() + static_cast<std::ptrdiff_t>(count));
                auto behind = co_await ask_sync(std::move(some), wait);
                if (!behind) co_return std::unexpected(std::move(behind.error()));
                lost.insert(lost.end(), behind->begin(), behind->end());
            }
        }
        if (lost.empty()) co_return {};
        auto again = co_await write_again(std::move(lost), wait);
        if (!again) co_return again;
    }
}

// Asks for receipts of slots of one locality, and releases what is durable. Returns up to where the
// incarnations are durable of which something was lost. What was on a disk that is no more has no
// place to be written again.
Task<Outcome<std::vector<fop::Receipt>>> ObjectClient::ask_sync(std::vector<fop::Receipt> receipts,
                                                                Wait wait) {
    const fop::Sync body{.receipts = receipts};
    const auto answer = co_await ask_slot(receipts.front().slot, request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->status != fop::Status::kDone && answer->status != fop::Status::kLost) {
        co_return refused(*answer);
    }
    const auto* const reply = body_of<fop::SyncReply>(*answer);
    if (reply == nullptr || reply->receipts.size() != receipts.size()) co_return nonsense();
    std::vector<fop::Receipt> lost;
    for (std::size_t i = 0; i < receipts.size(); ++i) {
        const fop::Receipt& now = reply->receipts[i];
        fop::Receipt kept = receipts[i];
        if (now.slot != kept.slot) co_return nonsense();
        if (now.incarnation == 0) {
            give_up_slot(kept.slot, kept.incarnation);
            continue;
        }
        const bool behind = now.seq < kept.seq;
        kept.seq = std::min(kept.seq, now.seq);
        held_.release(kept);
        if (behind) lost.push_back(kept);
    }
    co_return lost;
}

// Requires: the slot's disk is no more.
void ObjectClient::give_up_slot(std::uint16_t slot, std::uint64_t incarnation) {
    const fop::Receipt none{.incarnation = incarnation, .seq = 0, .slot = slot};
    while (const auto piece = held_.first_behind(none)) {
        lost_.add(piece->fid, piece->range(), "its disk was written off");
        held_.cut(piece->fid, piece->range());
    }
}

// Of other clients' writes nothing is known, so that it is asked for what there is.
Task<Outcome<void>> ObjectClient::sync_node(Wait wait) {
    const auto answer = co_await ask_home(request(fop::Sync{}, wait));
    if (!answer) co_return std::unexpected(answer.error());
    co_return {};
}

Task<Outcome<void>> ObjectClient::sync_object(ObjectInfo found, Wait wait) {
    fop::Receipt any{.incarnation = found.incarnation};
    any.slot = found.fid.slot();
    const std::array receipts{any};
    const fop::Sync body{.receipts = receipts};
    const auto answer = co_await ask_slot(any.slot, request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->status != fop::Status::kDone) co_return refused(*answer);
    const auto* const reply = body_of<fop::SyncReply>(*answer);
    if (reply == nullptr || reply->receipts.size() != 1) co_return nonsense();
    if (reply->receipts[0].incarnation == any.incarnation) co_return {};
    co_return failed(fop::Status::kLost, "the server was started anew: what was buffered is lost");
}

Task<Outcome<void>> ObjectClient::write_again(std::vector<fop::Receipt> kept, Wait wait) {
    while (writing_again_) {
        const auto woken = co_await changed_.wait(wait);
        if (!woken) co_return failed(woken.error());
    }
    writing_again_ = true;
    Outcome<void> written;
    while (changes_ > 0 && written) {
        const auto woken = co_await changed_.wait(wait);
        if (!woken) written = failed(woken.error());
    }
    if (written) written = co_await write_pieces_again(std::move(kept), wait);
    writing_again_ = false;
    changed_.wake_all();
    co_return written;
}

Task<Outcome<void>> ObjectClient::write_pieces_again(std::vector<fop::Receipt> kept, Wait wait) {
    for (const fop::Receipt& each : kept) {
        for (;;) {
            const auto piece = held_.first_behind(each);
            if (!piece) break;
            Train train{.fid = piece->fid,
                        .whole = piece->range(),
                        .from = piece->bytes,
                        .durability = fop::Durability::kBuffered,
                        .lost_in = each.incarnation,
                        .wait = wait,
                        .piece_bytes = options_.fop_bytes,
                        .move = &ObjectClient::write_piece};
            auto moved = co_await run(&train);
            if (moved && train.incarnation != each.incarnation) continue;
            if (moved) co_return nonsense();  // What was lost is where it was.
            if (!is_lost_for_good(moved.error())) co_return moved;
            lost_.add(piece->fid, piece->range(), why_lost(moved.error()));
            held_.cut(piece->fid, piece->range());
        }
    }
    co_return {};
}

// -- whole objects --

Task<Outcome<fop::Fid>> ObjectClient::put(NewObject object, std::span<const std::byte> from,
                                          Wait wait) {
    const auto attempt = [&] { return put_somewhere(&object, from, wait); };
    co_return co_await try_places(&attempt);
}

Task<Outcome<fop::Fid>> ObjectClient::put_somewhere(const NewObject* object,
                                                    std::span<const std::byte> from, Wait wait) {
    auto loaded = co_await look_for_places(wait);
    if (!loaded) co_return std::unexpected(std::move(loaded.error()));
    Outcome<fop::Fid> outcome = std::unexpected(no_place(object->pool));
    const std::vector<std::uint16_t> places = places_for(object->pool);
    for (const std::uint16_t slot : places) {
        Train train{.whole = {.offset = 0, .length = from.size()},
                    .from = from,
                    .durability = fop::Durability::kBuffered,
                    .wait = wait,
                    .piece_bytes = options_.fop_bytes,
                    .move = &ObjectClient::upload_piece};
        auto uploaded = co_await upload(&train, slot, object);
        if (uploaded) co_return train.fid;
        if (train.fid.is_set()) co_await abort_upload(train.fid);
        outcome = std::unexpected(std::move(uploaded.error()));
        if (!is_worth_another_slot(outcome.error())) break;
    }
    co_return outcome;
}

// A server that started anew may have forgotten the upload, or lost some of what was acknowledged.
Task<Outcome<void>> ObjectClient::upload(Train* train, std::uint16_t slot,
                                         const NewObject* object) {
    Outcome<void> done = failed(fop::Status::kLost, "the server loses what it was sent");
    for (int tries = 0; tries < kUploadTries; ++tries) {
        if (!train->fid.is_set()) {
            auto begun = co_await begin_at(
                {.slot = slot, .object = object, .size_bytes = train->whole.length}, train->wait);
            if (!begun) co_return std::unexpected(std::move(begun.error()));
            train->fid = *begun;
        }
        train->problem.reset();
        done = co_await run(train);
        if (done) {
            auto ended = co_await commit_upload(train->fid, train->whole.length, train->wait);
            if (ended && ended->done) co_return {};
            if (ended) {
                std::ranges::replace_if(
                    train->results, [&ended](auto each) { return each != ended->incarnation; }, 0);
                done = failed(fop::Status::kLost, "the server loses what it was sent");
                continue;
            }
            done = std::unexpected(std::move(ended.error()));
        }
        if (done.error().status != fop::Status::kNotFound) co_return done;
        train->fid = {};
        std::ranges::fill(train->results, 0);
    }
    co_return done;
}

Task<Outcome<fop::Fid>> ObjectClient::begin_upload(NewObject object, std::uint64_t size_bytes,
                                                   Wait wait) {
    const auto attempt = [&] { return begin_somewhere(&object, size_bytes, wait); };
    co_return co_await try_places(&attempt);
}

Task<Outcome<fop::Fid>> ObjectClient::begin_somewhere(const NewObject* object,
                                                      std::uint64_t size_bytes, Wait wait) {
    auto loaded = co_await look_for_places(wait);
    if (!loaded) co_return std::unexpected(std::move(loaded.error()));
    Outcome<fop::Fid> begun = std::unexpected(no_place(object->pool));
    const std::vector<std::uint16_t> places = places_for(object->pool);
    for (const std::uint16_t slot : places) {
        begun = co_await begin_at({.slot = slot, .object = object, .size_bytes = size_bytes}, wait);
        if (begun || !is_worth_another_slot(begun.error())) break;
    }
    co_return begun;
}

Task<Outcome<fop::Fid>> ObjectClient::begin_at(Beginning beginning, Wait wait) {
    const NewObject& object = *beginning.object;
    fabric::CallRequest asked = request(fop::UploadBegin{.name = object.name,
                                                         .group = object.group,
                                                         .size_bytes = beginning.size_bytes,
                                                         .slot = beginning.slot,
                                                         .mode = object.mode,
                                                         .no_replace = object.no_replace},
                                        wait);
    asked.header.pool = object.pool;
    auto answer = co_await ask_slot(beginning.slot, asked);
    if (!answer) co_return std::unexpected(answer.error());
    // It may be begun twice: one that nobody commits goes of itself.
    answer->sent_before = false;
    if (answer->status != fop::Status::kDone) co_return refused(*answer);
    const auto* const reply = body_of<fop::UploadBeginReply>(*answer);
    const bool makes_sense =
        reply != nullptr && reply->fid.slot() == beginning.slot && reply->fid.is_set();
    if (!makes_sense) co_return nonsense();
    co_return reply->fid;
}

Task<Outcome<fop::Receipt>> ObjectClient::write_upload(UploadPart part, Wait wait) {
    ENSURE(part.offset % fop::kBlockBytes == 0);
    Train train{.fid = part.fid,
                .whole = {.offset = part.offset, .length = part.from.size()},
                .from = part.from,
                .durability = fop::Durability::kBuffered,
                .wait = wait,
                .piece_bytes = options_.fop_bytes,
                .move = &ObjectClient::upload_piece};
    auto moved = co_await run(&train);
    if (!moved) co_return std::unexpected(std::move(moved.error()));
    fop::Receipt receipt{.incarnation = train.incarnation, .seq = train.seq};
    receipt.slot = part.fid.slot();
    for (const std::uint64_t each : train.results) {
        receipt.incarnation = std::min(receipt.incarnation, each);
    }
    co_return receipt;
}

Task<Outcome<bool>> ObjectClient::keep_upload(fop::Receipt receipt, Wait wait) {
    const std::array receipts{receipt};
    const fop::Sync body{.receipts = receipts};
    const auto answer = co_await ask_slot(receipt.slot, request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->status == fop::Status::kLost) co_return false;
    if (answer->status != fop::Status::kDone) co_return refused(*answer);
    const auto* const reply = body_of<fop::SyncReply>(*answer);
    if (reply == nullptr || reply->receipts.size() != 1) co_return nonsense();
    co_return reply->receipts[0].seq >= receipt.seq;
}

Task<Outcome<void>> ObjectClient::upload_piece(Train* train, std::size_t index) {
    if (train->results[index] != 0) co_return {};  // The server has it.
    const std::array ranges{train->piece(index)};
    const auto from = train->part(train->from, ranges[0]);
    std::vector<std::uint32_t> checksums(fop::count_pieces(ranges));
    fop::checksum_pieces(ranges, from, checksums);
    auto session = co_await session_of(train->fid.slot(), train->wait);
    if (!session) co_return std::unexpected(std::move(session.error()));
    fop::UploadWrite body{.fid = train->fid, .range = ranges[0], .checksums = checksums};
    const bool in_message = fits_message(**session, from.size());
    if (!in_message) body.source.emplace();
    fabric::CallRequest asked = request(body, train->wait);
    if (in_message) {
        asked.payload = from;
    } else {
        asked.source = lent(from);
    }
    const auto answer = co_await ask(*session, asked);
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->status != fop::Status::kDone) co_return refused(*answer);
    const auto* const reply = body_of<fop::UploadWriteReply>(*answer);
    if (reply == nullptr || reply->receipt.incarnation == 0) co_return nonsense();
    train->results[index] = reply->receipt.incarnation;
    train->incarnation = std::max(train->incarnation, reply->receipt.incarnation);
    train->seq = std::max(train->seq, reply->receipt.seq);
    co_return {};
}

Task<Outcome<ObjectClient::Committed>> ObjectClient::commit_upload(fop::Fid fid,
                                                                   std::uint64_t size_bytes,
                                                                   Wait wait) {
    const fop::Range whole{.offset = 0, .length = size_bytes};
    const fop::UploadCommit body{
        .fid = fid, .size_bytes = size_bytes, .blocks = fop::count_pieces(whole)};
    const auto answer = co_await ask_slot(fid.slot(), request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    const bool is_done = answer->status == fop::Status::kDone;
    const auto* const reply = body_of<fop::UploadCommitReply>(*answer);
    if (!is_done && (answer->status != fop::Status::kLost || reply == nullptr)) {
        co_return refused(*answer);
    }
    if (reply == nullptr) co_return nonsense();
    if (is_done) held_.release(reply->receipt);
    co_return Committed{.done = is_done, .incarnation = reply->receipt.incarnation};
}

Task<void> ObjectClient::abort_upload(fop::Fid fid) {
    const Wait wait{.deadline = after(host_.reactor().now(), kAbortMax)};
    const fop::UploadAbort body{.fid = fid};
    [[maybe_unused]] const auto answer = co_await ask_slot(fid.slot(), request(body, wait));
}

}  // namespace fopd::client

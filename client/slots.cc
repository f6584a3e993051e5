// SPDX-License-Identifier: BSD-2-Clause
#include "client/slots.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "client/request_fault.h"
#include "core/ensure.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

constexpr Duration kRetryPauseMin = 1ms;
// A disk that is added is used for new objects within this time.
constexpr Duration kFreshFor = 1s;
// How often a new object is tried, each time with a newer table.
constexpr unsigned kSlotTries = 4;

bool is_worth_repeating(const fop::FopType& type, fop::Status status) {
    if (status == fop::Status::kTryAgain) return true;  // The server has begun nothing.
    return status == fop::Status::kOutcomeUnknown && type.repeat == fop::Repeat::kIdempotent;
}

// The slot's disk is about to go, or is gone: a newer table may have another slot.
bool may_have_moved(const Problem& problem) {
    if (problem.may_be_done) return false;
    return problem.status == fop::Status::kReadOnly ||
           problem.status == fop::Status::kMediumMissing;
}

// The object that a call is about; not set: it is about none.
fop::Fid object_of(const fop::RequestBody& body) {
    return std::visit(
        [](const auto& each) {
            if constexpr (requires { each.fid; }) return each.fid;
            return fop::Fid{};
        },
        body);
}

// While a call waits for tape, how often its place is asked for.
constexpr std::uint64_t kLookAgainMs = 5000;
// A call that shows nothing meanwhile asks after this part of the time that it has left, so that
// its error can give the reason, until less than kLastWait is left.
constexpr int kLookAtEighths = 7;
constexpr Duration kLastWait = 1s;

// Adds one to a count while it exists.
class Counted {
public:
    explicit Counted(std::uint32_t& count) : count_(count) { ++count_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --count_; }

private:
    std::uint32_t& count_;
};

// `why`: the reason why no recall is served. Empty: they are served, or the reason is not known.
Problem still_on_tape(const std::string& why) {
    return {.status = fop::Status::kStaging,
            .answered = true,
            .words = why.empty() ? "its bytes are still on tape; they are being brought back"
                                 : "its bytes are still on tape: " + why};
}

Problem lost_on_tape(const fop::RecallWaitReply& reply, std::string_view reason) {
    Problem problem{
        .status = reply.is_damaged ? fop::Status::kCorrupt : fop::Status::kMediumMissing,
        .answered = true,
        .words = "its bytes cannot be read from tape"};
    if (reason.empty()) return problem;
    problem.words += ": ";
    core::append_printable(problem.words, reason);
    return problem;
}

template <typename Body>
void carry_in(Body& body, fabric::CallRequest& request, std::span<const std::byte> data,
              bool in_message) {
    if constexpr (requires { body.source.emplace(); }) {
        if (in_message) {
            request.payload = data;
            return;
        }
        body.source.emplace();
        // The server only reads memory that is opened to it as a source.
        request.source = {const_cast<std::byte*>(data.data()), data.size()};
    }
}

}  // namespace

Slots::Slots(fabric::SessionHost& host, const ObjectClientOptions& options)
    : host_(host), options_(options), turn_(host.entropy().number()), loaded_(host.reactor()) {}

void Slots::start() {
    if (sessions_.empty()) connect(options_.server.locality);
}

Task<void> Slots::close() {
    closing_ = true;
    // No session is added any more.
    for (std::size_t i = 0; i < sessions_.size(); ++i) co_await sessions_[i]->close();
}

// -- calls --

fabric::CallRequest Slots::request(fop::RequestBody body, Wait wait) const {
    ENSURE(body.index() > 0);
    return {.type = &fop::kFopTypes[body.index() - 1],
            .body = body,
            .header = {.job = wait.job.empty() ? std::string_view(options_.job) : wait.job},
            .token = options_.token,
            .deadline = wait.deadline,
            .cancel = wait.cancel};
}

// The server has recorded a recall of the object that the call is about.
Task<Outcome<void>> Slots::wait_for_recall(fabric::Client* session, fabric::CallRequest about) {
    const std::array fids{object_of(about.body)};
    if (!fids[0].is_set()) co_return nonsense();
    const Counted counted(tape_wait_.calls);
    std::string why;
    fop::RecallWait body{.fids = fids};
    for (bool is_first = true;; is_first = false) {
        body.patience_ms = recall_patience_ms(about.deadline, is_first);
        about.body = body;
        auto ended = co_await wait_once(session, about, &why);
        if (!ended) co_return std::unexpected(std::move(ended.error()));
        if (*ended) co_return {};
    }
}

std::uint64_t Slots::recall_patience_ms(Instant deadline, bool is_first) const {
    // The first answer comes at once, so that there is something to show.
    if (reports_recalls_) return is_first ? 1 : kLookAgainMs;
    if (deadline == kNever) return 0;
    const Duration left = deadline - reactor().now();
    if (left < kLastWait) return 0;
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(left / 8);
    return static_cast<std::uint64_t>(patience.count()) * kLookAtEighths;
}

// Asks the server to wait for the recall that the body of `asked` names. Returns whether the recall
// has ended.
Task<Outcome<bool>> Slots::wait_once(fabric::Client* session, fabric::CallRequest asked,
                                     std::string* why) {
    asked.type = fop::find_fop_type("recall_wait");
    asked.header.pool = {};
    asked.payload = {};
    asked.reply_into = {};
    asked.source = {};
    asked.target = {};
    const auto answer = co_await session->call(asked);
    if (!answer) {
        Problem problem = no_answer(*session, answer.error());
        const bool is_late = problem.status == fop::Status::kTimedOut && !problem.is_unreachable;
        if (is_late) problem = still_on_tape(*why);
        co_return std::unexpected(std::move(problem));
    }
    if (answer->status == fop::Status::kTimedOut) co_return std::unexpected(still_on_tape(*why));
    // The call itself is tried again.
    if (answer->status == fop::Status::kTryAgain) co_return true;
    if (answer->status != fop::Status::kDone) co_return refused(*answer);
    const auto* const reply = body_of<fop::RecallWaitReply>(*answer);
    if (reply == nullptr || reply->states.size() != 1) co_return nonsense();
    switch (static_cast<fop::RecallState>(reply->states[0])) {
        case fop::RecallState::kFailed:
            co_return std::unexpected(lost_on_tape(*reply, answer->words));
        case fop::RecallState::kCancelled:
            co_return std::unexpected(Problem{.status = fop::Status::kCancelled,
                                              .answered = true,
                                              .words = "its recall from tape was cancelled"});
        case fop::RecallState::kWaiting:
            *why = core::printable(answer->words);
            note_progress(*reply, *why);
            co_return false;
        default: co_return true;
    }
}

void Slots::note_progress(const fop::RecallWaitReply& reply, std::string reason) {
    constexpr std::uint64_t kUnknown = fop::RecallWaitReply::kUnknown;
    constexpr std::uint64_t kMax = 1000ULL * 3600 * 24 * 366;
    tape_wait_.place.reset();
    tape_wait_.expected_at.reset();
    tape_wait_.reason = std::move(reason);
    if (reply.place != kUnknown) tape_wait_.place = reply.place;
    if (reply.expected_ms == kUnknown) return;
    const auto expected = static_cast<std::int64_t>(std::min(reply.expected_ms, kMax));
    tape_wait_.expected_at = after(reactor().now(), std::chrono::milliseconds(expected));
}

Task<Outcome<fabric::Answer>> Slots::call(fabric::Client* session, fabric::CallRequest request) {
    std::string fault = fault_of(request);
    if (!fault.empty()) co_return failed(fop::Status::kMalformed, std::move(fault));
    Instant patience = request.deadline;
    Duration pause = kRetryPauseMin;
    Duration tape_pause{0};
    Duration room_pause = kRetryPauseMin;
    for (;;) {
        auto answer = co_await session->call(request);
        if (!answer) co_return std::unexpected(no_answer(*session, answer.error()));
        if (answer->status == fop::Status::kStaging) {
            auto waited = co_await wait_for_recall(session, request);
            if (!waited) co_return std::unexpected(std::move(waited.error()));
            // Bytes that leave the disk again at once are not asked for in a tight loop.
            if (tape_pause > Duration::zero()) {
                const auto slept = co_await reactor().sleep_for(tape_pause, request.cancel);
                if (!slept) co_return failed(slept.error());
            }
            tape_pause = std::min(std::max(tape_pause * 2, kRetryPauseMin), kRetryPauseMax);
            if (reactor().now() >= request.deadline) co_return std::unexpected(still_on_tape({}));
            continue;
        }
        // For a new object other disks are tried first.
        const bool waits_for_room =
            answer->status == fop::Status::kStagingFull && object_of(request.body).is_set();
        if (waits_for_room) {
            if (after(reactor().now(), room_pause) > request.deadline) co_return std::move(*answer);
            const auto slept = co_await reactor().sleep_for(room_pause, request.cancel);
            if (!slept) co_return failed(slept.error());
            room_pause = std::min(room_pause * 2, kRetryPauseMax);
            continue;
        }
        if (!is_worth_repeating(*request.type, answer->status)) co_return std::move(*answer);
        // The time before the first answer does not count.
        if (pause == kRetryPauseMin) {
            patience = std::min(patience, after(reactor().now(), options_.patience));
        }
        if (after(reactor().now(), pause) > patience) co_return std::move(*answer);
        const auto slept = co_await reactor().sleep_for(pause, request.cancel);
        if (!slept) co_return failed(slept.error());
        pause = std::min(pause * 2, kRetryPauseMax);
    }
}

Task<Outcome<fabric::Answer>> Slots::call_slot(std::uint16_t slot, fabric::CallRequest request,
                                               std::span<const std::byte> data) {
    const Wait wait{.deadline = request.deadline, .cancel = request.cancel};
    auto session = co_await session_of(slot, wait);
    if (!session) co_return std::unexpected(std::move(session.error()));
    const bool in_message = fits_message(**session, data.size());
    std::visit([&](auto& body) { carry_in(body, request, data, in_message); }, request.body);
    co_return co_await call(*session, request);
}

Task<Outcome<fabric::Answer>> Slots::ask_home(fabric::CallRequest request) {
    ENSURE(!sessions_.empty());
    auto answer = co_await call(sessions_.front().get(), request);
    if (answer && answer->status != fop::Status::kDone) co_return refused(*answer);
    co_return answer;
}

Task<Outcome<fabric::Answer>> Slots::ask_slot(std::uint16_t slot, fabric::CallRequest request,
                                              std::span<const std::byte> data) {
    auto answer = co_await call_slot(slot, request, data);
    if (answer && answer->status != fop::Status::kDone) co_return refused(*answer);
    co_return answer;
}

Problem Slots::no_answer(const fabric::Client& session, const Error& error) const {
    Problem problem{.status = fop::status_of(error.code), .answered = false, .words = {}};
    if (error.code == Errc::kClosed) problem.status = fop::Status::kCancelled;
    if (error.code == Errc::kInvalid) problem.status = fop::Status::kTooLarge;
    const bool is_late = error.code == Errc::kTimedOut;
    core::append_printable(problem.words, is_late ? "no answer in time" : describe(error));
    if (!session.open() && !session.last_problem().empty()) {
        problem.words += "; " + fabric::format_address(options_.server) + ": ";
        core::append_printable(problem.words, session.last_problem());
        problem.is_unreachable = problem.status == fop::Status::kTimedOut;
    }
    return problem;
}

// -- sessions and the table --

fabric::Client& Slots::connect(std::optional<std::uint16_t> locality) {
    fabric::ClientOptions options;
    options.server = options_.server;
    options.server.locality = locality;
    options.credentials = options_.credentials;
    options.times = options_.times;
    sessions_.push_back(std::make_unique<fabric::Client>(host_, std::move(options)));
    sessions_.back()->start();
    return *sessions_.back();
}

// The table belongs to one life of the server. An outdated table only costs time: a locality passes
// on fops about objects of another one.
bool Slots::is_current() const {
    if (!incarnation_) return false;
    return !home().open() || home().session().accepted().incarnation == *incarnation_;
}

Task<Outcome<void>> Slots::load(Wait wait) {
    while (loading_) {
        const auto woken = co_await loaded_.wait(wait);
        if (!woken) co_return failed(woken.error());
    }
    if (closing_) co_return failed(Error{.code = Errc::kCancelled, .context = "closed"});
    if (is_current()) co_return {};
    co_return co_await load_again(wait);
}

// Disks are added and removed in one life of the server, too.
Task<Outcome<void>> Slots::load_for_new_object(Wait wait) {
    auto loaded = co_await load(wait);
    if (!loaded) co_return loaded;
    const bool is_fresh = reactor().now() < fresh_until_;
    const bool will_do = is_fresh || loading_ || !home().open();
    if (will_do && !is_outdated_) co_return {};
    co_return co_await load_again(wait);
}

Task<Outcome<void>> Slots::load_again(Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    fabric::CallRequest asked = request(fop::Slots{}, wait);
    asked.reply_into = payload;
    loading_ = true;
    const auto answer = co_await ask_home(asked);
    loading_ = false;
    loaded_.wake_all();
    if (!answer) co_return std::unexpected(answer.error());

    const auto entries = fop::read_slots(std::span(payload).first(answer->payload_bytes));
    if (!entries || body_of<fop::SlotsReply>(*answer) == nullptr) co_return nonsense();
    if (home().open()) {
        const fop::AcceptHello& accepted = home().session().accepted();
        incarnation_ = accepted.incarnation;
        std::erase_if(by_locality_, [this](const auto& each) { return each.second == &home(); });
        by_locality_.try_emplace(accepted.locality, &home());
    }
    rows_.clear();
    default_pool_.clear();
    fresh_until_ = after(reactor().now(), kFreshFor);
    is_outdated_ = false;
    for (const fop::ListedSlot& entry : *entries) {
        Row& row = rows_[entry.slot];
        row.locality = entry.locality;
        row.state = entry.state;
        row.in_default_pool = row.in_default_pool || entry.in_default_pool;
        row.pools.emplace_back(entry.pool);
        if (entry.in_default_pool) default_pool_ = entry.pool;
    }
    co_return {};
}

Task<Outcome<fabric::Client*>> Slots::session_of(std::uint16_t slot, Wait wait) {
    ENSURE(!sessions_.empty());
    if (!is_current()) {
        auto loaded = co_await load(wait);
        if (!loaded) co_return std::unexpected(std::move(loaded.error()));
    }
    const auto found = rows_.find(slot);
    if (found == rows_.end() || closing_) co_return &home();
    const auto [known, is_new] = by_locality_.try_emplace(found->second.locality, nullptr);
    if (is_new) known->second = &connect(found->second.locality);
    co_return known->second;
}

std::map<std::string, std::uint32_t> Slots::missing_disks() const {
    std::map<std::string, std::uint32_t> missing;
    for (const auto& [slot, row] : rows_) {
        if (row.state != fop::ListedSlotState::kMissing) continue;
        for (const std::string& pool : row.pools) ++missing[pool];
    }
    return missing;
}

bool Slots::is_staged(const std::string& pool) const {
    return std::ranges::any_of(rows_, [&](const auto& each) {
        const std::vector<std::string>& pools = each.second.pools;
        const auto found = std::ranges::find(pools, pool);
        return found != pools.end() && *found != pools.back();
    });
}

bool Slots::is_missing(std::uint16_t slot) const {
    const auto found = rows_.find(slot);
    return found == rows_.end() || found->second.state == fop::ListedSlotState::kMissing;
}

std::uint16_t Slots::locality_of(std::uint16_t slot) const {
    const auto found = rows_.find(slot);
    return found == rows_.end() ? std::uint16_t{0} : found->second.locality;
}

// -- new objects --

Task<Outcome<fop::Fid>> Slots::make_object(std::string pool, const Attempt* attempt, Wait wait) {
    Duration pause = kRetryPauseMin;
    for (unsigned tries = 1;; ++tries) {
        std::string wanted = pool;
        auto made = co_await try_slots(std::move(wanted), attempt, wait);
        const bool is_full = !made && made.error().status == fop::Status::kStagingFull;
        if (is_full) {
            if (after(reactor().now(), pause) > wait.deadline) co_return made;
            const auto slept = co_await reactor().sleep_for(pause, wait.cancel);
            if (!slept) co_return failed(slept.error());
            pause = std::min(pause * 2, kRetryPauseMax);
            tries = 0;
            continue;
        }
        const bool is_final = made || !may_have_moved(made.error()) || tries == kSlotTries;
        if (is_final) co_return made;
        is_outdated_ = true;
    }
}

Task<Outcome<fop::Fid>> Slots::try_slots(std::string pool, const Attempt* attempt, Wait wait) {
    auto loaded = co_await load_for_new_object(wait);
    if (!loaded) co_return std::unexpected(std::move(loaded.error()));
    Outcome<fop::Fid> made = std::unexpected(no_slot(pool));
    std::optional<Problem> full;  // A disk on which room is being made.
    const std::vector<std::uint16_t> slots = slots_for(pool);
    for (const std::uint16_t slot : slots) {
        made = co_await (*attempt)(slot);
        if (made) co_return made;
        const Problem& problem = made.error();
        if (problem.status == fop::Status::kStagingFull) {
            full = problem;
        } else if (problem.status != fop::Status::kNoSpace && !may_have_moved(problem)) {
            co_return made;
        }
    }
    if (full) co_return std::unexpected(*std::move(full));
    co_return made;
}

// The pool's slots that take new objects; each call begins with the next one.
std::vector<std::uint16_t> Slots::slots_for(const std::string& pool) {
    std::vector<std::uint16_t> slots;
    for (const auto& [slot, row] : rows_) {
        if (row.state == fop::ListedSlotState::kOnline && row.is_of(pool)) slots.push_back(slot);
    }
    if (slots.empty()) return slots;
    std::ranges::rotate(slots, slots.begin() + static_cast<std::ptrdiff_t>(turn_++ % slots.size()));
    return slots;
}

// The reason why slots_for() is empty.
Problem Slots::no_slot(const std::string& pool) const {
    if (std::string fault = fault_of_name("pool", pool); !fault.empty()) {
        return {.status = fop::Status::kMalformed, .words = std::move(fault)};
    }
    const bool has_disks =
        std::ranges::any_of(rows_, [&](const auto& each) { return each.second.is_of(pool); });
    if (has_disks) {
        std::string words = "no disk of " +
                            (pool.empty() ? "the default pool" : "pool " + core::printable(pool)) +
                            " takes new objects now";
        const char* mark = ": ";
        const auto add = [&](fop::ListedSlotState state, const char* what) {
            const auto count = std::ranges::count_if(rows_, [&](const auto& each) {
                return each.second.state == state && each.second.is_of(pool);
            });
            if (count == 0) return;
            words += mark + std::to_string(count) + what;
            mark = ", ";
        };
        add(fop::ListedSlotState::kReadOnly, " read-only");
        add(fop::ListedSlotState::kMissing, " missing");
        return {.status = fop::Status::kReadOnly, .words = std::move(words)};
    }
    return {.status = fop::Status::kWrongPool, .words = "there is no such pool, or no disk in it"};
}

}  // namespace fopd::client

#include "sim/simulated_client.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <vector>

#include "core/crc32c.h"
#include "core/gate.h"
#include "sim/client_host.h"
#include "sim/lent_memory.h"
#include "sim/simulated_node.h"

namespace fopd::sim {

namespace {

// How long a cancelled call waits for the server to release its memory; after that, its connection
// ends.
constexpr Duration kGrace = 5s + 100ms;
constexpr std::size_t kInlineMax = 12U << 10;
constexpr std::array<std::string_view, 3> kJobs{"", "copy", "train"};

const fop::FopType& ping() {
    return *fop::find_fop_type("ping");
}
const fop::FopType& echo() {
    return *fop::find_fop_type("echo");
}
const fop::FopType& bulk_echo() {
    return *fop::find_fop_type("bulk_echo");
}

// Cancels a source after a while, unless destroyed earlier.
class LateCancel final : core::Timer {
public:
    LateCancel(core::Reactor& reactor, Duration after_span) : Timer(&on_time) {
        if (after_span.count() > 0) reactor.arm(*this, after(reactor.now(), after_span));
    }
    core::CancelSource& source() { return source_; }

private:
    static void on_time(core::Timer& timer) { static_cast<LateCancel&>(timer).source_.cancel(); }
    core::CancelSource source_;
};

void fill(std::span<std::byte> bytes, core::Random& random) {
    std::uint64_t number = 0;
    for (; bytes.size() >= sizeof number; bytes = bytes.subspan(sizeof number)) {
        number = random.next();
        std::memcpy(bytes.data(), &number, sizeof number);
    }
    if (bytes.empty()) return;
    number = random.next();
    std::memcpy(bytes.data(), &number, bytes.size());
}

}  // namespace

// A library client for one node.
struct SimulatedClient::Line {
    std::uint32_t node;
    std::uint64_t number;
    std::unique_ptr<fabric::Client> client;
    Instant connected_at{};  // When it was last seen connected, or was created.
    std::uint64_t last_session = 0;
    std::uint64_t incarnation = 0;  // The server's incarnation in that session.
    std::uint64_t lives_seen = 0;   // Incarnations of the server seen so far.
    core::Gate calls;
    bool closing = false;
};

// The state that a kill -9 destroys.
struct SimulatedClient::Process {
    Process(core::VirtualWorld& world, const SimulatedClientOptions& options)
        : reactor(world.make_reactor()),
          random(world.random().fork()),
          events(world),
          entropy(random.next()),
          host(*reactor, events, entropy,
               client_host_options(options.name, options.network->protection())) {}

    core::Gate gate;
    core::Gate talks;
    LentMemory memory;
    std::unique_ptr<core::Reactor> reactor;
    core::Random random;
    RecordedEvents events;
    core::SeededEntropy entropy;
    fabric::SessionHost host;
    std::list<Line> lines;
    core::CancelSource leave;
    std::uint32_t visits = 0;
    bool ended = false;
};

struct SimulatedClient::Outcome {
    const CallBook::Entry* entry;
    const Line* line;
    const Wish* wish;
    const Result<fabric::Answer>* answer;
    bool cancelled;
    bool overdue;
    bool same_life;
};

SimulatedClient::SimulatedClient(core::VirtualWorld& world, SimulatedClientOptions options)
    : world_(world), options_(std::move(options)), book_(*options_.book) {}

SimulatedClient::~SimulatedClient() {
    if (running()) crash();
}

void SimulatedClient::start() {
    ENSURE(!running());
    process_ = std::make_unique<Process>(world_, options_);
    process_->reactor->spawn(process_->gate, live(process_.get()));
}

void SimulatedClient::crash() {
    if (!running()) return;
    process_->reactor->drop_coroutines();
    process_.reset();
}

void SimulatedClient::leave() {
    if (running()) process_->leave.cancel();
}

void SimulatedClient::bury() {
    if (running() && process_->ended && process_->gate.count() == 0) process_.reset();
}

void SimulatedClient::look() {
    if (!running()) return;
    for (Line& line : process_->lines) {
        if (line.client->open()) look_at(line);
    }
}

void SimulatedClient::look_at(Line& line) {
    const fabric::Session& session = line.client->session();
    line.connected_at = world_.now();
    if (session.id() == line.last_session) return;
    line.last_session = session.id();
    book_.learn_session(session.id(), line.number);
    const std::uint64_t incarnation = session.accepted().incarnation;
    if (line.incarnation != 0 && incarnation != line.incarnation) ++line.lives_seen;
    line.incarnation = incarnation;
}

Duration SimulatedClient::longest_disconnection() const {
    Duration longest{0};
    if (!running()) return longest;
    for (const Line& line : process_->lines) {
        if (line.closing || line.client->open()) continue;
        longest = std::max(longest, Duration(world_.now() - line.connected_at));
    }
    return longest;
}

bool SimulatedClient::visiting() const {
    return running() && process_->visits > 0;
}

// -- the client's life --

Task<void> SimulatedClient::live(Process* process) {
    const auto opened = process->host.open(options_.network->transport());
    if (!opened) book_.break_promise(options_.name + " has no network");
    if (!options_.quiet) {
        for (std::uint32_t i = 0; i < options_.lines; ++i) {
            process->reactor->spawn(process->talks, talk(process));
        }
    }
    while (!process->leave.cancelled()) {
        [[maybe_unused]] const auto slept =
            co_await process->reactor->sleep_until(kNever, &process->leave);
    }
    co_await process->talks.close(*process->reactor);
    if (!process->host.at_rest()) {
        book_.break_promise(options_.name + " has left, and sessions, credits or buffers have not");
    }
    co_await process->host.close();
    if (!process->memory.untouched()) {
        book_.break_promise(options_.name + " had its memory touched that it had not lent");
    }
    const fabric::HostStatistics& seen = process->host.statistics();
    if (seen.broken.get() + seen.garbage.get() + seen.unsealed.get() > 0) {
        book_.break_promise(options_.name + " has seen the protocol broken");
    }
    process->ended = true;
}

SimulatedClient::Line& SimulatedClient::add_line(Process& process, std::uint32_t node) {
    Line& line = process.lines.emplace_back();
    line.node = node;
    line.connected_at = world_.now();
    line.number = (std::uint64_t{options_.index} << 32) | ++line_count_;
    fabric::ClientOptions options;
    options.server = options_.network->address_of("node-" + std::to_string(node), 1);
    line.client = std::make_unique<fabric::Client>(process.host, options);
    line.client->start();
    return line;
}

Task<void> SimulatedClient::hang_up(Process* process, Line* line) {
    // Usually waits for its calls, sometimes not.
    if (process->random.below(8) > 0) co_await line->calls.close(*process->reactor);
    line->closing = true;
    co_await line->client->close();
    co_await line->calls.close(*process->reactor);
    process->lines.remove_if([line](const Line& each) { return &each == line; });
    if (!process->memory.untouched()) {
        book_.break_promise(options_.name + " had its memory touched that it had not lent");
    }
}

Task<void> SimulatedClient::talk(Process* process) {
    while (!process->leave.cancelled()) {
        Line& line =
            add_line(*process, static_cast<std::uint32_t>(process->random.below(options_.nodes)));
        co_await make_rounds(process, &line);
        co_await hang_up(process, &line);
    }
}

Task<void> SimulatedClient::make_rounds(Process* process, Line* line) {
    const std::uint64_t rounds = 1 + process->random.below(60);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        // Usually a few calls, sometimes more than one message can hold.
        const std::uint64_t calls =
            1 + process->random.below(process->random.below(16) == 0 ? 24 : 3);
        for (std::uint64_t i = 0; i < calls; ++i) {
            process->reactor->spawn(line->calls, make_call(process, line, draw_wish(*process)));
        }
        const Duration pause{process->random.between(0, options_.pause_max.count())};
        const auto slept = co_await process->reactor->sleep_for(pause, &process->leave);
        if (!slept) co_return;
    }
}

SimulatedClient::Wish SimulatedClient::draw_wish(Process& process) const {
    core::Random& random = process.random;
    Wish wish;
    const std::uint64_t kind = random.below(8);
    if (kind == 0) {
        wish.type = &ping();
    } else if (kind < 4) {
        wish.type = &echo();
        // One in thirty-two is too large.
        const bool too_large = random.below(32) == 0;
        wish.bytes = too_large ? kInlineMax + 1 + random.below(8U << 10)
                               : random.below(random.below(4) == 0 ? kInlineMax + 1 : 512);
    } else {
        wish.type = &bulk_echo();
        wish.bytes = 1 + random.below(random.below(32) == 0 ? 640U << 10 : 16U << 10);
    }
    wish.timeout = Duration{random.below(8) == 0
                                ? random.between(1, Duration(20ms).count())
                                : random.between(Duration(1s).count(), Duration(40s).count())};
    if (random.below(8) == 0) {
        wish.cancel_after = Duration{random.between(
            1, random.below(2) == 0 ? Duration(10ms).count() : wish.timeout.count())};
    }
    return wish;
}

// -- calls requested by a test --

void SimulatedClient::visit_all(Duration patience) {
    for (std::uint32_t node = 0; node < options_.nodes; ++node) {
        ++process_->visits;
        process_->reactor->spawn(process_->talks, visit(process_.get(), node, patience));
    }
}

Task<void> SimulatedClient::visit(Process* process, std::uint32_t node, Duration patience) {
    Wish wish{.type = &ping(), .timeout = patience, .must_be_done = true};
    co_await call_once(process, node, wish);
    wish.bytes = 1000;
    wish.type = &echo();
    co_await call_once(process, node, wish);
    wish.type = &bulk_echo();
    co_await call_once(process, node, wish);
    --process->visits;
}

void SimulatedClient::call(std::uint32_t node, Wish wish) {
    process_->reactor->spawn(process_->talks, call_once(process_.get(), node, wish));
}

Task<void> SimulatedClient::call_once(Process* process, std::uint32_t node, Wish wish) {
    Line& line = add_line(*process, node);
    co_await make_call(process, &line, wish);
    co_await hang_up(process, &line);
}

Task<void> SimulatedClient::make_call(Process* process, Line* line, Wish wish) {
    LentMemory::Loan lent(process->memory, wish.bytes);
    fill(lent.source(), process->random);
    const std::uint32_t crc = core::crc32c(lent.source());
    LateCancel late(*process->reactor, wish.cancel_after);
    const std::uint64_t life = options_.life_of(line->node);
    if (line->client->open()) look_at(*line);
    const std::uint64_t lives_seen = line->lives_seen;
    const std::uint64_t reconnects = line->client->reconnects();
    const Instant deadline = after(process->reactor->now(), wish.timeout);

    fabric::CallRequest request{.type = wish.type, .deadline = deadline, .cancel = &late.source()};
    request.header.job = kJobs[process->random.below(kJobs.size())];
    if (wish.type == &ping()) {
        request.body = fop::Ping{};
    } else if (wish.type == &echo()) {
        request.body = fop::Echo{};
        request.payload = lent.source();
        request.reply_into = lent.target();
    } else {
        request.body = fop::BulkEcho{.source = {}, .target = {}, .bytes = wish.bytes};
        request.source = lent.source();
        request.target = lent.target();
    }
    CallBook::Entry entry(book_,
                          options_.name + "'s " + std::string(wish.type->name) + " of node-" +
                              std::to_string(line->node),
                          after(deadline, kGrace));
    const auto answer = co_await line->client->call(request);

    judge_memory(entry, lent.guards_untouched() && core::crc32c(lent.source()) == crc);
    const bool done = answer && answer->status == fop::Status::kDone;
    if (done) {
        bool right = std::ranges::equal(lent.source(), lent.target());
        if (const auto* bulk = std::get_if<fop::BulkEchoReply>(&answer->body)) {
            // TCP does not confirm that pushed bytes have arrived. The reply of a fop that must not
            // run twice may be remembered, and the bytes lost with the session.
            const bool may_be_lost =
                options_.network->sockets() != nullptr && line->client->reconnects() != reconnects;
            right = (right || may_be_lost) && bulk->bytes == wish.bytes && bulk->crc == crc;
        } else {
            right = right && answer->payload_bytes == wish.bytes;
        }
        right = right && answer->body.index() == fop::body_index(*wish.type);
        if (!right) book_.break_promise(entry.what() + " has a wrong answer");
    }
    // The node may have restarted long before the client notices.
    if (line->client->open()) look_at(*line);
    const Outcome outcome{
        .entry = &entry,
        .line = line,
        .wish = &wish,
        .answer = &answer,
        .cancelled = late.source().cancelled(),
        .overdue = process->reactor->now() >= deadline - fabric::answer_margin(wish.timeout),
        .same_life =
            life != 0 && life == options_.life_of(line->node) && lives_seen == line->lives_seen};
    entry.end(judge(outcome));
}

void SimulatedClient::judge_memory(const CallBook::Entry& entry, bool kept) {
    if (!kept) book_.break_promise(entry.what() + " changed memory that it must not change");
}

std::string_view SimulatedClient::judge(const Outcome& outcome) {
    const Result<fabric::Answer>& answer = *outcome.answer;
    const bool too_large = outcome.wish->type == &echo() && outcome.wish->bytes > kInlineMax;
    bool lawful = false;
    std::string_view word;
    if (answer) {
        word = fop::to_string(answer->status);
        switch (answer->status) {
            case fop::Status::kDone: lawful = !too_large; break;
            case fop::Status::kTryAgain:
            case fop::Status::kBusy: lawful = true; break;
            case fop::Status::kTimedOut: lawful = outcome.overdue; break;
            case fop::Status::kTooLarge: lawful = too_large; break;
            case fop::Status::kOutcomeUnknown:
                lawful = outcome.wish->type->repeat == fop::Repeat::kOnce && !outcome.same_life;
                break;
            default: break;
        }
    } else {
        word = to_string(answer.error().code);
        switch (answer.error().code) {
            case Errc::kTimedOut: lawful = outcome.overdue; break;
            case Errc::kCancelled: lawful = outcome.cancelled; break;
            case Errc::kClosed: lawful = outcome.line->closing; break;
            case Errc::kInvalid: lawful = too_large; break;
            default: break;
        }
    }
    if (outcome.wish->must_be_done && !(answer && answer->status == fop::Status::kDone)) {
        lawful = false;
    }
    if (!lawful) {
        book_.break_promise(outcome.entry->what() + " ended with \"" + std::string(word) +
                            "\": " + (answer ? answer->words : describe(answer.error())));
    }
    return word;
}

}  // namespace fopd::sim

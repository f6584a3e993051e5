#include "sim/object_user.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "core/entropy.h"
#include "core/gate.h"
#include "sim/client_host.h"
#include "sim/simulated_node.h"

namespace fopd::sim {

namespace {

using Kind = ObjectWish::Kind;

constexpr std::uint64_t kFar = 1ULL << 40;
// How long the removal of a replaced object may take.
constexpr int kGoneTries = 200;
constexpr Duration kGonePause = 100ms;
constexpr Duration kImpatience = 20ms;  // The longest deadline of an impatient call.
// A call is repeated for at least this long while the node answers "try again".
const Duration kRepeatedMin = client::ObjectClientOptions{}.patience - client::kRetryPauseMax;

std::string name_of(std::uint64_t number) {
    return "object-" + std::to_string(number);
}

}  // namespace

// The state that a kill -9 destroys.
struct ObjectUser::Process {
    Process(core::VirtualWorld& world, const ObjectUserOptions& options)
        : reactor(world.make_reactor()),
          random(world.random().fork()),
          events(world),
          entropy(random.next()),
          host(*reactor, events, entropy,
               client_host_options(options.name, options.network->protection())),
          left(*reactor),
          life(options.book->begin_life()) {
        client::ObjectClientOptions made;
        made.server = options.network->address_of(options.server, 1);
        made.fop_bytes = options.fop_bytes;
        made.held_bytes_max = options.held_bytes_max;
        made.window = 4;
        objects = std::make_unique<client::ObjectClient>(host, std::move(made));
    }

    core::Gate gate;
    core::Gate jobs;
    std::unique_ptr<core::Reactor> reactor;
    core::Random random;
    RecordedEvents events;
    core::SeededEntropy entropy;
    fabric::SessionHost host;
    std::unique_ptr<client::ObjectClient> objects;
    core::WaitQueue left;
    const std::uint32_t life;
    bool leaving = false;
    bool ended = false;
};

ObjectUser::ObjectUser(core::VirtualWorld& world, ObjectUserOptions options)
    : world_(world), options_(std::move(options)), book_(*options_.book) {}

ObjectUser::~ObjectUser() {
    if (running()) crash();
}

void ObjectUser::start() {
    ENSURE(!running());
    process_ = std::make_unique<Process>(world_, options_);
    const auto opened = process_->host.open(options_.network->transport());
    ENSURE(opened.has_value());
    process_->objects->start();
    process_->reactor->spawn(process_->gate, live(process_.get()));
}

void ObjectUser::crash() {
    if (!running()) return;
    book_.end_life(process_->life);
    process_->reactor->drop_coroutines();
    process_.reset();
}

void ObjectUser::stop(Instant until) {
    ENSURE(running());
    world_.stall(*process_->reactor, until);
}

void ObjectUser::leave() {
    ENSURE(idle());
    process_->leaving = true;
    process_->left.wake_all();
}

void ObjectUser::bury() {
    if (running() && process_->ended && process_->gate.count() == 0) process_.reset();
}

bool ObjectUser::idle() const {
    return !running() || process_->jobs.count() == 0;
}

Task<void> ObjectUser::live(Process* process) {
    while (!process->leaving) {
        // No deadline: runs until it is told to end.
        [[maybe_unused]] const auto told = co_await process->left.wait({});
    }
    co_await process->objects->close();
    if (!process->host.at_rest()) {
        book_.break_promise(options_.name + " has left, and sessions, credits or buffers have not");
    }
    co_await process->host.close();
    process->ended = true;
}

// -- tasks --

void ObjectUser::work(std::uint32_t count) {
    process_->reactor->spawn(process_->jobs, work_through(process_.get(), count));
}

void ObjectUser::sync() {
    process_->reactor->spawn(process_->jobs, sync_once(process_.get()));
}

void ObjectUser::look_at_all() {
    process_->reactor->spawn(process_->jobs, look_everywhere(process_.get()));
}

void ObjectUser::remove_all() {
    process_->reactor->spawn(process_->jobs, remove_everything(process_.get()));
}

void ObjectUser::read_all() {
    process_->reactor->spawn(process_->jobs, read_everything(process_.get()));
}

void ObjectUser::make(ObjectWish wish) {
    process_->reactor->spawn(process_->jobs, carry_out(process_.get(), std::move(wish)));
}

void ObjectUser::sync_tape() {
    CallWait wait;
    wait.begun = world_.now();
    process_->reactor->spawn(process_->jobs,
                             ask_tape(process_.get(), {.kind = Kind::kSyncTape}, wait));
}

Task<void> ObjectUser::work_through(Process* process, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
        ObjectWish wish = options_.tapes    ? draw_tape_wish(*process)
                          : options_.shares ? draw_shared_wish(*process)
                                            : draw_wish(*process);
        co_await carry_out(process, std::move(wish));
        ++done_;
    }
}

fop::Range ObjectUser::draw_range(core::Random& random) const {
    const std::uint64_t kind = random.below(8);
    std::uint64_t offset = random.below(options_.object_bytes);
    if (kind < 2) offset = offset / fop::kBlockBytes * fop::kBlockBytes;
    if (random.below(16) == 0 && !options_.tapes) offset += kFar;
    std::uint64_t length = 1 + random.below(kind < 6 ? 6000 : options_.object_bytes / 2);
    if (kind == 0) length = fop::kBlockBytes * (1 + random.below(3));
    return {.offset = offset, .length = length};
}

ObjectWish ObjectUser::draw_wish(Process& process) const {
    core::Random& random = process.random;
    ObjectWish wish;
    const std::uint64_t draw = random.below(100);
    const auto known = book_.draw(random);
    wish.name = name_of(random.below(options_.names));
    wish.range = draw_range(random);
    wish.mode = 0600 + static_cast<std::uint16_t>(random.below(0100));
    if (draw < 12 || !known.fid.is_set()) {
        wish.kind = random.below(2) == 0 ? Kind::kCreate : Kind::kPut;
        wish.no_replace = random.below(3) > 0;
        if (wish.kind == Kind::kCreate) wish.range = {};
        wish.range.offset = 0;
        return wish;
    }
    wish.fid = known.fid;
    if (draw < 16) {
        wish.kind = Kind::kRename;
        wish.from = known.name;
        wish.no_replace = random.below(2) == 0;
        return wish;
    }
    const std::string name = std::exchange(wish.name, {});
    if (options_.tears && draw >= 40 && draw < 55) {
        wish.kind = draw < 47 ? Kind::kTruncate : Kind::kPunch;
        if (wish.kind == Kind::kTruncate) wish.range.length = fop::kOffsetMax - wish.range.offset;
    } else if (draw < 19) {
        wish.kind = Kind::kRemove;
        wish.from = known.name;
    } else if (draw < 24) {
        wish.kind = Kind::kLookup;
        wish.fid = {};
        wish.name = name;
    } else if (draw < 27) {
        wish.kind = Kind::kList;
        wish.fid = {};
    } else if (draw < 31) {
        wish.kind = Kind::kStat;
    } else if (draw < 33) {
        wish.kind = Kind::kSetMode;
    } else if (draw < 55) {
        wish.kind = Kind::kRead;
    } else if (draw < 82) {
        wish.kind = Kind::kWrite;
        if (random.below(2) == 0) wish.durability = fop::Durability::kBuffered;
    } else if (draw < 90) {
        wish.kind = Kind::kAppend;
        wish.range = {.offset = 0, .length = 16 + wish.range.length};
    } else if (draw < 93) {
        wish.kind = Kind::kTruncate;
        wish.range.length = fop::kOffsetMax - wish.range.offset;
    } else if (draw < 96) {
        wish.kind = Kind::kPunch;
    } else {
        wish.kind = Kind::kSync;
    }
    return wish;
}

// Operations of several clients on the bytes of few objects.
ObjectWish ObjectUser::draw_shared_wish(Process& process) const {
    core::Random& random = process.random;
    const auto known = book_.draw(random);
    const std::uint64_t draw = random.below(100);
    if (!known.fid.is_set() || draw < 4) return draw_wish(process);
    ObjectWish wish{.fid = known.fid};
    wish.range.offset = random.below(options_.object_bytes);
    wish.range.length = 1 + random.below(options_.object_bytes / 4);
    if (random.below(2) == 0) {
        wish.range.offset = wish.range.offset / fop::kBlockBytes * fop::kBlockBytes;
    }
    if (draw < 44) {
        wish.kind = Kind::kWrite;
        wish.durability = fop::Durability::kBuffered;
    } else if (draw < 56) {
        wish.kind = Kind::kWrite;
    } else if (draw < 61) {
        wish.kind = Kind::kAppend;
        wish.range = {.offset = 0, .length = 16 + wish.range.length};
    } else if (draw < 66) {
        wish.kind = Kind::kTruncate;
        wish.range.length = fop::kOffsetMax - wish.range.offset;
    } else if (draw < 71) {
        wish.kind = Kind::kPunch;
    } else if (draw < 90) {
        wish.kind = Kind::kRead;
    } else if (draw < 94) {
        wish.kind = Kind::kStat;
    } else {
        wish = {.kind = Kind::kSync};
    }
    return wish;
}

ObjectWish ObjectUser::draw_tape_wish(Process& process) const {
    core::Random& random = process.random;
    const std::uint64_t draw = random.below(100);
    if (draw >= 44) return draw_wish(process);
    const auto known = book_.draw(random);
    if (!known.fid.is_set()) return draw_wish(process);
    if (draw < 10) return {.kind = Kind::kStage, .fid = known.fid};
    if (draw < 32) return {.kind = Kind::kRelease, .fid = known.fid};
    if (draw < 36) return {.kind = Kind::kCancelRecall, .fid = known.fid};
    return {.kind = Kind::kSyncTape};
}

// -- executing calls --

ObjectUser::Ended ObjectUser::failed(const Process& process, const client::Problem& problem,
                                     CallWait wait) {
    if (problem.lost) book_.tell_lost(process.life, *problem.lost);
    return {.problem = problem,
            .limited = wait.deadline != kNever,
            .overdue = wait.deadline != kNever &&
                       world_.now() >= wait.deadline - fabric::answer_margin(kImpatience),
            .repeated_long = world_.now() - wait.begun >= kRepeatedMin,
            .tapes_excused = book_.are_tapes_excused(wait.begun),
            .cartridges_excused = book_.are_cartridges_excused(wait.begun)};
}

Task<void> ObjectUser::carry_out(Process* process, ObjectWish wish) {
    core::Random& random = process->random;
    CallWait wait;
    wait.begun = world_.now();
    if (options_.impatient && random.below(8) == 0) {
        wait.deadline = after(world_.now(), Duration{random.between(1, kImpatience.count())});
    }
    switch (wish.kind) {
        case Kind::kSync: co_return co_await sync_once(process);
        case Kind::kLookup:
        case Kind::kStat: co_return co_await look(process, std::move(wish), wait);
        case Kind::kList: co_return co_await list(process, std::move(wish), wait);
        case Kind::kRead: co_return co_await read(process, std::move(wish), wait);
        case Kind::kWrite: co_return co_await write(process, std::move(wish), wait);
        case Kind::kStage:
        case Kind::kRelease:
        case Kind::kCancelRecall:
        case Kind::kSyncTape: co_return co_await ask_tape(process, std::move(wish), wait);
        default: co_return co_await change(process, std::move(wish), wait);
    }
}

Task<void> ObjectUser::sync_once(Process* process) {
    for (bool tells = true; tells;) {
        const auto sync = book_.begin_sync(process->life);
        CallWait wait;
        wait.begun = world_.now();
        const auto synced = co_await process->objects->sync(wait);
        // Each error reports the losses of one object.
        tells = !synced && synced.error().lost;
        Ended ended;
        if (!synced) ended = failed(*process, synced.error(), wait);
        book_.end_sync(sync, ended);
    }
}

Task<void> ObjectUser::ask_tape(Process* process, ObjectWish wish, CallWait wait) {
    client::TapeCalls& tape = process->objects->tape();
    ObjectLook seen = book_.begin_look(process->life);
    Ended ended;
    if (wish.kind == Kind::kStage) {
        client::TapeCalls::StageWish stage{.fid = wish.fid};
        if (process->random.below(4) == 0) stage.pin = 30s;
        const auto staged = co_await tape.stage(stage, wait);
        if (!staged) ended = failed(*process, staged.error(), wait);
        co_return book_.end_look(seen, wish, ended);
    }
    if (wish.kind == Kind::kCancelRecall) book_.begin_cancel(wish.fid);
    Task<client::Outcome<void>> task = wish.kind == Kind::kRelease ? tape.release(wish.fid, wait)
                                       : wish.kind == Kind::kCancelRecall
                                           ? tape.cancel(wish.fid, wait)
                                           : tape.sync(options_.pool, wait);
    const auto done = co_await std::move(task);
    if (!done) ended = failed(*process, done.error(), wait);
    book_.end_look(seen, wish, ended);
}

Task<void> ObjectUser::look(Process* process, ObjectWish wish, CallWait wait) {
    client::ObjectClient& objects = *process->objects;
    ObjectLook seen = book_.begin_look(process->life);
    Task<client::Outcome<client::ObjectInfo>> task =
        wish.kind == Kind::kStat ? objects.stat(wish.fid, wait)
                                 : objects.lookup(options_.pool, wish.name, wait);
    const auto info = co_await std::move(task);
    if (info) {
        book_.end_stat(seen, wish, *info);
    } else {
        book_.end_look(seen, wish, failed(*process, info.error(), wait));
    }
}

Task<void> ObjectUser::list(Process* process, ObjectWish wish, CallWait wait) {
    const auto count_max = static_cast<std::uint16_t>(process->random.below(4));
    for (;;) {
        ObjectLook seen = book_.begin_look(process->life);
        client::ObjectClient::ListWish wanted;
        wanted.pool = options_.pool;
        wanted.cursor = wish.from;
        wanted.count_max = count_max;
        auto task = process->objects->list(std::move(wanted), wait);
        const auto page = co_await std::move(task);
        if (!page) co_return book_.end_look(seen, wish, failed(*process, page.error(), wait));
        book_.end_list(seen, wish, *page);
        if (page->end) co_return;
        wish.from = page->cursor;
    }
}

// The parts of a range that one fop each reads or writes.
std::vector<fop::Range> ObjectUser::parts_of(const fop::Range& range) const {
    std::vector<fop::Range> parts;
    for (std::uint64_t at = range.offset; at < range.end();) {
        const std::uint64_t end =
            std::min(range.end(), (at / options_.fop_bytes + 1) * options_.fop_bytes);
        parts.push_back({.offset = at, .length = end - at});
        at = end;
    }
    return parts;
}

Task<void> ObjectUser::read(Process* process, ObjectWish wish, CallWait wait) {
    std::vector<std::byte> into(wish.range.length);
    const ObjectLook seen = book_.begin_look(process->life);
    const auto count = co_await process->objects->read(wish.fid, wish.range.offset, into, wait);
    if (!count) {
        ObjectLook failed_look = seen;
        co_return book_.end_look(failed_look, wish, failed(*process, count.error(), wait));
    }
    // After a short range, later bytes did not exist at the time of that read.
    for (const fop::Range& range : parts_of(wish.range)) {
        ObjectLook each = seen;
        ObjectWish part = wish;
        part.range = range;
        const std::uint64_t at = range.offset - wish.range.offset;
        const std::uint64_t there = std::min(range.length, *count - at);
        book_.end_read(each, part, std::span(into).subspan(at, there));
        if (there < range.length) break;
    }
}

Task<void> ObjectUser::write(Process* process, ObjectWish wish, CallWait wait) {
    std::vector<std::byte> bytes(wish.range.length);
    std::vector<ObjectBook::Change*> changes;
    for (const fop::Range& range : parts_of(wish.range)) {
        ObjectWish part = wish;
        part.range = range;
        changes.push_back(&book_.begin(process->life, part));
        const auto target =
            std::span(bytes).subspan(range.offset - wish.range.offset, range.length);
        changes.back()->fill(target);
    }
    const client::ObjectClient::WriteWish wanted{
        .fid = wish.fid, .offset = wish.range.offset, .from = bytes, .durability = wish.durability};
    const auto written = co_await process->objects->write(wanted, wait);
    Ended ended;
    if (!written) ended = failed(*process, written.error(), wait);
    for (ObjectBook::Change* const each : changes) book_.end(*each, ended);
}

std::string ObjectUser::collection_of(const std::string& name) const {
    if (options_.collections == 0 || name.empty()) return {};
    const auto last = static_cast<unsigned char>(name.back());
    const std::uint32_t number = last % (options_.collections + 1);
    return number == 0 ? std::string() : "run-" + std::to_string(number);
}

Task<void> ObjectUser::change(Process* process, ObjectWish wish, CallWait wait) {
    client::ObjectClient& objects = *process->objects;
    ObjectBook::Change& begun = book_.begin(process->life, wish);
    const bool has_bytes = wish.kind == Kind::kPut || wish.kind == Kind::kAppend;
    std::vector<std::byte> bytes(has_bytes ? wish.range.length : 0);
    begun.fill(bytes);
    Ended ended;
    if (wish.kind == Kind::kCreate || wish.kind == Kind::kPut) {
        client::NewObject made;
        made.pool = options_.pool;
        made.name = wish.name;
        made.mode = wish.mode;
        made.collection = collection_of(wish.name);
        made.no_replace = wish.no_replace;
        auto task = wish.kind == Kind::kPut ? objects.put(std::move(made), bytes, wait)
                                            : objects.create(std::move(made), wait);
        const auto fid = co_await std::move(task);
        if (fid) {
            ended.fid = *fid;
        } else {
            ended = failed(*process, fid.error(), wait);
        }
        co_return book_.end(begun, ended);
    }
    if (wish.kind == Kind::kAppend) {
        const auto offset = co_await objects.append(wish.fid, bytes, wait);
        if (offset) {
            ended.offset = *offset;
        } else {
            ended = failed(*process, offset.error(), wait);
        }
        co_return book_.end(begun, ended);
    }
    Task<client::Outcome<void>> task = [&] {
        client::ObjectClient::AttributeWish attributes;
        client::ObjectClient::RenameWish rename;
        switch (wish.kind) {
            case Kind::kRename:
                rename.fid = wish.fid;
                rename.pool = options_.pool;
                rename.from = wish.from;
                rename.name = wish.name;
                rename.no_replace = wish.no_replace;
                return objects.rename(std::move(rename), wait);
            case Kind::kRemove: return objects.remove(wish.fid, wish.from, wait);
            case Kind::kTruncate: return objects.truncate(wish.fid, wish.range.offset, wait);
            case Kind::kPunch: return objects.punch(wish.fid, wish.range, wait);
            default:
                attributes.mode = wish.mode;
                return objects.set_attributes(wish.fid, std::move(attributes), wait);
        }
    }();
    const auto changed = co_await std::move(task);
    if (!changed) ended = failed(*process, changed.error(), wait);
    book_.end(begun, ended);
}

// -- at rest --

Task<void> ObjectUser::look_everywhere(Process* process) {
    client::ObjectClient& objects = *process->objects;
    std::vector<ObjectBook::Found> found;
    std::vector<fop::Fid> there;
    std::string cursor;
    for (bool end = false; !end;) {
        client::ObjectClient::ListWish wanted;
        wanted.pool = options_.pool;
        wanted.cursor = cursor;
        auto task = objects.list(std::move(wanted), {});
        const auto page = co_await std::move(task);
        if (!page) co_return book_.break_promise("list at rest: " + page.error().words);
        for (const auto& entry : page->entries) there.push_back(entry.fid);
        cursor = page->cursor;
        end = page->end;
    }
    for (std::size_t i = 0; i < there.size(); ++i) {
        const auto info = co_await objects.stat(there[i], {});
        if (!info) co_return book_.break_promise("stat at rest: " + info.error().words);
        found.push_back({.info = *info, .bytes = {}});
        std::vector<fop::Range> ranges = book_.written_ranges(there[i]);
        // For an object unknown to the book, its beginning is read.
        if (ranges.empty()) ranges.push_back({.offset = 0, .length = 2 * options_.object_bytes});
        for (std::size_t j = 0; j < ranges.size(); ++j) {
            if (ranges[j].length == 0) continue;
            std::vector<std::byte> into(ranges[j].length);
            const auto count = co_await objects.read(there[i], ranges[j].offset, into, {});
            if (!count) co_return book_.break_promise("read at rest: " + count.error().words);
            into.resize(*count);
            found.back().bytes.emplace_back(ranges[j].offset, std::move(into));
        }
    }
    co_await look_at_gone(process, std::move(there));
    book_.settle(found);
}

// Objects that are not in the list are removed, or will be soon.
Task<void> ObjectUser::look_at_gone(Process* process, std::vector<fop::Fid> there) {
    const std::vector<fop::Fid> all = book_.fids();
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (std::ranges::find(there, all[i]) != there.end()) continue;
        bool gone = false;
        for (int tries = 0; !gone && tries < kGoneTries; ++tries) {
            const auto info = co_await process->objects->stat(all[i], {});
            gone = !info && info.error().status == fop::Status::kNotFound;
            if (gone) break;
            [[maybe_unused]] const auto slept = co_await process->reactor->sleep_for(kGonePause);
        }
        if (!gone) book_.break_promise("an object without a name stays");
    }
}

Task<void> ObjectUser::remove_everything(Process* process) {
    for (;;) {
        client::ObjectClient::ListWish wanted;
        wanted.pool = options_.pool;
        auto task = process->objects->list(std::move(wanted), {});
        const auto page = co_await std::move(task);
        if (!page) co_return book_.break_promise("list at rest: " + page.error().words);
        for (std::size_t i = 0; i < page->entries.size(); ++i) {
            const auto& entry = page->entries[i];
            ObjectWish wish{.kind = Kind::kRemove, .fid = entry.fid, .from = entry.name};
            co_await change(process, std::move(wish), {});
        }
        if (page->entries.empty() && page->end) co_return;
    }
}

Task<void> ObjectUser::read_everything(Process* process) {
    const std::vector<fop::Fid> all = book_.fids();
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::vector<fop::Range> ranges = book_.written_ranges(all[i]);
        for (std::size_t j = 0; j < ranges.size(); ++j) {
            if (ranges[j].length == 0) continue;
            ObjectWish wish{.kind = Kind::kRead, .fid = all[i], .range = ranges[j]};
            co_await read(process, std::move(wish), {});
        }
    }
}

}  // namespace fopd::sim

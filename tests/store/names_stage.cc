#include "tests/store/names_stage.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::store::names_testing {

namespace {

constexpr Duration kPatience = 5s;

devices::DiskId id_of(unsigned disk) {
    devices::DiskId id;
    id.fill(static_cast<std::byte>(0x70 + disk));
    return id;
}

VolumeOptions small_volume(unsigned disk, std::size_t overlay_bytes) {
    return {.disk_id = id_of(disk),
            .slot = static_cast<Slot>(disk),
            .segment_blocks = 64,
            .overlay_bytes = overlay_bytes,
            .flush_interval = 3ms,
            .checkpoint_interval = 10ms};
}

Object named(std::string_view name, std::uint64_t version) {
    return {.version = 1,
            .pool = kPool,
            .owner = "alice",
            .group = "users",
            .name = name,
            .name_version = version};
}

std::string show(const Owner& owner) {
    if (!owner) return "nobody";
    return std::to_string(owner->slot()) + ":" + std::to_string(owner->low);
}

std::string show(const NameClaim& claim) {
    return claim.name + " of " + show(Owner{claim.fid}) + " in " + std::to_string(claim.version);
}

std::string show(const std::vector<NameClaim>& claims) {
    std::string text;
    for (const NameClaim& claim : claims) text += "\n  " + show(claim);
    return text;
}

// As the keys are ordered: the owner of a name before the others.
bool comes_before(const NameClaim& a, const NameClaim& b) {
    if (a.name != b.name) return a.name < b.name;
    return a.version != b.version ? a.version > b.version : a.fid < b.fid;
}

std::string name_of(std::uint64_t number) {
    return "name-" + std::to_string(number);
}

// Collects what objects claim.
class Collector final : public MapVisitor {
public:
    Result<void> object(Fid fid, const Object& object) override {
        if (object.name.empty()) return {};
        claims.push_back({.pool = object.pool,
                          .name = std::string(object.name),
                          .version = object.name_version,
                          .fid = fid});
        return {};
    }
    std::vector<NameClaim> claims;
};

}  // namespace

// The names as somebody would see them who left something out.
class Node::MutatedSink final : public NameSink {
public:
    MutatedSink(NameSink& sink, Remains& remains, Mutation mutation)
        : sink_(sink), remains_(remains), mutation_(mutation) {}

    Task<Result<std::uint64_t>> known(devices::DiskId disk) override {
        if (mutation_ == Mutation::kNotKept) co_return remains_.said_to_know[disk];
        co_return co_await sink_.known(disk);
    }
    Task<Result<void>> forget(Origin origin) override { return sink_.forget(origin); }
    Task<Result<void>> tell(const NameChanges* changes) override { return sink_.tell(changes); }
    Task<Result<void>> keep(Kept kept) override {
        if (mutation_ == Mutation::kNotKept) {
            remains_.said_to_know[kept.disk] = kept.seq;
            co_return Result<void>{};
        }
        co_return co_await sink_.keep(kept);
    }
    Task<Result<ClaimPage>> claims(Slot slot, ClaimCursor from) override {
        return sink_.claims(slot, std::move(from));
    }
    Task<Result<void>> remove_known(std::vector<NameClaim>* claims) override {
        return sink_.remove_known(claims);
    }

private:
    NameSink& sink_;
    Remains& remains_;
    const Mutation mutation_;
};

Node::Node(core::VirtualWorld& world, Remains& remains, const Plan& plan, core::Random random)
    : world_(world), remains_(remains), plan_(plan), random_(random), machine_(world) {
    core::Reactor& reactor = machine_.reactor();
    std::vector<NameSink*> sinks;
    for (unsigned part = 0; part < kParts; ++part) {
        name_indexes_[part] = std::make_unique<MapIndex>(
            MapIndex::World{.reactor = reactor, .random = random_, .delay_max = 5ms},
            remains.names[part]);
        parts_[part] = std::make_unique<NameShard>(
            NameShard::World{.reactor = reactor, .clock = world.clock()}, *name_indexes_[part],
            NameShardOptions{.part = {.shard = part, .shard_count = kParts},
                             .overlay_bytes = 256UL << 10});
        sinks.push_back(parts_[part].get());
    }
    router_ = std::make_unique<objects::NameRouter>(std::move(sinks));
    sink_ = std::make_unique<MutatedSink>(*router_, remains, plan.mutation);
    for (unsigned disk = 0; disk < kDisks; ++disk) {
        Remains::DiskRemains& left = remains.disks[disk];
        DiskParts& parts = disks_[disk];
        parts.device = machine_.plug_in(left.image, {.seed = random_.next()});
        parts.index = std::make_unique<MapIndex>(
            MapIndex::World{.reactor = reactor, .random = random_, .delay_max = 5ms}, left.index);
        parts.volume = std::make_unique<Volume>(VolumeParts{.reactor = reactor,
                                                            .device = *parts.device,
                                                            .index = *parts.index,
                                                            .events = events_,
                                                            .names = sink_.get()},
                                                small_volume(disk, plan.overlay_bytes));
    }
}

Node::~Node() {
    machine_.reactor().drop_coroutines();
}

NameShard& Node::part_of(std::string_view name) {
    return *parts_[shard_of({.pool = kPool, .name = name}, kParts)];
}

bool Node::serving() {
    return std::ranges::all_of(
        disks_, [](const DiskParts& disk) { return !disk.open || disk.volume->serving(); });
}

// -- a life --

void Node::run(std::uint64_t cut_at) {
    if (!machine_.live(live(), cut_at)) violate("the node hangs");
    machine_.drop_coroutines();
}

Task<void> Node::start(std::vector<unsigned> disks) {
    for (const auto& part : parts_) {
        const Result<void> opened = part->open();
        if (!opened) violate(std::string("names do not open: ") + opened.error().context);
    }
    for (const unsigned disk : disks) {
        Volume& volume = *disks_[disk].volume;
        bool& formatted = remains_.disks[disk].formatted;
        if (!formatted) {
            const auto made = co_await volume.format();
            ENSURE(made.has_value());
            formatted = true;
        }
        const auto opened = co_await volume.open(Volume::Mode::kServe);
        if (!opened) violate(std::string("a volume does not open: ") + opened.error().context);
        disks_[disk].open = opened.has_value();
    }
    machine_.reactor().spawn(sweepers_, sweep());
}

Task<void> Node::stop() {
    stop_.cancel();
    co_await sweepers_.close(machine_.reactor());
    for (DiskParts& disk : disks_) {
        if (!disk.open) continue;
        const auto closed = co_await disk.volume->close();
        if (!closed) violate(std::string("a volume does not close: ") + closed.error().context);
    }
}

Task<void> Node::live() {
    std::vector<unsigned> all(kDisks);
    for (unsigned disk = 0; disk < kDisks; ++disk) all[disk] = disk;
    co_await start(std::move(all));
    if (remains_.findings.none()) {
        ++remains_.recoveries;
        co_await compare();
        core::Gate gate;
        for (unsigned worker = 0; worker < kWorkers; ++worker)
            machine_.reactor().spawn(gate, work());
        co_await gate.close(machine_.reactor());
        co_await settle();
        co_await compare();
    }
    co_await stop();
}

Task<void> Node::work() {
    core::Random random = random_.fork();
    for (unsigned i = 0; i < plan_.operations && serving(); ++i) {
        std::string name = name_of(random.below(plan_.name_count));
        const std::uint64_t what = random.below(20);
        Result<void> done{};
        if (what < 8) {
            const Existing existing =
                random.below(2) == 0 ? Existing::kReplaced : Existing::kRefused;
            const auto disk = static_cast<unsigned>(random.below(kDisks));
            const auto created = co_await create(std::move(name), existing, disk);
            if (!created) done = std::unexpected(created.error());
        } else if (what < 12) {
            done = co_await remove(std::move(name), kPatience);
        } else if (what < 16) {
            std::string to = name_of(random.below(plan_.name_count));
            done = co_await rename(std::move(name), std::move(to));
        } else {
            done = co_await touch(std::move(name));
        }
        if (!done && done.error().code != Errc::kNotFound) {
            violate(std::string("an operation fails: ") + done.error().context);
            co_return;
        }
        if (random.below(3) == 0) {
            const auto slept = co_await machine_.reactor().sleep_for(
                Duration{random.between(0, Duration{2ms}.count())});
            ENSURE(slept.has_value());
        }
    }
}

// -- what is done --

// Who holds a name finds it as it was left.
Result<ReservedName> Node::as_reserved(Result<ReservedName> hold, const std::string& name) {
    if (!hold) return hold;
    const Owner owner = hold->owner() ? Owner{hold->owner()->fid} : std::nullopt;
    std::deque<Owner>& states = remains_.owners[name];
    if (states.empty()) states.push_back(std::nullopt);
    if (owner != states.back()) {
        violate(name + " belongs to " + show(owner) + ", and was given to " + show(states.back()));
        return std::unexpected(Error{.code = Errc::kCorrupt, .context = "another owner"});
    }
    return hold;
}

void Node::acknowledge(const std::string& name, Owner owner) {
    std::deque<Owner>& states = remains_.owners[name];
    while (!states.empty() && states.front() != owner) states.pop_front();
    if (states.empty()) violate("an acknowledged owner that never was");
}

Task<Result<void>> Node::commit(Fid fid, Change* change, std::uint32_t bytes) {
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), kPatience)};
    auto reserved = co_await volume_of(fid).reserve(bytes, wait);
    if (!reserved) co_return std::unexpected(reserved.error());
    co_return co_await commit(fid, change, std::move(*reserved), Durability::kDurable);
}

Task<Result<void>> Node::commit(Fid fid, Change* change, Reservation reservation,
                                Durability durability) {
    const Result<void> begun =
        volume_of(fid).begin(*change, std::move(reservation), durability, Data::kNone);
    if (!begun) co_return begun;
    const auto finished = co_await volume_of(fid).finish(change);
    if (!finished) co_return std::unexpected(finished.error());
    co_return Result<void>{};
}

Task<Result<void>> Node::put(Fid fid, const Object* object) {
    Change change;
    ValueBuffer buffer;
    const Key key = Key::object(fid);
    change.records.put(key, write_object(buffer, *object));
    if (plan_.mutation == Mutation::kToldEarly) {
        const NameChanges early{{.claim = {.pool = object->pool,
                                           .name = std::string(object->name),
                                           .version = object->name_version,
                                           .fid = fid}}};
        const auto told = co_await router_->tell(&early);
        ENSURE(told.has_value());
        // Another disk's checkpoint comes by.
        const NameSink::Kept other{.disk = id_of(kDisks), .seq = 1};
        const auto kept = co_await router_->keep(other);
        ENSURE(kept.has_value());
    }
    co_return co_await commit(fid, &change, kPutRecordBytesMax);
}

Task<Result<void>> Node::take_away(Fid fid) {
    Change change;
    change.records.remove(fid);
    co_return co_await commit(fid, &change, kRemoveRecordBytes);
}

Task<Result<std::optional<Fid>>> Node::create(std::string name, Existing existing, unsigned disk) {
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), kPatience)};
    PoolName reserved_name(kPool, name);
    auto reserved = co_await part_of(name).reserve(std::move(reserved_name), wait);
    const auto hold = as_reserved(std::move(reserved), name);
    if (!hold) co_return std::unexpected(hold.error());
    if (hold->owner() && existing == Existing::kRefused) {
        ++remains_.refused;
        co_return std::optional<Fid>{};
    }
    const Fid fid{.high = std::uint64_t{disk} << 48, .low = remains_.next_fid++};
    remains_.owners[name].push_back(fid);
    const Object object = named(name, hold->version());
    const auto made = co_await put(fid, &object);
    if (!made) co_return std::unexpected(made.error());
    acknowledge(name, fid);
    ++remains_.created;
    co_return std::optional<Fid>{fid};
}

Task<Result<void>> Node::remove(std::string name, Duration patience) {
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), patience)};
    PoolName reserved_name(kPool, name);
    const bool at_once = plan_.mutation == Mutation::kLeftAtOnce;
    NameShard& part = part_of(name);
    auto task = at_once ? part.reserve(std::move(reserved_name), wait)
                        : part.reserve_to_remove(std::move(reserved_name), wait);
    auto reserved = co_await std::move(task);
    const auto hold = as_reserved(std::move(reserved), name);
    if (!hold) co_return std::unexpected(hold.error());
    if (!hold->owner()) co_return Result<void>{};
    const Fid fid = hold->owner()->fid;
    remains_.owners[name].push_back(std::nullopt);
    const auto gone = co_await take_away(fid);
    if (!gone) co_return gone;
    acknowledge(name, std::nullopt);
    ++remains_.removed;
    co_return Result<void>{};
}

Task<Result<void>> Node::rename(std::string from, std::string to) {
    if (from == to) co_return Result<void>{};
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), kPatience)};
    const bool from_first =
        reserved_before({.pool = kPool, .name = from}, {.pool = kPool, .name = to});
    std::optional<ReservedName> from_hold;
    std::optional<ReservedName> to_hold;
    for (const bool takes_from : {from_first, !from_first}) {
        const std::string& name = takes_from ? from : to;
        PoolName reserved_name(kPool, name);
        NameShard& part = part_of(name);
        auto task = takes_from ? part.reserve_to_remove(std::move(reserved_name), wait)
                               : part.reserve(std::move(reserved_name), wait);
        auto reserved = co_await std::move(task);
        auto hold = as_reserved(std::move(reserved), name);
        if (!hold) co_return std::unexpected(hold.error());
        (takes_from ? from_hold : to_hold).emplace(std::move(*hold));
    }
    const Fid fid = from_hold->owner()->fid;
    remains_.owners[from].push_back(std::nullopt);
    remains_.owners[to].push_back(fid);
    const std::uint64_t number = remains_.next_renaming++;
    remains_.renamings[number] = {.fid = fid, .from = from, .to = to};
    const Object object = named(to, to_hold->version());
    const auto made = co_await put(fid, &object);
    if (!made) co_return made;
    remains_.renamings.erase(number);
    acknowledge(from, std::nullopt);
    acknowledge(to, fid);
    ++remains_.renamed;
    co_return Result<void>{};
}

// Something else of the object changes, and nobody waits for that.
Task<Result<void>> Node::touch(std::string name) {
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), kPatience)};
    PoolName reserved_name(kPool, name);
    auto reserved = co_await part_of(name).reserve(std::move(reserved_name), wait);
    const auto hold = as_reserved(std::move(reserved), name);
    if (!hold) co_return std::unexpected(hold.error());
    if (!hold->owner()) co_return Result<void>{};
    const Fid fid = hold->owner()->fid;
    auto room = co_await volume_of(fid).reserve(kPutRecordBytesMax, wait);
    if (!room) co_return std::unexpected(room.error());
    Object object = named(name, hold->owner()->version);
    object.size_bytes = random_.below(1000);
    Change change;
    ValueBuffer buffer;
    const Key key = Key::object(fid);
    change.records.put(key, write_object(buffer, object));
    co_return co_await commit(fid, &change, std::move(*room), Durability::kBuffered);
}

// -- what was replaced --

Task<void> Node::sweep() {
    for (;;) {
        std::uint64_t seen = 0;
        for (const auto& part : parts_) seen += part->replaced_count();
        const auto swept = co_await sweep_all();
        if (!swept) {
            violate(std::string("what was replaced cannot be removed: ") + swept.error().context);
            co_return;
        }
        std::uint64_t now = 0;
        for (const auto& part : parts_) now += part->replaced_count();
        if (now != seen) continue;
        const auto slept = co_await machine_.reactor().sleep_for(1ms, &stop_);
        if (!slept) co_return;
    }
}

Task<Result<void>> Node::sweep_all() {
    for (const auto& part : parts_) {
        NameShard::Replaced which{.count_max = 3};
        for (bool end = false; !end;) {
            const auto page = co_await part->replaced(which);
            if (!page) {
                violate(std::string("what was replaced cannot be listed: ") + page.error().context);
                co_return std::unexpected(page.error());
            }
            end = page->end;
            if (!page->claims.empty()) which.behind = page->claims.back();
            for (const NameClaim& claim : page->claims) {
                if (!disks_[claim.fid.slot()].open) continue;
                NameClaim one = claim;
                const auto swept = co_await sweep_one(std::move(one));
                if (!swept) co_return swept;
            }
        }
    }
    co_return Result<void>{};
}

Task<Result<void>> Node::sweep_one(NameClaim claim) {
    const auto object = volume_of(claim.fid).map().find(claim.fid);
    if (!object) co_return std::unexpected(object.error());
    const bool is_it =
        *object && (*object)->name == claim.name && (*object)->name_version == claim.version;
    if (!is_it) co_return Result<void>{};
    const auto gone = co_await take_away(claim.fid);
    if (gone) ++remains_.swept;
    co_return gone;
}

Task<void> Node::settle() {
    for (;;) {
        bool any = false;
        for (const auto& part : parts_) {
            NameShard::Replaced which{.count_max = 1};
            const auto page = co_await part->replaced(which);
            ENSURE(page.has_value());
            if (!page->claims.empty()) any = true;
        }
        if (!any) co_return;
        const auto slept = co_await machine_.reactor().sleep_for(1ms);
        ENSURE(slept.has_value());
    }
}

// -- looking --

Task<std::vector<NameClaim>> Node::known_claims() {
    std::vector<NameClaim> claims;
    for (const auto& part : parts_) {
        NameShard::Listing listing{.pool = kPool, .count_max = 2};
        for (bool end = false; !end;) {
            const auto page = co_await part->list(listing);
            ENSURE(page.has_value());
            end = page->end;
            if (!page->claims.empty()) listing.behind = page->claims.back().name;
            claims.insert(claims.end(), page->claims.begin(), page->claims.end());
        }
        NameShard::Replaced which{.count_max = 1000};
        const auto page = co_await part->replaced(which);
        ENSURE(page.has_value());
        claims.insert(claims.end(), page->claims.begin(), page->claims.end());
    }
    std::ranges::sort(claims, comes_before);
    co_return claims;
}

Task<std::vector<NameClaim>> Node::made_claims() {
    Collector collector;
    MapVisitor* const visitor = &collector;
    for (DiskParts& disk : disks_) {
        if (!disk.open) continue;
        const auto shown = co_await disk.volume->map().for_each(KeyKind::kObject, visitor);
        ENSURE(shown.has_value());
    }
    std::ranges::sort(collector.claims, comes_before);
    co_return std::move(collector.claims);
}

// While nobody changes a name; what was replaced may be going.
Task<void> Node::compare() {
    // Without those that go: the owners only.
    const auto owners_of = [](std::vector<NameClaim> claims) {
        const auto same = [](const NameClaim& a, const NameClaim& b) { return a.name == b.name; };
        const auto rest = std::ranges::unique(claims, same);
        claims.erase(rest.begin(), rest.end());
        return claims;
    };
    auto known_now = co_await known_claims();
    auto made_now = co_await made_claims();
    const auto known = owners_of(std::move(known_now));
    const auto made = owners_of(std::move(made_now));
    if (known != made) {
        violate("the names know" + show(known) + "\nand the objects say" + show(made));
        co_return;
    }
    std::map<std::string, Owner> found;
    for (const NameClaim& claim : known) found[claim.name] = claim.fid;
    for (auto& [name, states] : remains_.owners) {
        const auto looked = part_of(name).find({.pool = kPool, .name = name});
        ENSURE(looked.has_value());
        const Owner owner = *looked ? Owner{(*looked)->fid} : std::nullopt;
        if (owner != (found.contains(name) ? found[name] : std::nullopt)) {
            violate(name + " is found, or listed, and not both");
        }
        if (std::ranges::find(states, owner) == states.end()) {
            violate(name + " belongs to " + show(owner) + "; acknowledged was " +
                    show(states.front()) + ", newest " + show(states.back()));
        }
        if (owner) ++remains_.found_after_crash;
        states = {owner};
    }
    for (const auto& [number, renaming] : remains_.renamings) {
        const bool is_old = found.contains(renaming.from) && found[renaming.from] == renaming.fid;
        const bool is_new = found.contains(renaming.to) && found[renaming.to] == renaming.fid;
        if (is_old == is_new) violate("half a renaming of " + show(Owner{renaming.fid}));
    }
    remains_.renamings.clear();
}

std::string carry_out(const Plan& plan, Remains& remains) {
    core::VirtualWorld world(plan.seed);
    core::Random random(plan.seed);
    testing::Boots boots{.random = random, .findings = remains.findings, .images = {}};
    for (Remains::DiskRemains& disk : remains.disks) boots.images.push_back(&disk.image);
    return testing::run_boots(plan, boots, [&](const testing::Boot& boot) {
        for (MapImage& part : remains.names) {
            // A part of the names is lost, with all that it knew.
            const bool is_lost = !plan.orderly && random.below(5) == 0;
            if (is_lost && plan.mutation != Mutation::kNotKept) part = {};
        }
        for (Remains::DiskRemains& disk : remains.disks) {
            if (!plan.orderly && random.below(6) == 0) disk.index = {};
        }
        Node node(world, remains, plan, random.fork());
        node.run(boot.cut_at);
        if (boot.number == 0) remains.first_was_cut = node.was_cut();
    });
}

}  // namespace fopd::store::names_testing

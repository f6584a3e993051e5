#include "sim/object_book.h"

#include <algorithm>

#include "fop/listing.h"

namespace fopd::sim {

namespace {

using WishKind = ObjectWish::Kind;

bool overlap(const fop::Range& one, const fop::Range& other) {
    return one.offset < other.end() && other.offset < one.end();
}

}  // namespace

// -- events --

void ObjectBook::end_life(std::uint32_t life) {
    ++now_;
    tell("life " + std::to_string(life) + " ends");
    dead_.insert(life);
    for (Change& change : changes_) {
        if (change.life != life || change.state != BookedChange::State::kUnderWay) continue;
        change.state = BookedChange::State::kUnknown;
        change.ended = now_;
    }
}

void ObjectBook::lose_memory() {
    ++now_;
    tell("the server loses its memory");
    for (Change& change : changes_) {
        if (!change.buffered || change.state == BookedChange::State::kRefused) continue;
        change.lost = change.was_lost = true;
        change.sure = kNotYet;
    }
}

// -- changes --

ObjectBook::Change& ObjectBook::begin(std::uint32_t life, ObjectWish wish) {
    Change change;
    change.number = ++changes_begun_;
    change.life = life;
    change.begun = ++now_;
    change.server_life = server_lives_;
    change.buffered =
        wish.kind == WishKind::kWrite && wish.durability == fop::Durability::kBuffered;
    change.range = wish.range;
    change.zeros = wish.kind == WishKind::kTruncate || wish.kind == WishKind::kPunch;
    change.fid = wish.fid;
    change.bound = !makes_object(wish.kind);
    change.wish = std::move(wish);
    Change& kept = changes_.emplace_back(std::move(change));
    const WishKind kind = kept.wish.kind;
    if (keeps_history_) {
        tell("life " + std::to_string(life) + " begins " + std::to_string(kept.number) + " " +
             describe(kept.wish));
    }
    if (!kept.wish.name.empty()) names_[kept.wish.name].changes.push_back(&kept);
    if (!kept.wish.from.empty() && kept.wish.from != kept.wish.name) {
        names_[kept.wish.from].changes.push_back(&kept);
    }
    if (makes_object(kind)) return kept;
    Object& object = objects_[kept.fid];
    if (kind == WishKind::kAppend) {
        object.bytes.add_append(kept);
    } else if (changes_bytes(kind)) {
        object.bytes.add(kept);
    } else {
        object.changes.push_back(&kept);
        if (kind == WishKind::kRename) object.names.insert(kept.wish.name);
    }
    return kept;
}

void ObjectBook::end(Change& change, const Ended& ended) {
    note(change.number, change.wish, ended);
    change.ended = ++now_;
    if (!ended.problem) return end_done(change, ended);
    const fop::Status status = ended.problem->status;
    const bool refused = is_done_once(change.wish.kind) && ended.problem->answered &&
                         (status == fop::Status::kExists || status == fop::Status::kNotFound);
    const bool not_begun = ended.problem->lost.has_value();
    change.state =
        refused || not_begun ? BookedChange::State::kRefused : BookedChange::State::kUnknown;
    must_be_right(change.wish, judge_problem(change.wish, ended));
}

void ObjectBook::end_done(Change& change, const Ended& ended) {
    change.state = BookedChange::State::kDone;
    change.over = change.ended;
    if (!change.lost) change.sure = std::min(change.sure, change.ended);
    const ObjectWish& wish = change.wish;
    if (makes_object(wish.kind)) bind(change, ended.fid);
    Object& object = objects_[change.fid];
    if (wish.kind == WishKind::kAppend) {
        must_be_right(wish, object.bytes.place_append(change, ended.offset));
    }
    const ObjectLook look{.life = change.life, .begun = change.begun};
    if (is_gone(look, change.fid)) must_be_right(wish, "was done to an object that had gone");
    if (wish.kind == WishKind::kRename) object.name = wish.name;
    if (wish.kind == WishKind::kRemove) object.gone = true;
    for (auto& [fid, other] : objects_) {
        if (fid != change.fid && !wish.name.empty() && other.name == wish.name) other.gone = true;
    }
    if (wish.no_replace) must_be_right(wish, judge_winners(wish.name));
}

void ObjectBook::bind(Change& change, fop::Fid fid) {
    change.fid = fid;
    change.bound = true;
    const auto [entry, is_new] = objects_.try_emplace(fid);
    if (!is_new || gone_.contains(fid)) {
        must_be_right(change.wish, "made " + text(fid) + ", which was there before");
    }
    Object& object = entry->second;
    object.mode = change.wish.mode;
    object.name = change.wish.name;
    object.names.insert(change.wish.name);
    if (change.range.length > 0) object.bytes.add(change);
}

ObjectBook::Sync ObjectBook::begin_sync(std::uint32_t life) {
    ++now_;
    tell("life " + std::to_string(life) + " begins to sync");
    return {.life = life, .begun = now_};
}

void ObjectBook::end_sync(const Sync& sync, const Ended& ended) {
    const ObjectWish wish{.kind = WishKind::kSync};
    note(0, wish, ended);
    ++now_;
    if (ended.problem) return must_be_right(wish, judge_problem(wish, ended));
    for (Change& change : changes_) {
        const bool covered = change.life == sync.life && change.buffered &&
                             change.state == BookedChange::State::kDone &&
                             change.ended < sync.begun && !change.told_lost;
        if (!covered) continue;
        change.sure = std::min(change.sure, now_);
        change.buffered = false;
        change.lost = false;
    }
}

// -- looks --

void ObjectBook::witness(const ObjectLook& look) {
    for (Change& change : changes_) {
        if (change.buffered || !look.witnessed.contains(&change)) continue;
        change.sure = std::min(change.sure, now_);
    }
}

void ObjectBook::end_look(ObjectLook& look, const ObjectWish& wish, const Ended& ended) {
    note(0, wish, ended);
    ++now_;
    if (!ended.problem) return;
    if (wish.kind == WishKind::kLookup && ended.problem->status == fop::Status::kNotFound) {
        return must_be_right(wish, judge_name(look, wish.name, {}));
    }
    must_be_right(wish, judge_problem(wish, ended));
}

void ObjectBook::end_read(ObjectLook& look, const ObjectWish& wish,
                          std::span<const std::byte> bytes) {
    note(0, wish, {});
    ++now_;
    Object& object = objects_[wish.fid];
    must_be_right(wish, object.bytes.judge(look, wish.range, bytes));
    if (is_gone(look, wish.fid)) must_be_right(wish, "there is an object that had gone");
    witness(look);
}

void ObjectBook::end_stat(ObjectLook& look, const ObjectWish& wish,
                          const client::ObjectInfo& info) {
    note(0, wish, {});
    ++now_;
    const std::string wrong = judge_name(look, info.name, info.fid);
    const bool is_lookup = wish.kind == WishKind::kLookup;
    if (is_lookup && info.name != wish.name) must_be_right(wish, "is called " + info.name);
    if (is_lookup || !may_be_gone(info.fid)) must_be_right(wish, wrong);
    const auto found = objects_.find(info.fid);
    if (found == objects_.end()) return;
    must_be_right(wish, found->second.bytes.judge_size(look, info.size_bytes));
    must_be_right(wish, judge_mode(look, found->second, info.mode));
    if (is_gone(look, info.fid)) must_be_right(wish, "there is an object that had gone");
}

void ObjectBook::end_list(ObjectLook& look, const ObjectWish& wish,
                          const client::ObjectPage& page) {
    note(0, wish, {});
    ++now_;
    // Sizes in a list do not include what the client itself still buffers.
    const ObjectLook sizes{.begun = look.begun};
    std::set<std::string> listed;
    for (const client::ObjectPage::Entry& entry : page.entries) {
        if (!listed.insert(entry.name).second) must_be_right(wish, "shows a name twice");
        must_be_right(wish, judge_name(look, entry.name, entry.fid));
        const auto found = objects_.find(entry.fid);
        const bool is_missing = missing_excused_ && entry.size_bytes == fop::kSizeUnknown;
        if (found == objects_.end() || is_missing) continue;
        must_be_right(wish, found->second.bytes.judge_size(sizes, entry.size_bytes));
    }
    // While a disk is missing, names may be left out without an error until the list's end.
    if (missing_excused_ && !page.end) return;
    for (const auto& each : names_) {
        const std::string& name = each.first;
        const bool within = name > wish.from && (page.end || name <= page.cursor);
        if (within && !listed.contains(name)) must_be_right(wish, judge_name(look, name, {}));
    }
}

// -- names --

std::optional<fop::Fid> ObjectBook::effect(const Change& change, const std::string& name) {
    if (change.wish.name == name) return change.fid;
    if (change.wish.from == name) return fop::Fid{};
    return std::nullopt;
}

std::string ObjectBook::judge_name(const ObjectLook& look, const std::string& name,
                                   fop::Fid fid) const {
    const auto entry = names_.find(name);
    const std::string is =
        "the name \"" + name + "\" is " + (fid.is_set() ? text(fid) + "'s" : "nobody's");
    if (entry == names_.end()) return fid.is_set() ? is + ", and was never given" : "";
    const auto& changes = entry->second.changes;
    const auto shows = [&](const Change* change) {
        return std::ranges::none_of(changes, [&](const Change* later) {
            return later != change && later->may_show() && has_happened(*later, look) &&
                   (change == nullptr || comes_before(*change, *later));
        });
    };
    if (entry->second.fid == fid && shows(nullptr)) return {};
    for (const Change* const change : changes) {
        if (!change->may_show()) continue;
        const bool fits = change->bound
                              ? effect(*change, name) == fid
                              : fid.is_set() && !objects_.contains(fid) && !gone_.contains(fid);
        if (fits && shows(change)) return {};
    }
    if (may_have_again(fid, name)) return {};
    std::string words = is + "; it was " + text(entry->second.fid);
    for (const Change* const change : changes) {
        words += "; change " + std::to_string(change->number) + " (" + describe(change->wish) +
                 ", state " + std::to_string(static_cast<int>(change->state)) + ") makes it " +
                 (change->bound ? text(*effect(*change, name)) : "a new one");
        words += shows(change) ? " (may show)" : "";
        words += has_happened(*change, look) ? " (has happened)" : "";
    }
    return words;
}

// Checks the changes that take the name only if it is free: no more of them may have succeeded than
// the number of times that the name was free.
std::string ObjectBook::judge_winners(const std::string& name) const {
    const Name& entry = names_.at(name);
    std::size_t free = entry.fid.is_set() ? 0 : 1;
    std::size_t winners = 0;
    for (const Change* const change : entry.changes) {
        if (!change->may_show()) continue;
        if (change->wish.name != name) ++free;
        const bool won = change->wish.name == name && change->wish.no_replace &&
                         change->wish.from != name && change->state == BookedChange::State::kDone;
        if (won) ++winners;
    }
    if (winners <= free) return {};
    return std::to_string(winners) + " have won a name that was free " + std::to_string(free) +
           " times";
}

std::string ObjectBook::judge_mode(const ObjectLook& look, const Object& object,
                                   std::uint16_t mode) const {
    const auto shows = [&](const Change* change) {
        return std::ranges::none_of(object.changes, [&](const Change* later) {
            return later != change && later->wish.kind == WishKind::kSetMode && later->may_show() &&
                   has_happened(*later, look) &&
                   (change == nullptr || comes_before(*change, *later));
        });
    };
    if (object.mode == mode && shows(nullptr)) return {};
    for (const Change* const change : object.changes) {
        const bool fits = change->wish.kind == WishKind::kSetMode && change->wish.mode == mode;
        if (fits && change->may_show() && shows(change)) return {};
    }
    return "has the mode " + std::to_string(mode);
}

bool ObjectBook::may_have_again(fop::Fid fid, const std::string& name) const {
    if (!older_may_return_ || !fid.is_set()) return false;
    const auto object = objects_.find(fid);
    if (object != objects_.end()) return object->second.names.contains(name);
    return !gone_.contains(fid) &&
           std::ranges::any_of(names_.at(name).changes, [&name](const Change* change) {
               return !change->bound && change->may_show() && change->wish.name == name;
           });
}

bool ObjectBook::may_have_name(const std::string& name) const {
    const auto entry = names_.find(name);
    if (entry == names_.end()) return false;
    if (entry->second.fid.is_set()) return true;
    const bool is_again = std::ranges::any_of(
        objects_, [&](const auto& each) { return may_have_again(each.first, name); });
    if (is_again) return true;
    return std::ranges::any_of(entry->second.changes, [&](const Change* change) {
        return change->may_show() && change->wish.name == name;
    });
}

bool ObjectBook::may_lack_name(fop::Fid fid, const std::string& name) const {
    const auto object = objects_.find(fid);
    if (object == objects_.end()) return true;
    const auto entry = names_.find(name);
    const bool had = entry != names_.end() && entry->second.fid == fid;
    return !had || std::ranges::any_of(object->second.changes, [](const Change* change) {
        return change->wish.kind == WishKind::kRename && change->may_show();
    });
}

bool ObjectBook::may_be_gone(fop::Fid fid) const {
    const auto entry = objects_.find(fid);
    if (entry == objects_.end()) return true;
    const Object& object = entry->second;
    const bool removed = std::ranges::any_of(object.changes, [](const Change* change) {
        return change->wish.kind == WishKind::kRemove && change->may_show();
    });
    return removed || std::ranges::any_of(object.names, [&](const std::string& name) {
               const auto& changes = names_.at(name).changes;
               return std::ranges::any_of(changes, [&](const Change* change) {
                   return change->may_show() && change->wish.name == name && change->fid != fid &&
                          !change->wish.no_replace;
               });
           });
}

bool ObjectBook::is_gone(const ObjectLook& look, fop::Fid fid) const {
    const auto entry = objects_.find(fid);
    if (entry == objects_.end()) return gone_.contains(fid);
    return std::ranges::any_of(entry->second.changes, [&](const Change* change) {
        return change->wish.kind == WishKind::kRemove && change->may_show() &&
               has_happened(*change, look);
    });
}

// -- failed calls --

std::string ObjectBook::judge_problem(const ObjectWish& wish, const Ended& ended) const {
    const client::Problem& problem = *ended.problem;
    bool lawful = do_tapes_explain(wish, ended);
    if (lawful) return {};
    switch (problem.status) {
        case fop::Status::kNotFound:
            lawful =
                wish.fid.is_set() && (may_be_gone(wish.fid) ||
                                      (!wish.from.empty() && may_lack_name(wish.fid, wish.from)));
            break;
        case fop::Status::kLost: lawful = problem.lost.has_value(); break;
        case fop::Status::kExists: lawful = wish.no_replace && may_have_name(wish.name); break;
        case fop::Status::kTimedOut: lawful = ended.overdue; break;
        // The node refused new work for a moment, e.g. while it drained, and no time was left for a
        // retry.
        case fop::Status::kTryAgain: lawful = ended.limited || ended.repeated_long; break;
        case fop::Status::kNoSpace: lawful = space_excused_; break;
        case fop::Status::kMediumMissing:
            lawful = missing_excused_ || (moves_excused_ && problem.may_be_done);
            break;
        // The object that the name has replaced is on the missing disk.
        case fop::Status::kBusy: lawful = disks_excused_ || missing_excused_; break;
        case fop::Status::kCorrupt:
        case fop::Status::kReadOnly:
        case fop::Status::kInternal:
        case fop::Status::kOutcomeUnknown: lawful = disks_excused_; break;
        default: break;
    }
    if (lawful) return {};
    return "ended with \"" + std::string(fop::to_string(problem.status)) + "\": " + problem.words;
}

// Each range must be part of a buffered write of this client that the server may have lost, that
// others may have changed since or a disk may refuse, and that the client was not told about
// before.
void ObjectBook::tell_lost(std::uint32_t life, const client::LostWrite& lost) {
    const ObjectWish wish{.kind = WishKind::kWrite, .fid = lost.fid};
    ++now_;
    tell("life " + std::to_string(life) + " is told: " + client::describe(lost));
    ++outcomes_["told lost"];
    std::vector<Change*> told;
    for (const fop::Range& range : lost.ranges) {
        const std::size_t before = told.size();
        // A disk that is full or broken refuses it for good.
        bool may_be = may_be_gone(lost.fid) || space_excused_ || disks_excused_;
        for (Change& change : changes_) {
            // A part of a long write in progress may be lost already.
            const bool is_own = change.life == life && change.fid == lost.fid && change.buffered &&
                                change.may_show() && !change.told_lost;
            if (!is_own || !overlap(change.range, range)) continue;
            told.push_back(&change);
            may_be = may_be || may_be_overtaken(change, range);
        }
        if (told.size() == before) must_be_right(wish, "is said to be lost, and was not written");
        if (!may_be) must_be_right(wish, "is said to be lost, and nobody has changed it since");
    }
    for (Change* const each : told) each->told_lost = true;
}

// Whether the server may refuse a repetition of the change: others have changed the range since, or
// have changed anything of the object in a later life of the server, or it is too long ago. If
// disks move, a client may be mistaken for another.
bool ObjectBook::may_be_overtaken(const Change& change, const fop::Range& range) const {
    if (server_lives_ > change.server_life + kLivesKnown) return true;
    const bool long_ago = moves_excused_ || server_lives_ > change.server_life + 1;
    return std::ranges::any_of(changes_, [&](const Change& other) {
        if (other.fid != change.fid || !changes_bytes(other.wish.kind)) return false;
        if (&other == &change || !other.may_show()) return false;
        const bool is_over = other.state == BookedChange::State::kDone && !other.was_lost &&
                             other.ended < change.begun;
        if (is_over) return false;
        const bool is_by_another = moves_excused_ || other.life != change.life;
        return is_by_another && (long_ago || !other.placed || overlap(other.range, range));
    });
}

// -- at rest --

ObjectBook::Known ObjectBook::draw(core::Random& random) const {
    Known drawn;
    for (int tries = 0; tries < 4 && !objects_.empty(); ++tries) {
        auto entry = objects_.begin();
        std::advance(entry, static_cast<std::ptrdiff_t>(random.below(objects_.size())));
        drawn = {.fid = entry->first, .name = entry->second.name};
        if (!entry->second.gone) break;
    }
    return drawn;
}

std::vector<fop::Fid> ObjectBook::fids() const {
    std::vector<fop::Fid> fids(gone_.begin(), gone_.end());
    for (const auto& each : objects_) fids.push_back(each.first);
    return fids;
}

// Sorted, and without overlaps.
std::vector<fop::Range> ObjectBook::written_ranges(fop::Fid fid) const {
    const auto object = objects_.find(fid);
    if (object == objects_.end()) return {};
    std::vector<fop::Range> ranges = object->second.bytes.written_ranges();
    std::ranges::sort(ranges, {}, &fop::Range::offset);
    std::vector<fop::Range> apart;
    for (const fop::Range& each : ranges) {
        if (!apart.empty() && each.offset <= apart.back().end()) {
            const std::uint64_t end = std::max(apart.back().end(), each.end());
            apart.back().length = end - apart.back().offset;
        } else {
            apart.push_back(each);
        }
    }
    return apart;
}

// An object whose creation was not acknowledged to any client.
std::string ObjectBook::adopt(const Found& found) {
    std::string wrong = text(found.info.fid) + " was made by nobody";
    for (Change& change : changes_) {
        if (change.bound || !change.may_show() || change.wish.name != found.info.name ||
            change.wish.mode != found.info.mode) {
            continue;
        }
        ObjectBytes bytes;
        if (change.range.length > 0) bytes.add(change);
        ObjectLook look{.life = 0, .begun = now_, .witnessed = {&change}};
        std::string not_this = bytes.judge_size(look, found.info.size_bytes);
        for (const auto& [offset, part] : found.bytes) {
            if (!not_this.empty()) break;
            not_this = bytes.judge(look, {.offset = offset, .length = part.size()}, part);
        }
        if (!not_this.empty()) {
            wrong += ", not by change " + std::to_string(change.number) + ": " + not_this;
            continue;
        }
        bind(change, found.info.fid);
        change.sure = std::min(change.sure, now_);
        return {};
    }
    return wrong;
}

void ObjectBook::judge_found(ObjectLook& look, const Found& found) {
    const ObjectWish wish{.kind = WishKind::kStat, .fid = found.info.fid, .name = found.info.name};
    must_be_right(wish, judge_name(look, found.info.name, found.info.fid));
    if (!objects_.contains(found.info.fid)) must_be_right(wish, adopt(found));
    Object& object = objects_[found.info.fid];
    must_be_right(wish, object.bytes.judge_size(look, found.info.size_bytes));
    must_be_right(wish, judge_mode(look, object, found.info.mode));
    if (is_gone(look, found.info.fid)) must_be_right(wish, "is there, and had gone");
    for (const auto& [offset, part] : found.bytes) {
        must_be_right(wish,
                      object.bytes.judge(look, {.offset = offset, .length = part.size()}, part));
    }
}

void ObjectBook::settle(const std::vector<Found>& objects) {
    ++now_;
    tell("rest");
    ObjectLook look = begin_look(0);
    std::set<std::string> found_names;
    for (const Found& found : objects) {
        found_names.insert(found.info.name);
        judge_found(look, found);
    }
    for (const auto& each : names_) {
        if (found_names.contains(each.first)) continue;
        must_be_right({.kind = WishKind::kList}, judge_name(look, each.first, {}));
    }
    for (const auto& each : objects_) gone_.insert(each.first);
    std::map<fop::Fid, Object> left;
    for (auto& [name, entry] : names_) entry = {};
    for (const Found& found : objects) {
        Object& object = left[found.info.fid];
        gone_.erase(found.info.fid);
        object.name = found.info.name;
        object.names = {found.info.name};
        object.mode = found.info.mode;
        object.bytes.settle(found.info.size_bytes);
        for (const auto& [offset, part] : found.bytes) object.bytes.settle(offset, part);
        names_[found.info.name].fid = found.info.fid;
    }
    objects_ = std::move(left);
    changes_.clear();
    cancelled_.clear();
    older_may_return_ = missing_excused_;
}

void ObjectBook::lose_slot(std::uint16_t slot) {
    ++now_;
    tell("slot " + std::to_string(slot) + " is written off");
    std::erase_if(objects_, [&](const auto& each) {
        if (each.first.slot() != slot) return false;
        gone_.insert(each.first);
        return true;
    });
    for (auto& [name, entry] : names_) {
        if (entry.fid.is_set() && entry.fid.slot() == slot) entry = {};
    }
}

// -- results --

void ObjectBook::tell(const std::string& line) {
    if (!keeps_history_) return;
    const auto us =
        std::chrono::duration_cast<std::chrono::microseconds>(world_.now().time_since_epoch());
    history_ += std::to_string(now_) + " " + std::to_string(us.count()) + " us: " + line + "\n";
}

void ObjectBook::note(std::uint64_t number, const ObjectWish& wish, const Ended& ended) {
    std::string word = to_string(wish.kind);
    word += ended.problem ? std::string(" ") + std::string(fop::to_string(ended.problem->status))
                          : " done";
    world_.trace(static_cast<std::uint64_t>(wish.kind));
    world_.trace(ended.problem ? static_cast<std::uint64_t>(ended.problem->status) : 0);
    ++outcomes_[word];
    if (!keeps_history_) return;
    if (ended.problem) word += ": " + ended.problem->words;
    if (ended.fid.is_set()) word += " " + text(ended.fid);
    if (wish.kind == WishKind::kAppend) word += " at " + std::to_string(ended.offset);
    tell("end " + std::to_string(number) + " " + describe(wish) + ": " + word);
}

void ObjectBook::must_be_right(const ObjectWish& wish, const std::string& wrong) {
    if (!wrong.empty()) break_promise(describe(wish) + " " + wrong);
}

void ObjectBook::break_promise(std::string sentence) {
    if (!broken_promise_.empty()) return;
    broken_promise_ = std::move(sentence);
    const auto us =
        std::chrono::duration_cast<std::chrono::microseconds>(world_.now().time_since_epoch());
    broken_promise_ += " (at " + std::to_string(us.count()) + " us)";
}

std::uint64_t ObjectBook::count(std::string_view outcome) const {
    const auto found = outcomes_.find(outcome);
    return found == outcomes_.end() ? 0 : found->second;
}

std::string ObjectBook::summary() const {
    std::string words;
    for (const auto& [word, count] : outcomes_) words += word + " " + std::to_string(count) + ", ";
    return words;
}

}  // namespace fopd::sim

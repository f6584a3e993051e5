#include "tests/reqh/store_model.h"

#include <algorithm>
#include <utility>

namespace fopd::reqh::testing {

namespace {

using Kind = Asked::Kind;
Model::Content changed_content(const std::vector<std::byte>& before, const Asked& asked) {
    std::vector<std::byte> after = before;
    const auto at = static_cast<std::ptrdiff_t>(asked.offset);
    switch (asked.kind) {
        case Kind::kWrite:
            after.resize(std::max<std::size_t>(after.size(), asked.offset + asked.bytes.size()));
            std::ranges::copy(asked.bytes, after.begin() + at);
            break;
        case Kind::kAppend:
            after.insert(after.end(), asked.bytes.begin(), asked.bytes.end());
            break;
        case Kind::kTruncate: after.resize(asked.offset); break;
        case Kind::kPunch: {
            const std::size_t end = std::min(after.size(), asked.offset + asked.length);
            for (std::size_t i = asked.offset; i < end; ++i) after[i] = std::byte{0};
            break;
        }
        default: break;
    }
    return {.bytes = std::make_shared<const std::vector<std::byte>>(std::move(after))};
}

}  // namespace

// -- one state --

Model::Object* Model::State::find(fop::Fid fid) {
    const auto found = std::ranges::find(objects, fid, &Object::fid);
    return found == objects.end() ? nullptr : &*found;
}

Model::Object* Model::State::find_owner(const std::string& name) {
    if (name.empty()) return nullptr;
    const auto found = std::ranges::find_if(
        objects, [&name](const Object& each) { return !each.is_replaced && each.name == name; });
    return found == objects.end() ? nullptr : &*found;
}

// A name is left only when all that it replaced is gone.
void Model::State::erase_replaced(const std::string& name) {
    std::erase_if(objects,
                  [&name](const Object& each) { return each.is_replaced && each.name == name; });
}

// -- what is asked and answered --

void Model::ask(std::size_t client, Asked asked) {
    asked_[client] = std::move(asked);
}

bool Model::answer(std::size_t client, const Told& told) {
    let_happen();
    std::vector<State> left;
    std::swap(left, states_);
    for (State& state : left) {
        const std::optional<Done> done = std::exchange(state.done[client], std::nullopt);
        if (done && matches(state, *done, told)) add(std::move(state));
    }
    asked_[client].reset();
    return !states_.empty();
}

bool Model::give_up(std::size_t client) {
    std::erase_if(states_, [client](const State& state) { return state.done[client].has_value(); });
    asked_[client].reset();
    return !states_.empty();
}

void Model::interrupt() {
    let_happen();
    std::vector<State> left;
    std::swap(left, states_);
    for (State& state : left) {
        for (std::optional<Done>& done : state.done) {
            if (done && !done->is_recorded) done.reset();
        }
        add(std::move(state));
    }
}

void Model::forget_replaced() {
    std::vector<State> left;
    std::swap(left, states_);
    for (State& state : left) {
        std::erase_if(state.objects, [](const Object& each) { return each.is_replaced; });
        add(std::move(state));
    }
}

// All that can have happened by now, in whatever order.
void Model::let_happen() {
    for (std::size_t i = 0; i < states_.size(); ++i) {
        for (std::size_t client = 0; client < asked_.size(); ++client) {
            if (!asked_[client] || states_[i].done[client]) continue;
            const State before = states_[i];
            happen(before, client);
        }
    }
}

void Model::add(State state) {
    if (std::ranges::find(states_, state) == states_.end()) states_.push_back(std::move(state));
}

void Model::happen(const State& before, std::size_t client) {
    switch (asked_[client]->kind) {
        case Kind::kCreate:
        case Kind::kUploadBegin:
        case Kind::kUploadCommit: return make(before, client);
        case Kind::kRename: return rename(before, client);
        case Kind::kDelete: return remove(before, client);
        case Kind::kLookup: return look_up(before, client);
        default: return change(before, client);
    }
}

bool Model::matches(State& state, const Done& done, const Told& told) {
    if (told.status != done.status) return false;
    if (told.status != fop::Status::kDone) return true;
    if (told.offset != done.offset) return false;
    if (done.content && **done.content != told.bytes) return false;
    if (done.serial == 0) return true;
    const auto named = std::ranges::find(state.objects, done.serial, &Object::serial);
    // Gone since.
    if (named == state.objects.end()) return state.find(told.fid) == nullptr;
    if (named->fid.is_set()) return named->fid == told.fid;
    if (state.find(told.fid) != nullptr) return false;
    named->fid = told.fid;
    return true;
}

// -- what happens --

void Model::refuse(State state, std::size_t client, fop::Status status) {
    state.done[client] = Done{.status = status};
    add(std::move(state));
}

void Model::make(State state, std::size_t client) {
    const Asked& asked = *asked_[client];
    if (asked.may_be_lost) refuse(state, client, fop::Status::kLost);
    Object* const owner = state.find_owner(asked.name);
    if (owner != nullptr && asked.no_replace) {
        return refuse(std::move(state), client, fop::Status::kExists);
    }
    state.done[client] = Done{.is_recorded = true};
    if (asked.kind == Kind::kUploadBegin) return add(std::move(state));
    if (owner != nullptr) owner->is_replaced = true;
    state.done[client]->serial = asked.serial;
    const Object made{
        .serial = asked.serial,
        .fid = asked.fid,
        .name = asked.name,
        .content = {.bytes = std::make_shared<const std::vector<std::byte>>(asked.bytes)}};
    state.objects.insert(std::ranges::lower_bound(state.objects, asked.serial, {}, &Object::serial),
                         made);
    add(std::move(state));
}

void Model::rename(State state, std::size_t client) {
    const Asked& asked = *asked_[client];
    Object* const object = state.find(asked.fid);
    if (object == nullptr || object->is_replaced) {
        return refuse(std::move(state), client, fop::Status::kNotFound);
    }
    if (object->name == asked.name) {
        state.done[client] = Done{};
        return add(std::move(state));
    }
    Object* const owner = state.find_owner(asked.name);
    if (owner != nullptr && asked.no_replace) {
        return refuse(std::move(state), client, fop::Status::kExists);
    }
    if (owner != nullptr) owner->is_replaced = true;
    const std::string left = std::exchange(object->name, asked.name);
    if (!left.empty()) state.erase_replaced(left);
    state.done[client] = Done{.is_recorded = true};
    add(std::move(state));
}

void Model::remove(State state, std::size_t client) {
    const Object* const object = state.find(asked_[client]->fid);
    if (object == nullptr || object->is_replaced) {
        return refuse(std::move(state), client, fop::Status::kNotFound);
    }
    const std::string left = object->name;
    const std::uint32_t serial = object->serial;
    std::erase_if(state.objects, [serial](const Object& each) { return each.serial == serial; });
    if (!left.empty()) state.erase_replaced(left);
    state.done[client] = Done{.is_recorded = true};
    add(std::move(state));
}

void Model::change(State state, std::size_t client) {
    const Asked& asked = *asked_[client];
    Object* const object = state.find(asked.fid);
    if (object == nullptr) return refuse(std::move(state), client, fop::Status::kNotFound);
    if (object->is_replaced) {
        // It may have gone by now.
        State gone = state;
        const std::uint32_t serial = object->serial;
        std::erase_if(gone.objects, [serial](const Object& each) { return each.serial == serial; });
        refuse(std::move(gone), client, fop::Status::kNotFound);
    }
    Done done;
    if (asked.kind == Kind::kRead) {
        done.content = object->content;
    } else {
        done.is_recorded = true;
        if (asked.kind == Kind::kAppend) done.offset = (*object->content).size();
        object->content = changed_content(*object->content, asked);
    }
    state.done[client] = std::move(done);
    add(std::move(state));
}

void Model::look_up(State state, std::size_t client) {
    const Object* const owner = state.find_owner(asked_[client]->name);
    if (owner == nullptr) return refuse(std::move(state), client, fop::Status::kNotFound);
    state.done[client] = Done{.serial = owner->serial};
    add(std::move(state));
}

}  // namespace fopd::reqh::testing

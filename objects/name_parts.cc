#include "objects/name_parts.h"

#include <utility>

#include "core/remote_task.h"

namespace fopd::objects {

NameParts::NameParts(const World& world, const std::vector<core::Reactor*>& localities)
    : world_(world) {
    for (core::Reactor* const each : localities) parts_.push_back(std::make_unique<Part>(*each));
}

NameParts::~NameParts() = default;

Task<Result<void>> NameParts::open() {
    for (std::uint32_t number = 0; number < parts_.size(); ++number) {
        Part& part = *parts_[number];
        auto job = [this, number] { return open_part(number); };
        const auto opened = co_await core::run_task_on<Result<void>>(world_.control, part.reactor,
                                                                     part.errands, job);
        if (!*opened) co_return *opened;
    }
    introduce();
    co_return Result<void>{};
}

Task<Result<void>> NameParts::show(std::uint32_t number, store::IndexShow* show) {
    Part& part = *parts_[number];
    auto job = [&part, show] { return part.index->show_all(show); };
    const auto shown =
        co_await core::run_task_on<Result<void>>(world_.control, part.reactor, part.gate, job);
    if (!shown) {
        co_return std::unexpected(Error{.code = Errc::kClosed, .context = "the node is stopping"});
    }
    co_return *shown;
}

// -- on the part's reactor --

Task<Result<void>> NameParts::open_part(std::uint32_t number) {
    const auto found = co_await find_part(number);
    if (found) co_return found;
    const Errc code = found.error().code;
    const bool is_missing = code == Errc::kNotFound;
    if (!is_missing && code != Errc::kCorrupt && code != Errc::kInvalid) co_return found;
    if (!is_missing || world_.had_disks) {
        const std::string_view why = is_missing ? "it is missing" : found.error().context;
        emit(world_.events, core::Level::kWarn, "daemon.names_rebuilt",
             {{"part", std::uint64_t{number}}, {"reason", why}});
    }
    co_return co_await make_part(number);
}

Task<Result<void>> NameParts::find_part(std::uint32_t number) {
    auto index = co_await world_.indexes.open_names(&parts_[number]->reactor,
                                                    {.node = world_.node, .part = number});
    if (!index) co_return std::unexpected(index.error());
    co_return use_index(number, *std::move(index));
}

Task<Result<void>> NameParts::make_part(std::uint32_t number) {
    auto index = co_await world_.indexes.make_names(&parts_[number]->reactor,
                                                    {.node = world_.node, .part = number});
    if (!index) co_return std::unexpected(index.error());
    co_return use_index(number, *std::move(index));
}

Result<void> NameParts::use_index(std::uint32_t number, std::unique_ptr<store::Index> index) {
    auto shard = std::make_unique<store::NameShard>(
        store::NameShard::World{.reactor = parts_[number]->reactor, .clock = world_.clock}, *index,
        store::NameShardOptions{
            .part = {.shard = number, .shard_count = static_cast<std::uint32_t>(parts_.size())}});
    if (auto opened = shard->open(); !opened) return opened;
    parts_[number]->index = std::move(index);
    parts_[number]->shard = std::move(shard);
    return {};
}

// -- on the control reactor --

void NameParts::introduce() {
    std::vector<NamePart*> all;
    for (const auto& each : parts_) {
        each->part = std::make_unique<NamePart>(each->reactor, each->gate, *each->shard);
        all.push_back(each->part.get());
    }
    for (const auto& each : parts_) {
        each->names = std::make_unique<Names>(each->reactor, all);
        std::vector<store::NameSink*> sinks;
        for (const auto& other : parts_) {
            if (other == each) {
                sinks.push_back(each->shard.get());
                continue;
            }
            each->distant.push_back(std::make_unique<DistantNames>(each->reactor, *other->part));
            sinks.push_back(each->distant.back().get());
        }
        each->router = std::make_unique<NameRouter>(std::move(sinks));
    }
    std::vector<store::NameSink*> sinks;
    for (NamePart* const each : all) {
        distant_.push_back(std::make_unique<DistantNames>(world_.control, *each));
        sinks.push_back(distant_.back().get());
    }
    whole_ = std::make_unique<NameRouter>(std::move(sinks));
}

Task<bool> NameParts::close_part(Part* part, Instant deadline) {
    const auto ended = co_await part->gate.close_by(part->reactor, deadline);
    co_return ended.has_value();
}

Task<bool> NameParts::close(Instant deadline) {
    bool closed = true;
    for (const auto& each : parts_) {
        auto job = [&each, deadline] { return close_part(each.get(), deadline); };
        const auto ended =
            co_await core::run_task_on<bool>(world_.control, each->reactor, each->errands, job);
        closed = closed && *ended;
    }
    co_return closed;
}

}  // namespace fopd::objects

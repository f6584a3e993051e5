#include "tests/config/example_schema.h"

#include "config/types.h"

namespace fopd::config::example {
namespace {

Section<Node> node_section() {
    Section<Node> section("node", "Who this node is and where it keeps its data.");
    section.field("name", &Node::name,
                  text({.length_min = 1, .length_max = 16, .charset = Charset::kName}),
                  "The name in logs and views.");
    section.field("data_dir", &Node::data_dir, path(), "Index and state; must be writable.");
    section.field("drain_timeout", &Node::drain_timeout, duration({.min = 1s, .max = 1h}),
                  "How long running operations may take to end when the daemon stops.",
                  {.reload = Reload::kLive});
    section.field("motto", &Node::motto, text({.length_max = 40}), "Shown by status.",
                  {.reload = Reload::kLive});
    section.field("verbose", &Node::verbose, boolean(), "Log more.", {.reload = Reload::kLive});
    section.field("metrics", &Node::metrics, address(), "Where metrics are served.");
    section.field("key_file", &Node::key_file, none_or(path()), "The key shared with peers.");
    return section;
}

std::vector<std::pair<std::string, Mode>> modes() {
    return {{"required", Mode::kRequired}, {"optional", Mode::kOptional}, {"none", Mode::kNone}};
}

Record<Tape> tape_record() {
    Record<Tape> record;
    record.field("order", &Tape::order, choice(modes()), "The order of reads.",
                 {.reload = Reload::kLive});
    record.field("wait_min", &Tape::wait_min, duration(), "The shortest wait for company.",
                 {.reload = Reload::kLive});
    record.field("wait_max", &Tape::wait_max, duration(), "The longest wait for company.");
    record.check([](const Tape& tape, Complaints& complaints) {
        if (tape.wait_min <= tape.wait_max) return;
        complaints.add("wait_min", "longer than wait_max",
                       "write at most " + format_duration(tape.wait_max));
    });
    return record;
}

Section<Limits> limits_section() {
    Section<Limits> section("limits", "How much the node takes on at a time.");
    section.field("nice", &Limits::nice, integer<std::int32_t>({.min = -20, .max = 19}),
                  "The scheduling priority.", {.reload = Reload::kLive});
    section.field("foms_max", &Limits::foms_max,
                  integer<std::uint32_t>({.min = 1, .max = 1'000'000}),
                  "Operations that run at a time.", {.reload = Reload::kLive});
    section.field("buffers", &Limits::buffers,
                  size({.min = std::uint64_t{1} << 20, .max = std::uint64_t{1} << 40}),
                  "Memory for transfers.");
    section.field("block", &Limits::block, size({.min = 512, .multiple_of = 512}),
                  "The unit of transfers.");
    section.field("cores", &Limits::cores, auto_or(integer<std::uint32_t>({.min = 1, .max = 64})),
                  "Threads; auto takes half of the cores.");
    section.field("rate", &Limits::rate, rate(), "What one client may do.",
                  {.reload = Reload::kLive});
    section.field("mode", &Limits::mode, choice(modes()), "Whether limits hold.",
                  {.reload = Reload::kLive});
    section.field("tape", &Limits::tape, map_of(tape_record()), "What holds for tapes.");
    return section;
}

Record<Pool> pool_record() {
    Record<Pool> record;
    record.field("name", &Pool::name, text({.length_min = 1, .charset = Charset::kName}),
                 "What clients call it.", {.need = Need::kRequired, .example = "fast"});
    record.field("quota", &Pool::quota, size(), "What it may hold; 0 is no limit.",
                 {.reload = Reload::kLive});
    record.field("age_max", &Pool::age_max, duration(), "When objects are looked at again.",
                 {.reload = Reload::kLive});
    record.field("family", &Pool::family, text(), "The kind of its media.");
    record.identified_by("name");
    return record;
}

Section<Storage> storage_section() {
    Section<Storage> section("storage", "Pools and addresses.");
    section.field("pools", &Storage::pools, list_of(map_of(pool_record()), {.length_max = 8}),
                  "The pools of the node.");
    section.field("listen", &Storage::listen,
                  list_of(text({.length_min = 1}), {.length_min = 1, .length_max = 4}),
                  "Where clients connect.");
    section.field(
        "weights", &Storage::weights,
        list_of(integer<std::uint32_t>({.min = 0, .max = 100}), {.length_min = 3, .length_max = 3}),
        "Shares of read, write and format.", {.reload = Reload::kLive});
    section.field("peers", &Storage::peers,
                  list_of(address(), {.doubles = ListRule::Doubles::kRefused}), "The other nodes.");
    section.check([](const Storage& storage, Complaints& complaints) {
        for (std::size_t index = 0; index < storage.pools.size(); ++index) {
            if (storage.pools[index].family != "paper") continue;
            complaints.add("pools[" + std::to_string(index) + "].family", "paper burns",
                           "write disk or tape");
        }
    });
    return section;
}

}  // namespace

Schema schema() {
    Schema schema;
    schema.add(node_section());
    schema.add(limits_section());
    schema.add(storage_section());
    return schema;
}

Schema required_schema() {
    Section<Identity> section("identity", "Who this is.");
    section.field("name", &Identity::name, text({.length_min = 1}), "The name.",
                  {.need = Need::kRequired, .example = "node-a"});
    Schema schema;
    schema.add(std::move(section));
    return schema;
}

}  // namespace fopd::config::example

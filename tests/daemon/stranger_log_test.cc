// Goal: an administrator sees at once that something speaks to the wrong port, and a port scan does
// not fill the log.

#include "daemon/stranger_log.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/virtual_world.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::daemon;

namespace {

using Kind = fabric::Stranger::Kind;

// Notes each event as its kind, the address and the number of strangers.
class StrangerEvents final : public core::EventSink {
public:
    void emit(core::Level level, std::string_view name,
              std::span<const core::Field> fields) override {
        CHECK(name == "fabric.no_request");
        std::string line = level == core::Level::kWarn ? "warn" : "info";
        for (const core::Field& each : fields) {
            if (each.key == "reason") continue;
            line += " ";
            const auto* const text = std::get_if<std::string_view>(&each.value);
            line += text != nullptr ? std::string(*text)
                                    : std::to_string(std::get<std::uint64_t>(each.value));
        }
        lines.push_back(std::move(line));
    }
    bool wants(core::Level) const override { return true; }

    std::vector<std::string> lines;
};

struct StrangerStage {
    core::VirtualWorld world{1};
    std::unique_ptr<core::Reactor> reactor = world.make_reactor();
    StrangerEvents events;
    StrangerLog log{*reactor, events};

    void run_for(Duration span) { world.run_for(span); }
    std::vector<std::string> taken() { return std::exchange(events.lines, {}); }
};

}  // namespace

TEST_CASE("daemon strangers: the first of a kind is reported at once, the next ones together",
          "[daemon]") {
    StrangerStage stage;

    stage.log.add({.kind = Kind::kHttp, .peer = "a"});
    CHECK(stage.taken() == std::vector<std::string>{"warn http a 1"});
    stage.log.add({.kind = Kind::kHttp, .peer = "b"});
    stage.log.add({.kind = Kind::kHttp, .peer = "c"});
    stage.log.add({.kind = Kind::kLeft, .peer = "d"});
    CHECK(stage.taken() == std::vector<std::string>{"info left d 1"});

    stage.run_for(StrangerLog::kInterval + 1s);
    CHECK(stage.taken() == std::vector<std::string>{"warn http c 2"});

    // The report has begun another interval, in which nobody came.
    stage.run_for(StrangerLog::kInterval + 1s);
    CHECK(stage.taken().empty());
    stage.log.add({.kind = Kind::kHttp, .peer = "e"});
    CHECK(stage.taken() == std::vector<std::string>{"warn http e 1"});
}

TEST_CASE("daemon strangers: a stop reports those that were only counted", "[daemon]") {
    StrangerStage stage;
    stage.log.add({.kind = Kind::kTls, .peer = "a"});
    stage.log.add({.kind = Kind::kTls, .peer = "b"});
    stage.log.add({.kind = Kind::kOtherBytes, .peer = "c"});
    CHECK(stage.taken().size() == 2);

    stage.log.stop();

    CHECK(stage.taken() == std::vector<std::string>{"warn tls b 1"});
    stage.run_for(2 * StrangerLog::kInterval);
    CHECK(stage.taken().empty());
}

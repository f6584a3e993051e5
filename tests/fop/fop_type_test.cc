#include "fop/fop_type.h"

#include "fop/status.h"
#include "tests/catch.h"
#include "tests/fop/samples.h"

namespace fopd::fop {

TEST_CASE("fop type: every row is found by its number and by its name", "[fop]") {
    for (const FopType& type : kFopTypes) {
        CAPTURE(type.name);
        REQUIRE(find_fop_type(type.number) == &type);
        REQUIRE(find_fop_type(type.name) == &type);
        REQUIRE_FALSE(type.summary.empty());
    }
    REQUIRE(find_fop_type(std::uint16_t{0}) == nullptr);
    REQUIRE(find_fop_type(static_cast<std::uint16_t>(kFopTypes.back().number + 1)) == nullptr);
    REQUIRE(find_fop_type(std::uint16_t{0xffff}) == nullptr);
    REQUIRE(find_fop_type(std::string_view("no such fop")) == nullptr);
    REQUIRE(find_fop_type(std::string_view()) == nullptr);
}

TEST_CASE("fop type: who may call is known of each number", "[fop]") {
    std::uint32_t wrong = 0;
    for (std::uint32_t each = 0; each <= UINT16_MAX; ++each) {
        const auto number = static_cast<std::uint16_t>(each);
        const FopType* const type = find_fop_type(number);
        const bool is_of_daemons = type != nullptr && type->callers == Callers::kPeers;
        if (is_of_peers(number) != is_of_daemons) ++wrong;
    }
    CHECK(wrong == 0);
    CHECK(is_of_peers(find_fop_type("epoch")->number));
}

TEST_CASE("fop type: the bodies of a row are those of its place", "[fop]") {
    for (const FopType& type : kFopTypes) {
        CAPTURE(type.name);
        REQUIRE(sample_request(type.number).body.index() == body_index(type));
        REQUIRE(sample_reply(type.number).body.index() == body_index(type));
    }
}

TEST_CASE("fop type: what users rely on", "[fop]") {
    const FopType& ping = *find_fop_type("ping");
    REQUIRE(ping.number == 1);
    REQUIRE(ping.rights == kNoRights);
    REQUIRE(ping.lane == Lane::kControl);
    REQUIRE(ping.repeat == Repeat::kIdempotent);

    const FopType& echo = *find_fop_type("echo");
    REQUIRE(echo.number == 2);
    REQUIRE(echo.rights == kAdmin);
    REQUIRE(echo.payload == Payload::kInline);

    const FopType& bulk_echo = *find_fop_type("bulk_echo");
    REQUIRE(bulk_echo.number == 3);
    REQUIRE(bulk_echo.rights == kAdmin);
    REQUIRE(bulk_echo.repeat == Repeat::kOnce);
    REQUIRE(bulk_echo.payload == Payload::kBulk);

    // Once more would be one more, or undo what others did in between.
    for (const auto* const name :
         {"create", "set_attributes", "rename", "delete", "write", "append", "truncate", "punch",
          "upload_begin", "upload_write", "upload_commit"}) {
        CAPTURE(name);
        REQUIRE(find_fop_type(name)->repeat == Repeat::kRecorded);
    }
    for (const auto* const name : {"lookup", "stat", "list", "read", "sync", "upload_abort"}) {
        CAPTURE(name);
        REQUIRE(find_fop_type(name)->repeat == Repeat::kIdempotent);
    }
}

TEST_CASE("fop status: numbers we do not know are internal errors", "[fop]") {
    for (const StatusRow& row : kStatuses) {
        REQUIRE(status_row(static_cast<std::uint16_t>(row.status)).status == row.status);
        REQUIRE(to_string(row.status) == row.name);
    }
    REQUIRE(status_row(static_cast<std::uint16_t>(kStatuses.size())).status == Status::kInternal);
    REQUIRE(status_row(std::uint16_t{0xffff}).status == Status::kInternal);
}

TEST_CASE("fop status: a status maps back to its error, or to a more general one", "[fop]") {
    for (const Errc code :
         {Errc::kNoSpace, Errc::kTimedOut, Errc::kCancelled, Errc::kCorrupt, Errc::kBusy,
          Errc::kInvalid, Errc::kNotFound, Errc::kDenied, Errc::kIo}) {
        CAPTURE(to_string(code));
        REQUIRE(status_row(status_of(code)).code == code);
    }
    REQUIRE(status_of(Errc::kClosed) == Status::kOutcomeUnknown);
    REQUIRE(status_of(Errc::kUnsupported) == Status::kInternal);
}

}  // namespace fopd::fop

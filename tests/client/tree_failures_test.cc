// Goal: a report on a tree does not grow with the number of failures, and each has the code and the
// exit code of its cause. Method: failures as transfers report them.
#include "client/tree_failures.h"

#include <string>

#include "tests/catch.h"

namespace fopd::client::testing {

namespace {

using Cause = TreeFailure::Cause;

TreeFailure failure_of(Cause cause, fop::Status status, std::string name = "p/a") {
    return {.name = std::move(name),
            .cause = cause,
            .problem = {.status = status, .answered = true, .words = "words"}};
}

}  // namespace

TEST_CASE("client tree failures: the first ones are listed, the others counted", "[client]") {
    const auto keep = GENERATE(TreeFailures::Keep::kListed, TreeFailures::Keep::kNothing);
    TreeFailures failures(keep);
    REQUIRE(failures.exit_code() == kExitDone);
    REQUIRE(failures.add(failure_of(Cause::kServer, fop::Status::kNotFound)));
    for (std::uint64_t i = 1; i < TreeFailures::kListedMax; ++i) {
        REQUIRE(failures.add(failure_of(Cause::kFile, fop::Status::kInternal)));
    }
    REQUIRE(failures.unlisted_count() == 0);
    for (int i = 0; i < 3; ++i) {
        REQUIRE_FALSE(failures.add(failure_of(Cause::kServer, fop::Status::kDenied)));
    }

    REQUIRE(failures.count() == TreeFailures::kListedMax + 3);
    REQUIRE(failures.unlisted_count() == 3);
    REQUIRE(failures.exit_code() == kExitNotFound);
    const bool is_kept = keep == TreeFailures::Keep::kListed;
    REQUIRE(failures.listed().size() == (is_kept ? TreeFailures::kListedMax : 0));
}

TEST_CASE("client tree failures: the exit code is that of the cause", "[client]") {
    struct Row {
        TreeFailure failure;
        std::string_view code;
        ExitCode exit_code;
    };
    TreeFailure unsent = failure_of(Cause::kServer, fop::Status::kMalformed);
    unsent.problem.answered = false;
    const std::vector<Row> rows{
        {failure_of(Cause::kServer, fop::Status::kNotFound), "not_found", kExitNotFound},
        {failure_of(Cause::kServer, fop::Status::kDenied), "denied", kExitNotAllowed},
        {failure_of(Cause::kServer, fop::Status::kTimedOut), "timed_out", kExitTryLater},
        {failure_of(Cause::kServer, fop::Status::kExists), "exists", kExitRefused},
        {failure_of(Cause::kFile, fop::Status::kInternal), "file", kExitRefused},
        {failure_of(Cause::kName, fop::Status::kMalformed), "bad_name", kExitRefused},
        {failure_of(Cause::kTooMany, fop::Status::kInternal), "too_many", kExitRefused},
        {unsent, "usage", kExitUsage}};
    TreeFailures failures(TreeFailures::Keep::kListed);
    for (const Row& row : rows) failures.add(row.failure);
    REQUIRE(failures.listed().size() == rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const TreeFailures::Listed& listed = failures.listed()[i];
        REQUIRE(listed.name == "p/a");
        REQUIRE(listed.words == "words");
        REQUIRE(listed.code == rows[i].code);
        REQUIRE(listed.exit_code == rows[i].exit_code);
    }
}

}  // namespace fopd::client::testing

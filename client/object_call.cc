// SPDX-License-Identifier: BSD-2-Clause
#include "client/object_call.h"

#include <array>
#include <utility>

#include "core/printable.h"
#include "core/whole_number.h"
#include "fop/range.h"

namespace fopd::client {

namespace {

template <typename Body>
const fop::Receipt* receipt_in(const Body& body) {
    if constexpr (requires { body.changed; }) return &body.changed.receipt;
    if constexpr (requires { body.receipt; }) return &body.receipt;
    return nullptr;
}

}  // namespace

std::optional<fop::Fid> parse_fid(std::string_view text) {
    constexpr std::size_t kHalf = 16;
    if (text.size() != 2 * kHalf) return std::nullopt;
    const auto high = core::whole_number(text.substr(0, kHalf), 16);
    const auto low = core::whole_number(text.substr(kHalf), 16);
    if (!high || !low) return std::nullopt;
    const fop::Fid fid{.high = *high, .low = *low};
    if (!fid.is_set()) return std::nullopt;
    return fid;
}

bool is_silence(const Problem& problem) {
    return !problem.answered &&
           (problem.status == fop::Status::kTimedOut || problem.status == fop::Status::kCancelled);
}

std::unexpected<Problem> failed(fop::Status status, std::string words) {
    return std::unexpected(Problem{.status = status, .words = std::move(words)});
}

std::unexpected<Problem> failed(const Error& error) {
    return failed(fop::status_of(error.code), describe(error));
}

std::unexpected<Problem> nonsense() {
    return failed(fop::Status::kInternal, "the server's answer is not valid");
}

std::unexpected<Problem> refused(const fabric::Answer& answer) {
    Problem problem{.status = answer.status, .answered = true, .words = {}};
    core::append_printable(problem.words, answer.words.empty()
                                              ? fop::status_row(answer.status).summary
                                              : std::string_view(answer.words));
    // With every other status, the server has already looked for an earlier execution of the fop:
    // fabric::Client repeats a request that was put off before that.
    problem.may_be_done = answer.sent_before && answer.status == fop::Status::kMediumMissing;
    if (problem.may_be_done) problem.words += "; the change may have been made before";
    return std::unexpected(std::move(problem));
}

const fop::Receipt* receipt_of(const fabric::Answer& answer) {
    return std::visit([](const auto& body) { return receipt_in(body); }, answer.body);
}

bool fits_message(const fabric::Client& session, std::size_t bytes) {
    return session.open() && bytes <= session.session().inline_max();
}

std::vector<std::uint32_t> checksums_of(const fop::Range& range, std::span<const std::byte> data) {
    const std::array ranges{range};
    std::vector<std::uint32_t> checksums(fop::count_checksums(ranges));
    fop::checksum_ranges(ranges, data, checksums);
    return checksums;
}

}  // namespace fopd::client

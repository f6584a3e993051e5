// SPDX-License-Identifier: BSD-2-Clause
#include "client/object_page.h"

#include <array>
#include <cstdio>
#include <ctime>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "client/object_call.h"
#include "client/table.h"
#include "client/verb.h"
#include "core/printable.h"
#include "fop/hex.h"

namespace fopd::client {

namespace {

// The name of an object: escaped for a terminal, unchanged for a pipe.
std::string listed(const std::string& name) {
    static const bool kOnTerminal = ::isatty(STDOUT_FILENO) == 1;
    return kOnTerminal ? core::printable(name) : name;
}

// With kJson "2026-11-21T09:30:00.123456789Z", for programs; otherwise local time, for people.
std::string time_of(std::uint64_t since_1970_ns, Output output) {
    const auto seconds = static_cast<std::time_t>(since_1970_ns / 1'000'000'000);
    std::tm parts{};
    std::array<char, 64> text{};
    if (output != Output::kJson) {
        ::localtime_r(&seconds, &parts);
        std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
        return text.data();
    }
    ::gmtime_r(&seconds, &parts);
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    std::array<char, 16> fraction{};
    std::snprintf(fraction.data(), fraction.size(), ".%09uZ",
                  static_cast<unsigned>(since_1970_ns % 1'000'000'000));
    return std::string(text.data()) + fraction.data();
}

std::string mode_of(const ObjectInfo& info) {
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(info.mode));
    return mode.data();
}

}  // namespace

nlohmann::ordered_json json_of(const ObjectPage::Entry& entry) {
    nlohmann::ordered_json size = entry.size_bytes;
    nlohmann::ordered_json changed = time_of(entry.changed_ns, Output::kJson);
    if (entry.size_bytes == fop::kSizeUnknown) size = changed = nullptr;
    return {{"name", entry.name},
            {"size", size},
            {"changed", changed},
            {"fid", fop::to_hex(entry.fid)}};
}

std::string line_of(const ObjectPage::Entry& entry, bool is_long) {
    std::string line;
    if (is_long) {
        const bool is_known = entry.size_bytes != fop::kSizeUnknown;
        const std::string size = is_known ? size_of(entry.size_bytes) : "?";
        std::string changed = time_of(entry.changed_ns, Output::kPage);
        if (!is_known) changed = "?" + std::string(changed.size() - 1, ' ');
        line = std::string(size.size() < 11 ? 11 - size.size() : 0, ' ') + size + "  " + changed +
               "  ";
    }
    return line + listed(entry.name) + "\n";
}

nlohmann::ordered_json json_of(const ObjectInfo& info, const ObjectCopies& copies) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const CopyInfo& each : copies.copies) {
        list.push_back({{"medium", each.cartridge},
                        {"state", each.state},
                        {"file", each.file},
                        {"block", each.block},
                        {"offset", each.offset},
                        {"size", each.size_bytes},
                        {"written", time_of(each.written_ns, Output::kJson)}});
    }
    nlohmann::ordered_json pinned;
    if (copies.pinned_until_ns > 0) pinned = time_of(copies.pinned_until_ns, Output::kJson);
    return {{"name", info.name},
            {"fid", fop::to_hex(info.fid)},
            {"size", info.size_bytes},
            {"allocated", info.allocated_bytes},
            {"version", info.version},
            {"owner", info.owner},
            {"group", info.group},
            {"collection", info.collection},
            {"mode", mode_of(info)},
            {"created", time_of(info.created_ns, Output::kJson)},
            {"changed", time_of(info.changed_ns, Output::kJson)},
            {"on_disk", copies.on_disk},
            {"pinned_until", pinned},
            {"copies", list}};
}

std::string page_of(const ObjectInfo& info, const ObjectCopies& copies) {
    const std::string collection =
        info.collection.empty() ? "" : "\ncollection " + core::printable(info.collection);
    std::string tape;
    if (!copies.on_disk) tape = "on disk    no\n";
    if (copies.pinned_until_ns > 0) {
        tape += "pinned     until " + time_of(copies.pinned_until_ns, Output::kPage) + "\n";
    }
    for (const CopyInfo& each : copies.copies) {
        tape +=
            "copy       " + core::printable(each.cartridge) + " file " + std::to_string(each.file);
        if (each.state != "ok" && each.state != "full") {
            tape += each.state.empty() ? " (unknown)" : " (" + core::printable(each.state) + ")";
        }
        tape += "\n";
    }
    return "name       " + listed(info.name) + "\nsize       " + std::to_string(info.size_bytes) +
           "\nallocated  " + std::to_string(info.allocated_bytes) + "\nversion    " +
           std::to_string(info.version) + "\nowner      " + core::printable(info.owner) +
           "\ngroup      " + core::printable(info.group) + collection + "\nmode       " +
           mode_of(info) + "\ncreated    " + time_of(info.created_ns, Output::kPage) +
           "\nchanged    " + time_of(info.changed_ns, Output::kPage) + "\nfid        " +
           fop::to_hex(info.fid) + "\n" + tape;
}

}  // namespace fopd::client

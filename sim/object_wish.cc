#include "sim/object_wish.h"

#include <cstdio>

namespace fopd::sim {

const char* to_string(ObjectWish::Kind kind) {
    using enum ObjectWish::Kind;
    switch (kind) {
        case kCreate: return "create";
        case kPut: return "put";
        case kRename: return "rename";
        case kRemove: return "remove";
        case kWrite: return "write";
        case kAppend: return "append";
        case kTruncate: return "truncate";
        case kPunch: return "punch";
        case kSetMode: return "set mode";
        case kLookup: return "lookup";
        case kStat: return "stat";
        case kList: return "list";
        case kRead: return "read";
        case kSync: return "sync";
        case kStage: return "stage";
        case kRelease: return "release";
        case kCancelRecall: return "cancel recall";
        case kSyncTape: return "sync tape";
    }
    return "?";
}

std::string text(fop::Fid fid) {
    char words[40];
    std::snprintf(words, sizeof words, "%llx:%llx", static_cast<unsigned long long>(fid.high),
                  static_cast<unsigned long long>(fid.low));
    return words;
}

bool makes_object(ObjectWish::Kind kind) {
    using enum ObjectWish::Kind;
    return kind == kCreate || kind == kPut;
}

bool is_done_once(ObjectWish::Kind kind) {
    using enum ObjectWish::Kind;
    return makes_object(kind) || kind == kRename || kind == kRemove || kind == kAppend;
}

bool changes_bytes(ObjectWish::Kind kind) {
    using enum ObjectWish::Kind;
    return kind == kWrite || kind == kAppend || kind == kTruncate || kind == kPunch;
}

std::string describe(const ObjectWish& wish) {
    std::string words = to_string(wish.kind);
    if (wish.fid.is_set()) words += " " + text(wish.fid);
    if (!wish.from.empty()) words += " from \"" + wish.from + "\"";
    if (!wish.name.empty()) words += " \"" + wish.name + "\"";
    if (wish.range.length > 0) {
        words += " at " + std::to_string(wish.range.offset) + " length " +
                 std::to_string(wish.range.length);
    }
    if (wish.durability == fop::Durability::kBuffered) words += " buffered";
    if (wish.no_replace) words += " no_replace";
    return words;
}

}  // namespace fopd::sim

#include "fop/name.h"

#include "core/utf8.h"
#include "fop/invalid.h"

namespace fopd::fop {

Result<void> check_object_name(std::string_view name) {
    if (name.empty()) return invalid("the name is empty");
    if (name.size() > kObjectNameBytesMax) return invalid("the name is longer than 480 bytes");
    while (!name.empty()) {
        const auto character = core::decode_utf8(name);
        if (!character) return invalid("the name is not UTF-8");
        const char32_t c = character->code_point;
        if (c < 0x20 || (c >= 0x7f && c <= 0x9f)) {
            return invalid("the name has a control character");
        }
        name.remove_prefix(character->size_bytes);
    }
    return {};
}

}  // namespace fopd::fop

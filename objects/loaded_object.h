#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "core/ensure.h"
#include "store/object.h"

namespace fopd::objects {

// A copy of an object's record; records in the map are only valid within a reactor turn.
class LoadedObject {
public:
    LoadedObject() = default;
    LoadedObject(const LoadedObject&) = delete;
    LoadedObject& operator=(const LoadedObject&) = delete;

    // REQUIRES: owner, group, name and collection are within the limits for objects.
    void set(const store::Object& object) {
        object_ = object;
        object_.owner = keep(object.owner, owner_);
        object_.group = keep(object.group, group_);
        object_.name = keep(object.name, name_);
        object_.collection = keep(object.collection, collection_);
    }
    const store::Object& get() const { return object_; }

private:
    template <std::size_t Size>
    static std::string_view keep(std::string_view text, std::array<char, Size>& memory) {
        ENSURE(text.size() <= Size);
        std::ranges::copy(text, memory.begin());
        return {memory.data(), text.size()};
    }

    store::Object object_{};
    std::array<char, store::kPrincipalBytesMax> owner_;
    std::array<char, store::kPrincipalBytesMax> group_;
    std::array<char, store::kObjectNameBytesMax> name_;
    std::array<char, store::kPrincipalBytesMax> collection_;
};

}  // namespace fopd::objects

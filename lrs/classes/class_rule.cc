#include "lrs/classes/class_rule.h"

#include <array>
#include <cstring>

#include "core/printable.h"

namespace fopd::lrs {

namespace {

std::string words_of(KeySet keys) {
    if (keys.is_empty()) return "none";
    std::vector<std::string> words;
    keys.for_each([&words](Key key) { words.emplace_back(name_of(key)); });
    return one_or_list(words);
}

}  // namespace

// A single word as it is, several words in braces.
std::string one_or_list(const std::vector<std::string>& words) {
    if (words.size() == 1) return words.front();
    std::string list = "{";
    for (const std::string& word : words) {
        if (list.size() > 1) list += ' ';
        list += word;
    }
    return list + '}';
}

std::string ClassRule::text_around(const std::string& options) const {
    std::string shown = name + ' ' + expression_text + options;
    if (classes_by != default_classes_by(expression)) shown += " by=" + words_of(classes_by);
    if (rank != kRankDefault) shown += " rank=" + std::to_string(rank);
    return shown;
}

std::string_view ClassRule::text_for(Key by, const RequestAttributes& attributes,
                                     Digits& digits) const {
    if (by != Key::kGroup || attributes.groups.size() < 2) return text_of(by, attributes, digits);
    RequestAttributes alone = attributes;
    for (const std::string& group : attributes.groups) {
        alone.groups = std::span(&group, 1);
        if (matches(alone)) return group;
    }
    return attributes.groups.front();
}

ClassHash ClassRule::class_of(const RequestAttributes& attributes, const HashKey& key) const {
    KeyedHash hash(key);
    hash.add(id);
    add_values(hash, attributes);
    return hash.result();
}

void ClassRule::add_values(KeyedHash& hash, const RequestAttributes& attributes) const {
    classes_by.for_each([&](Key by) {
        switch (by) {
            // Hashed as numbers: equal numbers have equal text.
            case Key::kClient: {
                std::array<std::uint64_t, 2> words{};
                std::memcpy(words.data(), attributes.client.data(), sizeof(words));
                hash.add(words[0]);
                hash.add(words[1]);
                break;
            }
            case Key::kObject:
                hash.add(attributes.object.high);
                hash.add(attributes.object.low);
                break;
            case Key::kOp: hash.add(std::uint64_t{attributes.type}); break;
            default: {
                Digits digits;
                hash.add(text_for(by, attributes, digits));
            }
        }
    });
}

ClassHash ClassRule::bucket_of(const ClassHash& of_class, const HashKey& key) const {
    KeyedHash hash(key);
    hash.add(of_class.high);
    hash.add(of_class.low);
    hash.add(limits_id);
    return hash.result();
}

ClassHash ClassRule::own_class(const HashKey& key) const {
    KeyedHash hash(key);
    hash.add(id);
    return hash.result();
}

ClassHash ClassRule::cluster_class(const RequestAttributes& attributes, const HashKey& key) const {
    KeyedHash hash(key);
    hash.add(name);
    add_values(hash, attributes);
    return hash.result();
}

ClassHash ClassRule::own_cluster_class(const HashKey& key) const {
    KeyedHash hash(key);
    hash.add(name);
    return hash.result();
}

std::string ClassRule::class_name(const RequestAttributes& attributes) const {
    std::string shown = name;
    char before = '{';
    classes_by.for_each([&](Key by) {
        shown += before;
        shown += name_of(by);
        shown += '=';
        Digits digits;
        core::append_printable(shown, text_for(by, attributes, digits));
        before = ' ';
    });
    if (!classes_by.is_empty()) shown += '}';
    return shown;
}

std::string ClassRule::own_class_name() const {
    return classes_by.is_empty() ? name : name + "{others}";
}

}  // namespace fopd::lrs

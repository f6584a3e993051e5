#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/address.h"
#include "config/record.h"
#include "config/type.h"
#include "config/units.h"
#include "core/ensure.h"
#include "core/time.h"

namespace fopd::config {

// The types of keys. Each function makes one; they nest: list_of(map_of(record)), auto_or(size()).

// A scalar value. `parse` is given the YAML node, which records whether the text was quoted.
template <typename T>
class ScalarType final : public Type<T> {
public:
    using Parse = std::function<std::expected<T, Mistake>(const Node& scalar)>;
    using Format = std::function<Node(const T& value)>;

    ScalarType(std::string allowed, Parse parse, Format format)
        : allowed_(std::move(allowed)), parse_(std::move(parse)), format_(std::move(format)) {}

    std::optional<T> read(const Node& node, const std::string& path,
                          Problems& problems) const override {
        if (node.kind != Node::Kind::kScalar) {
            report_wrong_kind(node, path, allowed_, problems);
            return std::nullopt;
        }
        auto value = parse_(node);
        if (value) return *std::move(value);
        // If the type's hint begins with the parser's hint, the type's hint is printed: it also
        // states the limits.
        const std::string right = "write " + allowed_;
        const bool is_general = right.starts_with(value.error().right);
        problems.push_back({"", node.position, path, value.error().wrong,
                            is_general ? right : value.error().right});
        return std::nullopt;
    }
    Node write(const T& value) const override { return format_(value); }
    std::string allowed() const override { return allowed_; }

private:
    std::string allowed_;
    Parse parse_;
    Format format_;
};

// The characters allowed in a text. Control characters are never allowed.
enum class Charset : std::uint8_t {
    kAny,
    kName,  // Letters, digits, '.', '_' and '-'.
};
struct TextRule {
    std::size_t length_min = 0;  // Characters.
    std::size_t length_max = 1024;
    Charset charset = Charset::kAny;
};
TypePtr<std::string> text(TextRule rule = {});

// Only true or false.
TypePtr<bool> boolean();

struct DurationRule {
    Duration min = Duration::zero();
    Duration max = Duration::max();
};
TypePtr<Duration> duration(DurationRule rule = {});

// The limits of a size in bytes.
struct SizeRule {
    std::uint64_t min = 0;
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t multiple_of = 1;
};
TypePtr<std::uint64_t> size(SizeRule rule = {});

TypePtr<Rate> rate();

// An absolute path; it is not checked whether anything exists there.
TypePtr<std::string> path();

TypePtr<Address> address();

// A whole number. REQUIRES: min <= max, both representable in T.
struct IntegerRule {
    std::int64_t min;
    std::int64_t max;
};
std::expected<std::int64_t, Mistake> read_integer(const Node& scalar, IntegerRule rule);
std::string allowed_integer(IntegerRule rule);

template <std::integral T>
TypePtr<T> integer(IntegerRule rule) {
    ENSURE(rule.min <= rule.max);
    ENSURE(std::in_range<T>(rule.min));
    ENSURE(std::in_range<T>(rule.max));
    return std::make_shared<ScalarType<T>>(
        allowed_integer(rule),
        [rule](const Node& scalar) -> std::expected<T, Mistake> {
            const auto value = read_integer(scalar, rule);
            if (!value) return std::unexpected(value.error());
            return static_cast<T>(*value);
        },
        [](const T& value) { return plain_scalar(std::to_string(value)); });
}

// The index of `word` in `words`.
std::expected<std::size_t, Mistake> find_word(std::string_view word,
                                              const std::vector<std::string>& words);
std::string allowed_words(const std::vector<std::string>& words);

// One of several words, each with a value. REQUIRES: no word and no value occurs twice.
template <typename E>
TypePtr<E> choice(std::vector<std::pair<std::string, E>> words) {
    std::vector<std::string> names;
    for (const auto& [name, value] : words) names.push_back(name);
    return std::make_shared<ScalarType<E>>(
        allowed_words(names),
        [words, names](const Node& scalar) -> std::expected<E, Mistake> {
            const auto index = find_word(scalar.text, names);
            if (!index) return std::unexpected(index.error());
            return words[*index].second;
        },
        [words](const E& value) {
            const auto row = std::ranges::find(words, value, &std::pair<std::string, E>::second);
            ENSURE(row != words.end());
            return plain_scalar(row->first);
        });
}

// A type that also accepts one word meaning "no value": "auto", "none". REQUIRES: `word` is not a
// value of `type`.
template <typename T>
class WordOrType final : public Type<std::optional<T>> {
public:
    WordOrType(std::string word, TypePtr<T> type)
        : word_(std::move(word)), type_(std::move(type)) {}

    std::optional<std::optional<T>> read(const Node& node, const std::string& path,
                                         Problems& problems) const override {
        // Constructed in place: GCC 12 warns about copying an inner optional without a value, as if
        // that value were used.
        std::optional<std::optional<T>> result(std::in_place);
        if (node.kind == Node::Kind::kScalar && node.text == word_) return result;
        Problems found;
        *result = type_->read(node, path, found);
        for (Problem& problem : found) {
            problem.right += ", or " + word_;
            problems.push_back(std::move(problem));
        }
        if (!result->has_value()) result.reset();
        return result;
    }
    Node write(const std::optional<T>& value) const override {
        return value ? type_->write(*value) : plain_scalar(word_);
    }
    std::string allowed() const override { return word_ + " or " + type_->allowed(); }

private:
    std::string word_;
    TypePtr<T> type_;
};
template <typename T>
TypePtr<std::optional<T>> auto_or(TypePtr<T> type) {
    return std::make_shared<WordOrType<T>>("auto", std::move(type));
}
template <typename T>
TypePtr<std::optional<T>> none_or(TypePtr<T> type) {
    return std::make_shared<WordOrType<T>>("none", std::move(type));
}

// The allowed length of a list, and whether equal items are allowed. Two items with the same
// identity are refused, even if equal items are allowed.
struct ListRule {
    std::size_t length_min = 0;
    std::size_t length_max = 1024;
    enum class Doubles : std::uint8_t { kAllowed, kRefused } doubles = Doubles::kAllowed;
};
bool check_list(const Node& node, const std::string& path, const ListRule& rule,
                const std::string& allowed, Problems& problems);
void report_double(const Node& item, const std::string& path, const std::string& key,
                   const std::string& first_path, Problems& problems);
std::string allowed_list(const ListRule& rule, const std::string& allowed_item);
std::string item_path(const std::string& path, std::size_t index);

template <typename T>
class ListType final : public Type<std::vector<T>> {
public:
    ListType(TypePtr<T> item, ListRule rule) : item_(std::move(item)), rule_(rule) {}

    std::optional<std::vector<T>> read(const Node& node, const std::string& path,
                                       Problems& problems) const override {
        const std::size_t problem_count = problems.size();
        if (!check_list(node, path, rule_, allowed(), problems)) return std::nullopt;
        std::vector<T> values;
        std::map<std::string, std::string> seen;  // Identity to path of the first occurrence.
        for (std::size_t index = 0; index < node.items.size(); ++index) {
            const std::string here = item_path(path, index);
            auto value = item_->read(node.items[index], here, problems);
            if (!value) continue;
            const std::string identity = identity_in_list(*value);
            const auto [first, is_new] = seen.try_emplace(identity, here);
            if (!identity.empty() && !is_new) {
                report_double(node.items[index], here, item_->identity_key(), first->second,
                              problems);
            }
            values.push_back(*std::move(value));
        }
        if (problems.size() != problem_count) return std::nullopt;
        return values;
    }

    Node write(const std::vector<T>& values) const override {
        Node node;
        node.kind = Node::Kind::kList;
        for (const T& value : values) node.items.push_back(item_->write(value));
        return node;
    }

    std::string allowed() const override { return allowed_list(rule_, item_->allowed()); }
    KeyDescription::Shape shape() const override { return KeyDescription::Shape::kList; }
    std::vector<KeyDescription> keys() const override { return item_->keys(); }

    // If both lists have the same identities in the same order, each item is compared with its old
    // value. Otherwise the list changes as one value. If that needs a restart, live keys change
    // nevertheless, in items that both lists have. Items are matched by identity, not by position:
    // two items that are swapped must not swap their values.
    void carry_over(const std::vector<T>& old, std::vector<T>& next, const std::string& path,
                    Reload reload, Changes& changes) const override {
        bool is_same_items = old.size() == next.size();
        for (std::size_t index = 0; is_same_items && index < old.size(); ++index) {
            const std::string identity = item_->identity(old[index]);
            is_same_items = !identity.empty() && identity == item_->identity(next[index]);
        }
        if (!is_same_items) {
            std::vector<T> now = old;
            if (reload == Reload::kRestart) take_live_keys(now, next, path, changes);
            Type<std::vector<T>>::carry_over(now, next, path, reload, changes);
            return;
        }
        for (std::size_t index = 0; index < old.size(); ++index) {
            item_->carry_over(old[index], next[index], item_path(path, index), reload, changes);
        }
    }

private:
    // Gives the items of `now` the live keys of those items of `next` that have their identities.
    // A changed key is reported at its place in `next`, where the user wrote it.
    void take_live_keys(std::vector<T>& now, const std::vector<T>& next, const std::string& path,
                        Changes& changes) const {
        std::map<std::string, std::size_t> places;
        for (std::size_t index = 0; index < next.size(); ++index) {
            places.emplace(item_->identity(next[index]), index);
        }
        places.erase(std::string());
        for (T& item : now) {
            const auto place = places.find(item_->identity(item));
            if (place == places.end()) continue;
            T merged = next[place->second];
            Changes found;
            item_->carry_over(item, merged, item_path(path, place->second), Reload::kRestart,
                              found);
            item = std::move(merged);
            // Keys that need a restart are part of the change of the list.
            std::erase_if(found,
                          [](const Change& change) { return change.reload == Reload::kRestart; });
            std::ranges::move(found, std::back_inserter(changes));
        }
    }

    std::string identity_in_list(const T& value) const {
        std::string identity = item_->identity(value);
        if (!identity.empty() || rule_.doubles == ListRule::Doubles::kAllowed) return identity;
        return to_line(item_->write(value));
    }

    TypePtr<T> item_;
    ListRule rule_;
};
template <typename T>
TypePtr<std::vector<T>> list_of(TypePtr<T> item, ListRule rule = {}) {
    ENSURE(rule.length_min <= rule.length_max);
    return std::make_shared<ListType<T>>(std::move(item), rule);
}

// A list that may be written as a single value, or as "none" if empty.
template <typename T>
class OneOrMoreType final : public Type<std::vector<T>> {
public:
    OneOrMoreType(TypePtr<T> item, ListRule rule) : item_(item), list_(std::move(item), rule) {}

    std::optional<std::vector<T>> read(const Node& node, const std::string& path,
                                       Problems& problems) const override {
        if (node.kind == Node::Kind::kList) return list_.read(node, path, problems);
        const auto one = one_.read(node, path, problems);
        if (!one) return std::nullopt;
        return *one ? std::vector<T>{**one} : std::vector<T>{};
    }
    Node write(const std::vector<T>& values) const override {
        if (values.size() > 1) return list_.write(values);
        return values.empty() ? plain_scalar("none") : item_->write(values.front());
    }
    std::string allowed() const override { return one_.allowed() + ", or " + list_.allowed(); }

private:
    TypePtr<T> item_;
    WordOrType<T> one_{"none", item_};
    ListType<T> list_;
};
template <typename T>
TypePtr<std::vector<T>> one_or_more(TypePtr<T> item, ListRule rule = {}) {
    return std::make_shared<OneOrMoreType<T>>(std::move(item), rule);
}

// A map with the keys of `record`. Each key in the map has its own Reload; the Reload of the map's
// own key is ignored.
template <typename S>
class MapType final : public Type<S> {
public:
    explicit MapType(Record<S> record) : record_(std::move(record)) {}

    std::optional<S> read(const Node& node, const std::string& path,
                          Problems& problems) const override {
        return record_.read(node, path, problems);
    }
    Node write(const S& value) const override { return record_.write(value); }
    std::string allowed() const override { return "a map of " + joined(record_.key_names()); }
    KeyDescription::Shape shape() const override { return KeyDescription::Shape::kMap; }
    std::vector<KeyDescription> keys() const override { return record_.describe(); }
    std::string identity(const S& value) const override { return record_.identity(value); }
    std::string identity_key() const override { return record_.identity_key(); }
    void carry_over(const S& old, S& next, const std::string& path, Reload /*reload*/,
                    Changes& changes) const override {
        record_.carry_over(old, next, path, changes);
    }

private:
    Record<S> record_;
};
template <typename S>
TypePtr<S> map_of(Record<S> record) {
    return std::make_shared<MapType<S>>(std::move(record));
}

}  // namespace fopd::config

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/node.h"
#include "config/problem.h"
#include "config/type.h"
#include "core/ensure.h"

namespace fopd::config {

// Collects a check's complaints about keys that are valid individually but not together.
class Complaints {
public:
    Complaints(const Node& map, std::string path, Problems& problems)
        : map_(map), path_(std::move(path)), problems_(problems) {}

    // `key` is a path from the record, "min" or "devices[2].pool". The problem is reported at the
    // key's position in the file, or at its record's if the key is missing.
    void add(std::string_view key, std::string wrong, std::string right);

private:
    const Node& map_;
    std::string path_;
    Problems& problems_;
};

// Properties of a key besides its type.
struct FieldRule {
    Reload reload = Reload::kRestart;
    Need need = Need::kOptional;
    // The value in the sample file: of a required key, or where another one than the default suits
    // most nodes.
    std::string example = {};
};

// The parts of Record that do not depend on the struct's type.
void ensure_key(std::string_view key, const std::vector<std::string>& taken);
std::string key_path(const std::string& path, std::string_view key);
void report_wrong_kind(const Node& node, const std::string& path, const std::string& allowed,
                       Problems& problems);
void report_missing(const Node& map, const std::string& path, const std::string& allowed,
                    Problems& problems);
// For each key of `known` its value in `map`, or null. Reports unknown and duplicate keys. Returns
// nothing if `map` is not a map.
std::optional<std::vector<const Node*>> match_keys(const Node& map, const std::string& path,
                                                   const std::vector<std::string>& known,
                                                   Problems& problems);

// The keys of a struct: each member's key, type, help text, and when a change takes effect. The
// defaults are those of a default-constructed S. To declare one:
//
//     Record<Pool> record;
//     record.field("name", &Pool::name, text({.length_min = 1}), "The name that clients use.",
//                  {.need = Need::kRequired, .example = "fast"});
//     record.field("quota", &Pool::quota, size(), "Bytes it may hold.", {.reload = Reload::kLive});
//
// Invalid declarations (a bad or duplicate key, a default that its own type refuses) end the
// program.
template <typename S>
class Record {
public:
    using Check = std::function<void(const S& value, Complaints& complaints)>;

    template <typename T>
    Record& field(std::string key, T S::* member, std::type_identity_t<TypePtr<T>> type,
                  std::string help, FieldRule rule = {}) {
        ensure_key(key, key_names_);
        ENSURE(!help.empty());
        if (rule.need == Need::kRequired) ENSURE(!rule.example.empty());
        auto made = std::make_shared<const MemberField<T>>(key, member, std::move(type),
                                                           std::move(help), std::move(rule));
        ENSURE(made->is_default_allowed());
        fields_.push_back(std::move(made));
        key_names_.push_back(std::move(key));
        return *this;
    }

    // Names the field that identifies items of a list: it must be unique, and after a reload items
    // are matched by it. REQUIRES: the field exists, and needs a restart to change.
    Record& identified_by(std::string_view key) {
        for (const auto& field : fields_) {
            if (field->key() == key) identity_ = field;
        }
        ENSURE(identity_ != nullptr);
        ENSURE(identity_->reload() == Reload::kRestart);
        return *this;
    }

    // Checks run in the order in which they were added, after all keys were valid. They must be
    // pure.
    Record& check(Check check) {
        checks_.push_back(std::move(check));
        return *this;
    }

    const std::vector<std::string>& key_names() const { return key_names_; }

    // Null is an empty map, as when every key of a section is commented out.
    std::optional<S> read(const Node& node, const std::string& path, Problems& problems) const {
        const std::size_t problem_count = problems.size();
        const auto values = match_keys(node, path, key_names_, problems);
        if (!values) return std::nullopt;
        S record{};
        for (std::size_t index = 0; index < fields_.size(); ++index) {
            fields_[index]->read((*values)[index], node, path, record, problems);
        }
        if (problems.size() != problem_count) return std::nullopt;
        Complaints complaints(node, path, problems);
        for (const Check& check : checks_) check(record, complaints);
        if (problems.size() != problem_count) return std::nullopt;
        return record;
    }

    Node write(const S& record) const {
        Node node;
        node.kind = Node::Kind::kMap;
        for (const auto& field : fields_) {
            node.entries.push_back({field->key(), {}, field->write(record)});
        }
        return node;
    }

    std::string identity(const S& record) const {
        return identity_ == nullptr ? std::string() : to_line(identity_->write(record));
    }

    std::string identity_key() const {
        return identity_ == nullptr ? std::string() : identity_->key();
    }

    void carry_over(const S& old, S& next, const std::string& path, Changes& changes) const {
        for (const auto& field : fields_) field->carry_over(old, next, path, changes);
    }

    std::vector<KeyDescription> describe() const {
        std::vector<KeyDescription> keys;
        for (const auto& field : fields_) keys.push_back(field->describe());
        return keys;
    }

private:
    class Field {
    public:
        virtual ~Field() = default;
        virtual const std::string& key() const = 0;
        virtual Reload reload() const = 0;
        // `value` is null when the key is not in `map`.
        virtual void read(const Node* value, const Node& map, const std::string& path, S& record,
                          Problems& problems) const = 0;
        virtual Node write(const S& record) const = 0;
        virtual void carry_over(const S& old, S& next, const std::string& path,
                                Changes& changes) const = 0;
        virtual KeyDescription describe() const = 0;
    };

    template <typename T>
    class MemberField final : public Field {
    public:
        MemberField(std::string key, T S::* member, TypePtr<T> type, std::string help,
                    FieldRule rule)
            : key_(std::move(key)),
              member_(member),
              type_(std::move(type)),
              help_(std::move(help)),
              rule_(std::move(rule)) {}

        const std::string& key() const override { return key_; }
        Reload reload() const override { return rule_.reload; }

        void read(const Node* value, const Node& map, const std::string& path, S& record,
                  Problems& problems) const override {
            const std::string here = key_path(path, key_);
            if (value == nullptr && rule_.need == Need::kRequired) {
                report_missing(map, here, type_->allowed(), problems);
                return;
            }
            // A missing map is read as an empty one, so that its missing required keys are
            // reported.
            Node absent;
            absent.position = map.position;
            if (value == nullptr && type_->shape() == KeyDescription::Shape::kMap) value = &absent;
            if (value == nullptr) return;
            auto result = type_->read(*value, here, problems);
            if (result) record.*member_ = *std::move(result);
        }

        Node write(const S& record) const override { return type_->write(record.*member_); }

        void carry_over(const S& old, S& next, const std::string& path,
                        Changes& changes) const override {
            type_->carry_over(old.*member_, next.*member_, key_path(path, key_), rule_.reload,
                              changes);
        }

        KeyDescription describe() const override {
            return KeyDescription{.key = key_,
                                  .help = help_,
                                  .shape = type_->shape(),
                                  .allowed = type_->allowed(),
                                  .default_value = write(S{}),
                                  .example = rule_.example,
                                  .need = rule_.need,
                                  .reload = rule_.reload,
                                  .keys = type_->keys()};
        }

        // The fields of a map were checked when they were declared, so the map itself must only be
        // optional. A required key has an example instead of a default.
        bool is_default_allowed() const {
            if (type_->shape() == KeyDescription::Shape::kMap) {
                return rule_.need == Need::kOptional;
            }
            Problems problems;
            if (rule_.need == Need::kOptional) type_->read(write(S{}), key_, problems);
            return problems.empty();
        }

    private:
        std::string key_;
        T S::* member_;
        TypePtr<T> type_;
        std::string help_;
        FieldRule rule_;
    };

    std::vector<std::shared_ptr<const Field>> fields_;
    std::vector<std::string> key_names_;  // The keys of fields_, in the same order.
    std::shared_ptr<const Field> identity_;
    std::vector<Check> checks_;
};

}  // namespace fopd::config

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fop/fid.h"
#include "fop/status.h"

namespace fopd::reqh::testing {

// What a client asks for, of what others can see.
struct Asked {
    enum class Kind : std::uint8_t {
        kCreate,
        kUploadBegin,
        kUploadCommit,
        kRename,
        kDelete,
        kWrite,
        kAppend,
        kTruncate,
        kPunch,
        kRead,
        kLookup
    };

    Kind kind = Kind::kRead;
    std::uint32_t serial = 0;  // Of all that was asked: the object that it makes is called that.
    fop::Fid fid{};            // What it is about; of a commit, what it makes.
    std::string name{};
    bool no_replace = false;
    bool may_be_lost = false;  // The power went since a part of the upload was written.
    std::uint64_t offset = 0;  // Of a truncate: the size.
    std::uint64_t length = 0;
    std::vector<std::byte> bytes{};
};

// What it was told.
struct Told {
    fop::Status status = fop::Status::kDone;
    fop::Fid fid{};  // Of a create, a lookup.
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes{};
};

// Everything that can have happened, as seen by clients of which each waits for its answer before
// it asks for more: what was asked happens at some time before it is answered, once if it is of the
// kind that happens once, and whole. What nothing of that explains is wrong. It knows neither disks
// nor logs nor localities.
class Model {
public:
    explicit Model(std::size_t clients) : asked_(clients), states_(1, State(clients)) {}

    void ask(std::size_t client, Asked asked);
    // False: it cannot be.
    [[nodiscard]] bool answer(std::size_t client, const Told& told);
    // It was told that nothing was done. False: others have seen it.
    [[nodiscard]] bool give_up(std::size_t client);
    // The server ends. What was not answered has happened or not, and is asked for again.
    void interrupt();
    // Nobody uploads any more, and waits: what is left of replaced objects is to go.
    void forget_replaced();

    // Bytes that are shared as long as they do not change.
    struct Content {
        std::shared_ptr<const std::vector<std::byte>> bytes{};

        const std::vector<std::byte>& operator*() const { return *bytes; }
        friend bool operator==(const Content& one, const Content& other) {
            if (one.bytes == other.bytes) return true;
            return one.bytes && other.bytes && *one.bytes == *other.bytes;
        }
    };
    struct Object {
        std::uint32_t serial = 0;
        fop::Fid fid{};  // Unset: nobody was told yet.
        std::string name{};
        Content content{};
        bool is_replaced = false;  // It has lost its name to another, and goes by itself.

        friend bool operator==(const Object&, const Object&) = default;
    };
    // When nobody waits for an answer, all that was found out.
    const std::vector<Object>& objects() const { return states_.front().objects; }
    std::size_t state_count() const { return states_.size(); }

private:
    // What has happened and is not answered.
    struct Done {
        fop::Status status = fop::Status::kDone;
        bool is_recorded = false;  // Asked for again, it is not done again.
        std::uint32_t serial = 0;  // Of the object that the answer names.
        std::uint64_t offset = 0;
        std::optional<Content> content{};  // Of a read.

        friend bool operator==(const Done&, const Done&) = default;
    };
    struct State {
        explicit State(std::size_t clients) : done(clients) {}
        std::vector<Object> objects;  // By their serials.
        std::vector<std::optional<Done>> done;

        Object* find(fop::Fid fid);
        Object* find_owner(const std::string& name);
        void erase_replaced(const std::string& name);
        friend bool operator==(const State&, const State&) = default;
    };

    void let_happen();
    void add(State state);
    void happen(const State& before, std::size_t client);
    void make(State state, std::size_t client);
    void rename(State state, std::size_t client);
    void remove(State state, std::size_t client);
    void change(State state, std::size_t client);
    void look_up(State state, std::size_t client);
    void refuse(State state, std::size_t client, fop::Status status);
    static bool matches(State& state, const Done& done, const Told& told);

    std::vector<std::optional<Asked>> asked_;
    std::vector<State> states_;
};

}  // namespace fopd::reqh::testing

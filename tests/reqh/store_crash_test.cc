// Goal: what was acknowledged survives a loss of power at any moment, what was not is done whole or
// not at all, and a fop that is asked for again afterwards is done once.
// Method: clients, each with one fop under way, use the same names and objects, over several disks
// and localities; the power goes at a random step of a disk, or the node ends in an orderly way;
// what was not answered is asked for again, and now and then what was, as if the answer had been
// lost on its way. A model of what the clients see says what can be.
// FOPD_SWARM_SEEDS sets how many seeds; FOPD_SEED is the first.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "objects/home_volume.h"
#include "tests/catch.h"
#include "tests/reqh/buffered_object.h"
#include "tests/reqh/store_model.h"
#include "tests/reqh/store_stage.h"
#include "tests/slowness.h"

namespace fopd::reqh::testing {

namespace {

using Way = WriteSpec::Way;
using Kind = Asked::Kind;

constexpr std::size_t kClients = 2;
constexpr std::array<std::string_view, 3> kNames{"a", "b", "c"};
constexpr std::size_t kObjectsUsed = 6;
// More than any object has.
constexpr std::uint64_t kLengthMax = 1 << 18;

class Client {
public:
    Client(StoreStage& node, Model& model, Known& known, std::uint32_t number)
        : node_(node),
          model_(model),
          known_(known),
          number_(number),
          buffered_(node, node.slot(number)) {}

    // Asks for something.
    void begin(core::Random& random) {
        REQUIRE(!is_waiting());
        choose(random);
        spec_.number = 1000 + ++asked_count_;
        spec_.client.fill(static_cast<std::byte>(0xc0 + number_));
        if (what_ == What::kModelled) model_.ask(number_, asked_);
        is_waiting_ = true;
        is_repeated_ = false;
        is_reply_lost_ = false;
        spec_.transfer_time = std::chrono::microseconds(random.below(200));
        // What is asked for again may have been done, and is waited for.
        if (random.below(5) == 0) {
            spec_.deadline = after(node_.world.now(), std::chrono::microseconds(random.below(600)));
        }
        send(random);
        spec_.deadline = kNever;
    }
    // Now and then the client does not want it any more.
    void lose_patience(core::Random& random) {
        if (!is_waiting_ || is_repeated_ || fop_->answer || random.below(300) != 0) return;
        fop_->cancel_source().cancel();
    }
    bool is_waiting() const { return is_waiting_; }
    // Now and then the answer is lost on its way, and the client asks again a while later.
    void lose_reply(core::Random& random) {
        if (!is_waiting_ || is_repeated_) return;
        if (!is_reply_lost_) {
            is_reply_lost_ = fop_->answer.has_value() && random.below(6) == 0;
        } else if (random.below(20) == 0) {
            is_reply_lost_ = false;
            is_repeated_ = true;
            send(random);
        }
    }
    bool is_answered() const { return is_waiting_ && !is_reply_lost_ && fop_->answer.has_value(); }

    // The answer is there.
    void end() {
        const FakeFop& fop = *fop_;
        CAPTURE(number_, asked_count_, spec_.type, fop::to_string(fop.status()), fop.answer->words);
        is_waiting_ = false;
        const bool is_given_up =
            fop.status() == fop::Status::kTimedOut || fop.status() == fop::Status::kCancelled;
        if (is_given_up) return end_given_up();
        note_durable(fop.answer->body);
        switch (what_) {
            case What::kModelled: end_modelled(fop); break;
            case What::kUploadWrite:
                REQUIRE(fop.status() == fop::Status::kDone);
                ++upload_->parts_written;
                break;
            case What::kUploadAbort:
                REQUIRE(fop.status() == fop::Status::kDone);
                upload_.reset();
                break;
            case What::kBuffered:
                REQUIRE(fop.status() == fop::Status::kDone);
                buffered_.end(std::get<fop::WriteReply>(fop.answer->body).changed.receipt);
                break;
        }
    }
    // The node has ended: whether it still answered.
    bool was_answered_at_the_end() const {
        if (!is_answered()) return false;
        const fop::Status status = fop_->status();
        return status != fop::Status::kTryAgain && status != fop::Status::kOutcomeUnknown;
    }

    void recover(core::Random& random, bool was_orderly) {
        buffered_.recover(known_, was_orderly);
        if (upload_) upload_->may_be_lost = true;
        if (!is_waiting_) return;
        if (what_ == What::kBuffered) {
            is_waiting_ = false;
            return;
        }
        if (asked_.kind == Kind::kUploadCommit && what_ == What::kModelled) {
            asked_.may_be_lost = true;
            model_.ask(number_, asked_);
        }
        is_repeated_ = true;
        is_reply_lost_ = false;
        send(random);
    }
    void wait() {
        if (!is_waiting_) return;
        node_.wait_for(*fop_);
        end();
    }
    void abort_upload(core::Random& random) {
        if (!upload_) return;
        REQUIRE(!is_waiting());
        choose_abort();
        spec_.number = 1000 + ++asked_count_;
        is_waiting_ = true;
        send(random);
        wait();
    }

private:
    enum class What : std::uint8_t { kModelled, kUploadWrite, kUploadAbort, kBuffered };
    struct Upload {
        fop::Fid fid{};
        std::string_view name{};
        bool no_replace = false;
        Bytes bytes{};
        std::size_t parts_written = 0;  // Of two.
        bool may_be_lost = false;
    };

    void send(core::Random& random) {
        fop_ =
            &node_.send(spec_, static_cast<std::uint32_t>(random.below(node_.options.localities)));
    }

    // -- what to ask for --

    void choose(core::Random& random) {
        what_ = What::kModelled;
        spec_ = {};
        asked_ = {.serial = ++known_.serial};
        if (upload_ && random.below(2) == 0) return choose_upload_step(random);
        const std::uint64_t dice = random.below(24);
        if (dice < 2) {
            what_ = What::kBuffered;
            spec_ = buffered_.begin(random);
        } else if (dice < 5 || known_.objects.empty()) {
            choose_create(random);
        } else if (dice < 7 && !upload_) {
            choose_upload(random);
        } else if (dice < 9) {
            asked_.kind = Kind::kLookup;
            asked_.name = kNames[random.below(kNames.size())];
            spec_ = {.type = type_of("lookup"), .body = fop::Lookup{.name = asked_.name}};
        } else {
            asked_.fid = known_.objects[random.below(known_.objects.size())];
            choose_use(random, dice);
        }
    }

    std::string_view some_name(core::Random& random) {
        const std::uint64_t which = random.below(kNames.size() + 1);
        return which < kNames.size() ? kNames[which] : std::string_view();
    }
    std::uint16_t some_slot(core::Random& random) const {
        return node_.slot(random.below(node_.options.disks));
    }

    void choose_create(core::Random& random) {
        const std::string_view name = some_name(random);
        asked_.kind = Kind::kCreate;
        asked_.name = name;
        asked_.no_replace = random.below(3) == 0;
        spec_ = {.type = type_of("create"),
                 .body = fop::Create{.name = name,
                                     .slot = some_slot(random),
                                     .mode = 0600,
                                     .no_replace = asked_.no_replace}};
    }

    void choose_upload(core::Random& random) {
        const std::string_view name = some_name(random);
        asked_.kind = Kind::kUploadBegin;
        asked_.name = name;
        asked_.no_replace = random.below(3) == 0;
        next_upload_ = {
            .name = name,
            .no_replace = asked_.no_replace,
            .bytes = pattern(objects::kBlock + 1 + random.below(20'000), random.next())};
        spec_ = {.type = type_of("upload_begin"),
                 .body = fop::UploadBegin{.name = name,
                                          .slot = some_slot(random),
                                          .mode = 0600,
                                          .no_replace = asked_.no_replace}};
    }

    void choose_upload_step(core::Random& random) {
        if (upload_->parts_written < 2) {
            choose_upload_write(random);
        } else if (random.below(6) == 0) {
            choose_abort();
        } else {
            asked_ = {.kind = Kind::kUploadCommit,
                      .serial = asked_.serial,
                      .fid = upload_->fid,
                      .name = std::string(upload_->name),
                      .no_replace = upload_->no_replace,
                      .may_be_lost = upload_->may_be_lost,
                      .bytes = upload_->bytes};
            const std::size_t size = upload_->bytes.size();
            spec_ = {.type = type_of("upload_commit"),
                     .body = fop::UploadCommit{
                         .fid = upload_->fid,
                         .size_bytes = size,
                         .blocks = (size + objects::kBlock - 1) / objects::kBlock}};
        }
    }

    void choose_upload_write(core::Random& random) {
        what_ = What::kUploadWrite;
        const std::size_t cut = upload_->bytes.size() / 2 / objects::kBlock * objects::kBlock;
        const bool is_first = upload_->parts_written == 0;
        const std::size_t from = is_first ? 0 : cut;
        const std::size_t to = is_first ? cut : upload_->bytes.size();
        const Bytes part(upload_->bytes.begin() + static_cast<std::ptrdiff_t>(from),
                         upload_->bytes.begin() + static_cast<std::ptrdiff_t>(to));
        const fop::Range range{.offset = from, .length = to - from};
        checksums_ = checksums_of({range}, part);
        fop::UploadWrite body{
            .fid = upload_->fid,
            .range = range,
            .checksums = fop::List<std::uint32_t>(checksums_.data(), checksums_.size())};
        spec_ = {.type = type_of("upload_write")};
        if (random.below(2) == 0) {
            body.source.emplace();
            spec_.source = part;
        } else {
            spec_.payload_bytes = part;
        }
        spec_.body = body;
    }

    void choose_abort() {
        what_ = What::kUploadAbort;
        spec_ = {.type = type_of("upload_abort"), .body = fop::UploadAbort{.fid = upload_->fid}};
        spec_.client.fill(static_cast<std::byte>(0xc0 + number_));
    }

    void choose_use(core::Random& random, std::uint64_t dice) {
        const auto way = random.below(2) == 0 ? Way::kInline : Way::kMemory;
        if (dice < 12) {
            asked_.kind = Kind::kRename;
            asked_.name = kNames[random.below(kNames.size())];
            asked_.no_replace = random.below(3) == 0;
            spec_ = {.type = type_of("rename"),
                     .body = fop::Rename{
                         .fid = asked_.fid, .name = asked_.name, .no_replace = asked_.no_replace}};
        } else if (dice < 14) {
            asked_.kind = Kind::kDelete;
            spec_ = {.type = type_of("delete"), .body = fop::Delete{.fid = asked_.fid}};
        } else if (dice < 16) {
            asked_.kind = Kind::kRead;
            read_ = std::make_unique<ReadSpec>(
                asked_.fid, std::vector{fop::Range{.offset = 0, .length = kLengthMax}});
            spec_ = read_->spec(Way::kMemory);
        } else if (dice < 19) {
            asked_.kind = Kind::kAppend;
            asked_.bytes = pattern(1 + random.below(6000), random.next());
            append_ = std::make_unique<AppendSpec>(asked_.fid, asked_.bytes);
            spec_ = append_->spec(way);
        } else if (dice < 20) {
            asked_.kind = Kind::kTruncate;
            asked_.offset = random.below(20'000);
            spec_ = truncate(asked_.fid, asked_.offset);
        } else if (dice < 21) {
            asked_.kind = Kind::kPunch;
            asked_.offset = random.below(20'000);
            asked_.length = 1 + random.below(10'000);
            spec_ = punch(asked_.fid, {.offset = asked_.offset, .length = asked_.length});
        } else {
            asked_.kind = Kind::kWrite;
            asked_.offset = random.below(20'000);
            asked_.bytes = pattern(1 + random.below(9000), random.next());
            write_ = std::make_unique<WriteSpec>(
                asked_.fid,
                std::vector{fop::Range{.offset = asked_.offset, .length = asked_.bytes.size()}},
                asked_.bytes);
            spec_ = write_->spec(way);
        }
    }

    // -- what was answered --

    // Nothing has changed.
    void end_given_up() {
        if (what_ == What::kModelled) REQUIRE(model_.give_up(number_));
        if (what_ == What::kBuffered) buffered_.give_up();
    }

    void end_modelled(const FakeFop& fop) {
        Told told{.status = fop.status()};
        if (told.status == fop::Status::kDone) told = told_by(fop);
        REQUIRE(model_.answer(number_, told));
        const bool is_done = told.status == fop::Status::kDone;
        if (told.status == fop::Status::kNotFound && asked_.fid.is_set()) {
            std::erase(known_.objects, asked_.fid);
        }
        if (asked_.kind == Kind::kUploadBegin && is_done) {
            upload_ = next_upload_;
            upload_->fid = std::get<fop::UploadBeginReply>(fop.answer->body).fid;
        }
        if (asked_.kind == Kind::kUploadCommit && told.status == fop::Status::kLost) {
            upload_->parts_written = 0;
            upload_->may_be_lost = false;
        }
        if (asked_.kind == Kind::kUploadCommit && is_done) upload_.reset();
        const bool is_new = asked_.kind == Kind::kCreate || asked_.kind == Kind::kUploadCommit;
        if (!is_done || !is_new) return;
        known_.all.push_back(told.fid);
        known_.objects.push_back(told.fid);
        if (known_.objects.size() > kObjectsUsed) known_.objects.erase(known_.objects.begin());
    }

    Told told_by(const FakeFop& fop) const {
        const fop::ReplyBody& body = fop.answer->body;
        switch (asked_.kind) {
            case Kind::kCreate: return {.fid = std::get<fop::CreateReply>(body).fid};
            case Kind::kUploadCommit: return {.fid = asked_.fid};
            case Kind::kLookup: return {.fid = std::get<fop::LookupReply>(body).attributes.fid};
            case Kind::kAppend: return {.offset = std::get<fop::AppendReply>(body).offset};
            case Kind::kRead: {
                Told told{.bytes = fop.target};
                told.bytes.resize(std::get<fop::ReadReply>(body).bytes);
                return told;
            }
            default: return {};
        }
    }

    void note_durable(const fop::ReplyBody& body) {
        if (what_ != What::kModelled) return;
        fop::Receipt receipt;
        const auto note = [&receipt](const auto& reply) { receipt = reply.receipt; };
        if (const auto* const each = std::get_if<fop::CreateReply>(&body)) note(*each);
        if (const auto* const each = std::get_if<fop::DeleteReply>(&body)) note(*each);
        if (const auto* const each = std::get_if<fop::UploadCommitReply>(&body)) note(*each);
        if (const auto* const each = std::get_if<fop::RenameReply>(&body)) note(each->changed);
        if (const auto* const each = std::get_if<fop::WriteReply>(&body)) note(each->changed);
        if (const auto* const each = std::get_if<fop::AppendReply>(&body)) note(each->changed);
        if (const auto* const each = std::get_if<fop::TruncateReply>(&body)) note(each->changed);
        if (const auto* const each = std::get_if<fop::PunchReply>(&body)) note(each->changed);
        std::uint64_t& durable = known_.durable[receipt.slot];
        durable = std::max(durable, receipt.seq);
    }

    StoreStage& node_;
    Model& model_;
    Known& known_;
    const std::uint32_t number_;
    BufferedObject buffered_;

    What what_ = What::kModelled;
    Asked asked_;
    FopSpec spec_;
    std::unique_ptr<WriteSpec> write_;
    std::unique_ptr<AppendSpec> append_;
    std::unique_ptr<ReadSpec> read_;
    std::vector<std::uint32_t> checksums_;
    FakeFop* fop_ = nullptr;
    bool is_waiting_ = false;
    bool is_repeated_ = false;
    bool is_reply_lost_ = false;
    std::uint64_t asked_count_ = 0;
    std::optional<Upload> upload_;
    Upload next_upload_;
};

// A node, its clients, and what they find.
class History {
public:
    explicit History(std::uint64_t seed)
        : random_(seed),
          node_({.localities = 1 + static_cast<std::uint32_t>(random_.below(3)),
                 .disks = 2 + static_cast<std::uint32_t>(random_.below(2)),
                 .disk_bytes = 8UL << 20,
                 .seed = seed,
                 .coalescer = {.bytes_per_second = random_.below(2) << 30,
                               .interval = 1ms,
                               .idle = Duration{0},
                               .breaks_max = 0},
                 .slow_holes = random_.below(2) == 0,
                 .sweep = seed % 2 == 0 ? store::SweepOptions{.extents_a_turn = 1, .pause = 1ms}
                                        : store::SweepOptions{},
                 .whose_seed = fopd::testing::Replay::Seed::kOfSwarm}),
          model_(kClients) {
        for (std::uint32_t i = 0; i < node_.options.disks; ++i) {
            used_at_first_.push_back(used_blocks(i));
        }
        for (std::uint32_t i = 0; i < kClients; ++i) {
            clients_.push_back(std::make_unique<Client>(node_, model_, known_, i));
        }
    }

    void run() {
        for (int life = 0; life < 3; ++life) {
            const bool is_orderly = random_.below(5) == 0;
            live(is_orderly);
            model_.interrupt();
            node_.start();
            for (const auto& client : clients_) client->recover(random_, is_orderly);
            known_.durable.clear();
        }
        for (const auto& client : clients_) client->wait();
        settle();
        check_objects();
        check_nothing_is_held();
        remove_all();
    }

private:
    void live(bool is_orderly) {
        const std::uint64_t steps = 1 + random_.below(80);
        const std::uint64_t end = node_.power().steps() + steps;
        if (!is_orderly) node_.power().cut_at(end);
        for (;;) {
            for (const auto& client : clients_) {
                client->lose_reply(random_);
                if (client->is_answered()) client->end();
                if (!client->is_waiting()) client->begin(random_);
            }
            if (!node_.power().on() || node_.power().steps() >= end) break;
            REQUIRE(node_.world.step());
            for (const auto& client : clients_) client->lose_patience(random_);
        }
        if (is_orderly) {
            node_.stop();
        } else {
            node_.lose_power();
        }
        for (const auto& client : clients_) {
            if (client->was_answered_at_the_end()) client->end();
        }
    }

    // Nothing is under way, and what was replaced is gone.
    void settle() {
        for (const auto& client : clients_) client->abort_upload(random_);
        node_.run_for(1500ms);
        model_.forget_replaced();
    }

    // All that there was is asked for once more; then nothing is left open.
    void check_objects() {
        for (const fop::Fid fid : known_.all) {
            const ReadSpec read(fid, {{.offset = 0, .length = kLengthMax}});
            const FakeFop& fop = node_.call(read.spec(Way::kMemory));
            Told told{.status = fop.status(), .bytes = fop.target};
            if (told.status == fop::Status::kDone) {
                told.bytes.resize(std::get<fop::ReadReply>(fop.answer->body).bytes);
            }
            model_.ask(0, {.kind = Kind::kRead, .fid = fid});
            REQUIRE(model_.answer(0, told));
        }
        for (const std::string_view name : kNames) {
            const FakeFop& fop =
                node_.call({.type = type_of("lookup"), .body = fop::Lookup{.name = name}});
            Told told{.status = fop.status()};
            if (told.status == fop::Status::kDone) {
                told.fid = std::get<fop::LookupReply>(fop.answer->body).attributes.fid;
            }
            model_.ask(0, {.kind = Kind::kLookup, .name = std::string(name)});
            REQUIRE(model_.answer(0, told));
        }
        REQUIRE(model_.state_count() == 1);
        for (const Model::Object& object : model_.objects()) {
            REQUIRE(node_.stat(object.fid).name == object.name);
            REQUIRE(node_.stat(object.fid).size_bytes == (*object.content).size());
        }
        FakeFop& room = node_.call({.type = type_of("statfs"), .body = fop::Statfs{}});
        REQUIRE(std::get<fop::StatfsReply>(room.answer->body).objects ==
                model_.objects().size() + kClients);
    }

    void check_nothing_is_held() {
        for (const Model::Object& object : model_.objects()) {
            FopSpec spec = truncate(object.fid, (*object.content).size());
            spec.deadline = after(node_.world.now(), 1s);
            REQUIRE(node_.call(spec).status() == fop::Status::kDone);
        }
        for (const std::string_view name : kNames) {
            FopSpec spec{.type = type_of("create"),
                         .body = fop::Create{.name = name, .slot = kFirstSlot, .mode = 0600}};
            spec.deadline = after(node_.world.now(), 1s);
            FakeFop& fop = node_.call(spec);
            REQUIRE(fop.status() == fop::Status::kDone);
            known_.all.push_back(std::get<fop::CreateReply>(fop.answer->body).fid);
        }
        node_.run_for(1500ms);  // Nothing is brought together any more.
        REQUIRE(node_.all_buffers_are_back());
        for (std::uint32_t i = 0; i < node_.options.localities; ++i) {
            for (const auto& home : node_.stores(i).volumes()) {
                REQUIRE(home->checksum_errors().get() == 0);
            }
        }
    }

    // All room comes back: what was lost on the way would stay in use.
    void remove_all() {
        for (const fop::Fid fid : known_.all) {
            [[maybe_unused]] const FakeFop& removed =
                node_.call({.type = type_of("delete"), .body = fop::Delete{.fid = fid}});
        }
        node_.run_for(1500ms);
        FakeFop& room = node_.call({.type = type_of("statfs"), .body = fop::Statfs{}});
        REQUIRE(std::get<fop::StatfsReply>(room.answer->body).objects == kClients);
        for (std::uint32_t i = 0; i < node_.options.disks; ++i) {
            // What is left are the clients' own objects, of at most three blocks.
            REQUIRE(used_blocks(i) <= used_at_first_[i] + 3 * kClients);
        }
    }

    std::uint64_t used_blocks(std::uint32_t disk) {
        return node_.volume(disk).space_use().used_blocks;
    }

    core::Random random_;
    StoreStage node_;
    Model model_;
    Known known_;
    std::vector<std::uint64_t> used_at_first_;
    std::vector<std::unique_ptr<Client>> clients_;
};

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

// A node that leaves out one of its rules has to be found out.
#ifdef FOPD_MUTANT
constexpr const char* kTags = "[reqh][swarm][!shouldfail]";
#else
constexpr const char* kTags = "[reqh][swarm]";
#endif

TEST_CASE("reqh store: crashes lose nothing that was acknowledged, and double nothing", kTags) {
    const std::uint64_t first = number_in("FOPD_SEED", 1);
    const std::uint64_t count = number_in("FOPD_SWARM_SEEDS", fopd::testing::few_of(40));
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        CAPTURE(seed);
        History history(seed);
        history.run();
    }
}

}  // namespace fopd::reqh::testing

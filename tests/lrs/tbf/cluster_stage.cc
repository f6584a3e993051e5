#include "tests/lrs/tbf/cluster_stage.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "eh/settings.h"
#include "lrs/tbf/tbf.h"
#include "tests/catch.h"

namespace fopd::lrs::testing {

// -- epochs --

class EpochHub::Timeout final : public core::Timer {
public:
    Timeout(EpochHub& hub, void (EpochHub::*on_time)())
        : Timer([](Timer& timer) {
              auto& self = static_cast<Timeout&>(timer);
              (self.hub_.*self.on_time_)();
          }),
          hub_(hub),
          on_time_(on_time) {}

private:
    EpochHub& hub_;
    void (EpochHub::*on_time_)();
};

class EpochHub::Seat final : public eh::EpochHandler, core::Timer {
public:
    Seat(EpochHub& hub, core::Reactor& reactor)
        : Timer([](Timer& timer) { static_cast<Seat&>(timer).on_time(); }),
          hub_(hub),
          reactor_(reactor) {}

    const eh::EpochRules& rules() const override { return hub_.rules_; }
    Result<void> next_epoch(eh::EpochNumber current, std::span<const std::byte> data,
                            eh::Participant& participant) override {
        REQUIRE(waiting_ == nullptr);
        waiting_ = &participant;
        data_.assign(data.begin(), data.end());
        is_first_ = current == eh::kFirstEpoch;
        if (is_cut_off_) {
            answer_after(hub_.options_.timeout, std::unexpected(Error{.code = Errc::kTimedOut}));
        } else if (!is_in_ && !is_first_) {
            answer_after({}, std::unexpected(Error{.code = Errc::kDenied}));
        } else {
            is_ready_ = true;
            hub_.look();
        }
        return {};
    }
    void last_epoch(eh::EpochNumber /*current*/) override {
        disarm();
        is_in_ = is_ready_ = false;
        if (waiting_ != nullptr) answer(std::unexpected(Error{.code = Errc::kCancelled}));
        hub_.look();
    }

private:
    friend EpochHub;

    void answer_after(Duration delay, Result<eh::EpochNumber> epoch) {
        epoch_ = epoch;
        reactor_.arm(*this, after(reactor_.now(), delay + 1ns));
    }
    void on_time() { answer(epoch_); }
    void answer(Result<eh::EpochNumber> epoch) {
        if (waiting_ == nullptr) return;
        has_begun_ = true;
        const std::vector<std::byte> data = epoch ? result_ : std::vector<std::byte>();
        std::exchange(waiting_, nullptr)->on_epoch(epoch, data);
    }

    EpochHub& hub_;
    core::Reactor& reactor_;
    eh::Participant* waiting_ = nullptr;
    std::vector<std::byte> data_;
    std::vector<std::byte> result_;
    Result<eh::EpochNumber> epoch_ = eh::kFirstEpoch;
    bool is_first_ = false;
    bool is_in_ = false;     // A member.
    bool has_begun_ = true;  // Not on the way: the epoch that the hub has begun.
    bool is_ready_ = false;  // And the hub has heard it.
    bool is_cut_off_ = false;
};

namespace {

// As a daemon has them.
eh::EpochRules rules_of(const EpochHub::Options& options) {
    const eh::EpochSettings settings{.timeout = options.timeout};
    eh::EpochRules rules = epoch_rules(options.timeout);
    rules.left_out_after = std::min(2 * settings.grace_in_force(), settings.root_silent);
    return rules;
}

}  // namespace

EpochHub::EpochHub(core::VirtualWorld& world, const Options& options)
    : world_(world),
      options_(options),
      rules_(rules_of(options)),
      reactor_(world.make_reactor()),
      random_(world.seed()),
      timeout_(std::make_unique<Timeout>(*this, &EpochHub::on_timeout)),
      left_out_(std::make_unique<Timeout>(*this, &EpochHub::on_left_out)) {}

EpochHub::~EpochHub() = default;

EpochHub::Seat& EpochHub::add_seat(core::Reactor& reactor) {
    seats_.push_back(std::make_unique<Seat>(*this, reactor));
    return *seats_.back();
}

void EpochHub::cut_off(Seat& seat) {
    seat.is_cut_off_ = true;
    seat.is_ready_ = false;
    // Also an epoch that is on its way is lost.
    if (seat.waiting_ != nullptr)
        seat.answer_after(options_.timeout, std::unexpected(Error{.code = Errc::kTimedOut}));
}

void EpochHub::heal(Seat& seat) {
    seat.is_cut_off_ = false;
}

void EpochHub::look() {
    const auto ready =
        std::ranges::count_if(seats_, [](const auto& seat) { return seat->is_ready_; });
    if (ready == 0) return;
    const bool is_all = std::ranges::all_of(
        seats_, [](const auto& seat) { return seat->is_ready_ || !seat->is_in_; });
    if (is_all) return decide();
    if (!timeout_->armed()) reactor_->arm(*timeout_, after(world_.now(), options_.timeout));
}

void EpochHub::on_timeout() {
    for (const auto& seat : seats_) seat->is_in_ = seat->is_in_ && seat->is_ready_;
    look();
}

void EpochHub::on_left_out() {
    for (const auto& seat : seats_) seat->is_in_ = seat->is_in_ && seat->has_begun_;
    look();
}

void EpochHub::decide() {
    timeout_->disarm();
    std::vector<std::vector<std::byte>> left;
    for (const auto& seat : seats_) {
        if (seat->is_ready_) left.push_back(seat->data_);
    }
    while (left.size() > 1) {
        std::swap(left[random_.below(left.size())], left.back());
        const std::vector<std::byte> one = std::move(left.back());
        left.pop_back();
        std::vector<std::byte>& other = left[random_.below(left.size())];
        rules_.combine(other, other, one);
    }
    epoch_ += 1 + static_cast<eh::EpochNumber>(random_.below(3));
    ++begun_count_;
    begun_at.push_back(world_.now());
    left_out_->disarm();
    reactor_->arm(*left_out_, after(world_.now(), rules_.left_out_after));
    for (const auto& seat : seats_) {
        if (!std::exchange(seat->is_ready_, false)) continue;
        seat->is_in_ = true;
        seat->has_begun_ = false;
        seat->result_ = left.front();
        const auto most = static_cast<std::uint64_t>(options_.ragged_max.count());
        seat->answer_after(Duration(static_cast<Duration::rep>(random_.below(most + 1))), epoch_);
    }
}

// -- servers --

// Sends requests of one kind to a locality, and takes what is served.
class ClusterStage::Client final : core::Timer {
public:
    struct Sent : StageRequest {
        using StageRequest::StageRequest;
        Client* client = nullptr;
    };

    Client(ClusterStage& stage, core::Reactor& reactor, Scheduler& scheduler, std::size_t server,
           std::string_view text)
        : Timer([](Timer& timer) { static_cast<Client&>(timer).on_time(); }),
          stage_(stage),
          reactor_(reactor),
          scheduler_(scheduler),
          server_(server),
          text_(text) {}

    // In a turn of the reactor, which has the right time. Those beyond that are given up.
    void keep(std::size_t count) {
        kept_ = count;
        reactor_.arm(change_, after(stage_.now(), 1ns));
    }
    void send(double per_second) {
        per_second_ = per_second;
        reactor_.arm(change_, after(stage_.now(), 1ns));
    }
    void stop() {
        disarm();
        change_.disarm();
    }
    void on_served(Sent& sent) {
        const std::uint64_t amount = stage_.options_.counts_bytes ? sent.attributes.size_bytes : 1;
        stage_.served[text_].push_back({stage_.now(), amount, server_});
        scheduler_.complete(sent);
        idle_.push_back(&sent);
        --waiting_;
        send_missing();
    }

private:
    class Change final : public core::Timer {
    public:
        explicit Change(Client& client)
            : Timer([](Timer& timer) { static_cast<Change&>(timer).client_.change(); }),
              client_(client) {}

    private:
        Client& client_;
    };

    void change() {
        disarm();
        if (per_second_ > 0) arm_next();
        for (Sent& sent : requests_) {
            if (waiting_ <= kept_) break;
            if (!sent.queued()) continue;
            scheduler_.remove(sent);
            idle_.push_back(&sent);
            --waiting_;
        }
        send_missing();
    }
    void send_missing() {
        while (waiting_ < kept_) send_one();
    }
    void send_one() {
        if (idle_.empty()) {
            idle_.push_back(&requests_.emplace_back(text_));
            idle_.back()->client = this;
        }
        Sent& sent = *idle_.back();
        idle_.pop_back();
        ++waiting_;
        scheduler_.incoming(sent);
    }
    void arm_next() {
        const double drawn = (static_cast<double>(stage_.world.random().below(1U << 30)) + 1) /
                             static_cast<double>(1U << 30);
        const double seconds = -std::log(drawn) / per_second_;
        reactor_.arm(
            *this, after(reactor_.now(), Duration(static_cast<Duration::rep>(1 + seconds * 1e9))));
    }
    void on_time() {
        arm_next();
        send_one();
    }

    ClusterStage& stage_;
    core::Reactor& reactor_;
    Scheduler& scheduler_;
    const std::size_t server_;
    const std::string text_;
    Change change_{*this};
    std::deque<Sent> requests_;
    std::vector<Sent*> idle_;
    std::size_t waiting_ = 0;
    std::size_t kept_ = 0;
    double per_second_ = 0;
};

class ClusterStage::Server {
public:
    Server(ClusterStage& stage, std::size_t index, const std::vector<std::string>& rules)
        : stage_(stage), index_(index), node_(stage.options_.seed + index) {
        choice_.policy = &*std::ranges::find(policies(), "tbf", &PolicyEntry::name);
        choice_.tbf.rules = rules;
        choice_.tbf.cut_off = stage.options_.cut_off;
        const bool is_odd = stage.options_.has_odd_key && index + 1 == stage.options_.servers;
        node_.set_cluster({.key = HashKey{.first = is_odd ? 1U : 7U, .second = 8},
                           .localities = stage.options_.localities,
                           .members = static_cast<std::uint32_t>(stage.options_.servers)});
        for (std::uint32_t i = 0; i < stage.options_.localities; ++i) {
            reactors_.push_back(stage.world.make_reactor());
            if (i == 0) {
                seat = &stage.hub->add_seat(*reactors_.front());
                fold_.emplace(*reactors_.front(), *seat);
            }
            localities_.push_back(
                std::make_unique<Locality>(*reactors_[i], *fold_, choice_.make(parts())));
        }
    }
    ~Server() {
        for (const auto& each : localities_) each->close(stage_.world);
    }

    Client& client(std::size_t locality, std::string_view text) {
        auto& made = localities_[locality]->clients[std::string(text)];
        if (made == nullptr) {
            made = std::make_unique<Client>(stage_, *reactors_[locality],
                                            localities_[locality]->scheduler, index_, text);
        }
        return *made;
    }
    std::size_t locality_count() const { return localities_.size(); }
    void use(const PolicyChoice& choice) {
        const bool is_kind = choice.is_kind_of(choice_);
        choice_ = choice;
        for (const auto& each : localities_) {
            if (!is_kind || !each->scheduler.adapt(choice_, parts()))
                each->scheduler.use(choice_.make(parts()));
        }
    }
    const PolicyChoice& choice() const { return choice_; }
    std::vector<ClassFigures> figures() {
        std::vector<ClassFigures> all;
        for (const auto& each : localities_)
            std::ranges::move(each->scheduler.class_figures(), std::back_inserter(all));
        return together(std::move(all), 1000);
    }

    void stand_still(Instant until) {
        for (const auto& each : reactors_) stage_.world.stall(*each, until);
    }

    EpochHub::Seat* seat = nullptr;

private:
    class Taker final : public Getter {
    public:
        explicit Taker(Scheduler& scheduler) : scheduler_(scheduler) { scheduler.next(*this); }
        void on_request(Request* request) override {
            if (request == nullptr) return;
            auto& sent = static_cast<Client::Sent&>(*request);
            if (is_closing) {
                scheduler_.complete(sent);
            } else {
                sent.client->on_served(sent);
            }
            scheduler_.next(*this);
        }
        bool is_closing = false;

    private:
        Scheduler& scheduler_;
    };
    struct Locality {
        Locality(core::Reactor& on, eh::LocalityFold& fold, std::unique_ptr<Policy> policy)
            : reactor(on),
              epochs(on, fold),
              scheduler(on, std::move(policy), &epochs),
              taker(scheduler) {}
        void close(core::VirtualWorld& at) {
            for (const auto& [text, client] : clients) client->stop();
            taker.is_closing = true;
            scheduler.shutdown();
            REQUIRE(at.run(reactor, epochs.close()));
        }

        core::Reactor& reactor;
        eh::LocalityFold::End epochs;
        std::map<std::string, std::unique_ptr<Client>> clients;
        Scheduler scheduler;
        Taker taker;
    };

    PolicyParts parts() { return {.seed = 1, .share = choice_.share(node_, stage_.world.now())}; }

    ClusterStage& stage_;
    const std::size_t index_;
    PolicyNode node_;
    PolicyChoice choice_;
    std::vector<std::unique_ptr<core::Reactor>> reactors_;
    std::optional<eh::LocalityFold> fold_;
    std::vector<std::unique_ptr<Locality>> localities_;
};

ClusterStage::ClusterStage(const Options& options)
    : Replay(options.seed), world(options.seed), options_(options) {
    world.run_for(100s);
    hub = std::make_unique<EpochHub>(world, options.epochs);
    for (std::size_t i = 0; i < options.servers; ++i)
        servers_.push_back(std::make_unique<Server>(*this, i, options.rules));
}

ClusterStage::~ClusterStage() = default;

void ClusterStage::keep_waiting(std::size_t server, std::string_view request, std::size_t count) {
    Server& at = *servers_[server];
    for (std::size_t i = 0; i < at.locality_count(); ++i) at.client(i, request).keep(count);
}

void ClusterStage::send(std::size_t server, std::string_view request, double per_second) {
    Server& at = *servers_[server];
    const auto count = static_cast<double>(at.locality_count());
    for (std::size_t i = 0; i < at.locality_count(); ++i)
        at.client(i, request).send(per_second / count);
}

void ClusterStage::run_for(Duration span) {
    world.run_for(span);
}

void ClusterStage::cut_off(std::size_t server) {
    hub->cut_off(*servers_[server]->seat);
}

void ClusterStage::heal(std::size_t server) {
    hub->heal(*servers_[server]->seat);
}

void ClusterStage::stand_still(std::size_t server, Duration span) {
    servers_[server]->stand_still(now() + span);
}

void ClusterStage::restart(std::size_t server) {
    servers_[server] = nullptr;
    servers_[server] = std::make_unique<Server>(*this, server, options_.rules);
}

void ClusterStage::set_rules(std::size_t server, const std::vector<std::string>& rules) {
    PolicyChoice choice = servers_[server]->choice();
    choice.tbf.rules = rules;
    servers_[server]->use(choice);
}

void ClusterStage::set_policy(std::size_t server, std::string_view policy) {
    PolicyChoice choice = servers_[server]->choice();
    choice.policy = &*std::ranges::find(policies(), policy, &PolicyEntry::name);
    servers_[server]->use(choice);
}

std::vector<ClassFigures> ClusterStage::figures(std::size_t server) {
    return servers_[server]->figures();
}

std::uint64_t ClusterStage::served_between(std::string_view request, Instant begin,
                                           Instant end) const {
    const auto of = served.find(request);
    if (of == served.end()) return 0;
    std::uint64_t sum = 0;
    for (const ServedOnce& each : of->second)
        sum += each.at >= begin && each.at < end ? each.amount : 0;
    return sum;
}

// A slow queue that drains at the rate.
long double ClusterStage::most_at_once(std::string_view request, double per_second) const {
    const auto of = served.find(request);
    if (of == served.end()) return 0;
    long double level = 0;
    long double most = 0;
    Instant last{};
    for (const ServedOnce& each : of->second) {
        level =
            std::max(0.0L, level - static_cast<long double>(per_second) *
                                       static_cast<long double>((each.at - last).count()) / 1e9L);
        last = each.at;
        level += static_cast<long double>(each.amount);
        most = std::max(most, level);
    }
    return most;
}

}  // namespace fopd::lrs::testing

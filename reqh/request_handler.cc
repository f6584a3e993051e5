#include "reqh/request_handler.h"

#include <algorithm>
#include <array>

namespace fopd::reqh {

namespace {

AdmissionRule rule_of(const RequestHandlerLimits& limits) {
    return {.max_foms = limits.max_foms, .io_wait_goal = limits.io_wait_goal};
}

constexpr fop::Reply kStopping{.status = fop::Status::kTryAgain, .words = "the server is stopping"};

}  // namespace

RequestHandler::RequestHandler(const RequestHandlerParts& parts, const RequestHandlerLimits& limits)
    : Timer([](Timer& timer) { static_cast<RequestHandler&>(timer).look_for_hung(); }),
      reactor_(parts.reactor),
      work_(parts.work),
      requests_(parts.requests),
      events_(parts.events),
      slow_fop_(limits.slow_fop),
      tokens_(parts.tokens),
      services_{.reactor = parts.reactor,
                .buffers = parts.buffers,
                .tokens = tokens_,
                .operations = operations_,
                .stores = parts.stores,
                .owner = *this},
      admission_(rule_of(limits)),
      metrics_(std::make_unique<FopMetrics>()) {
    ask();
}

void RequestHandler::on_incoming(fabric::IncomingFop& fop) {
    const fop::Request& request = fop.request();
    const fop::FopType* const type = fop::find_fop_type(request.type);
    fop::Reply answer{.id = request.id, .status = request.fault, .words = request.fault_words};
    if (type == nullptr) answer.status = fop::Status::kUnknownFop;
    if (answer.status == fop::Status::kDone && draining_) {
        answer.status = kStopping.status;
        answer.words = kStopping.words;
    }
    if (answer.status == fop::Status::kDone && fop.cancel_source().cancelled())
        answer.status = fop::Status::kCancelled;
    if (answer.status != fop::Status::kDone) {
        metrics_->count(type, answer.status);
        fop.reply(answer);
        return;
    }
    Fom& fom = take_fom();
    fom.begin(fop, *type);
    const Granted<> allowed = fom.check_sender();
    if (allowed) return requests_.incoming(fom);
    fom.leave_queue();
    finish(fom, {.status = allowed.error().status, .words = allowed.error().words});
}

Fom& RequestHandler::take_fom() {
    if (free_.empty()) return foms_.emplace_back(services_);
    Fom& fom = *free_.back();
    free_.pop_back();
    return fom;
}

void RequestHandler::ask() {
    if (Getter::linked()) return;
    if (has_room()) {
        requests_.next(*this);
    } else if (!discount_timer_.armed()) {
        reactor_.arm(discount_timer_, after(reactor_.now(), kCountsFor));
    }
}

void RequestHandler::discount_old() {
    const Instant now = reactor_.now();
    running_.for_each([&](RunningPlace& place) {
        const Fom& fom = static_cast<Fom&>(place);
        if (place.discounted || now < after(fom.started_at(), kCountsFor)) return;
        place.discounted = true;
        admission_.discount(fom.attributes.size_bytes);
    });
    ask();
}

void RequestHandler::on_request(lrs::Request* request) {
    if (request == nullptr) return;
    Fom& fom = static_cast<Fom&>(*request);
    fom.leave_queue();
    if (draining_) {
        requests_.complete(fom);
        finish(fom, kStopping);
    } else {
        start(fom);
    }
    ask();
}

void RequestHandler::start(Fom& fom) {
    fom.start();
    fom.discounted = false;
    running_.push_back(fom);
    admission_.began(fom.attributes.size_bytes);
    if (!Timer::armed()) reactor_.arm(*this, after(reactor_.now(), kHungAfter));
    reactor_.spawn(work_, fom.run());
}

void RequestHandler::on_cancelled(Fom& fom) {
    requests_.remove(fom);
    finish(fom, {.status = fop::Status::kCancelled, .words = "given up"});
}

void RequestHandler::on_late(Fom& fom, lrs::Request::Waited waited) {
    fom.leave_queue();
    const bool is_over = waited == lrs::Request::Waited::kForLimit;
    finish(fom, {.status = fop::Status::kTimedOut,
                 .words = is_over ? "over its limit: it had no turn before its deadline"
                                  : "the deadline passed before it could run"});
}

void RequestHandler::on_finished(Fom& fom, fop::Reply reply) {
    fom.RunningPlace::unlink();
    if (fom.discounted) {
        admission_.ended_discounted(fom.attributes.size_bytes, fom.io_wait());
    } else {
        admission_.ended(fom.attributes.size_bytes, fom.io_wait());
    }
    if (cut_off_ && reply.status == fop::Status::kCancelled) {
        const bool may_be_repeated =
            !fom.times().reached(Phase::kExecute) || fom.type().repeat == fop::Repeat::kIdempotent;
        reply.status = may_be_repeated ? fop::Status::kTryAgain : fop::Status::kOutcomeUnknown;
        reply.words = kStopping.words;
    }
    requests_.complete(fom);
    finish(fom, reply);
    ask();
}

// The fop's own words are borrowed from it, so all is written down before it is let go.
void RequestHandler::finish(Fom& fom, const fop::Reply& reply) {
    fom.end_phases();
    metrics_->count(&fom.type(), reply.status);
    metrics_->record(fom.type(), fom.times());
    FopRecord& record = history_.add();
    fom.describe(record);
    record.state = FopRecord::State::kFinished;
    record.status = reply.status;
    // How long it waited for its turn is the policy's doing; what it did to whom, the policy tells.
    if (fom.times().running() >= slow_fop_) report_slow(record);
    fom.reply(reply);
    free_.push_back(&fom);
}

void RequestHandler::set_limits(const RequestHandlerLimits& limits) {
    slow_fop_ = limits.slow_fop;
    admission_.set(rule_of(limits));
    if (!has_room()) Getter::unlink();
    ask();
}

void RequestHandler::drain() {
    if (draining_) return;
    draining_ = true;
    requests_.shutdown();
    ask();
}

void RequestHandler::cut_off() {
    ENSURE(draining_);
    cut_off_ = true;
    running_.for_each(
        [](RunningPlace& place) { static_cast<Fom&>(place).fop().cancel_source().cancel(); });
}

std::vector<FopRecord> RequestHandler::running() const {
    std::vector<FopRecord> records;
    records.reserve(running_count());
    running_.for_each([&records](RunningPlace& place) {
        static_cast<const Fom&>(place).describe(records.emplace_back());
    });
    return records;
}

std::optional<FopRecord> RequestHandler::trace(FopId id) const {
    const auto fom = std::ranges::find_if(foms_, [id](const Fom& each) {
        return each.state() != Fom::State::kFree && each.id() == id;
    });
    if (fom != foms_.end()) {
        FopRecord record;
        fom->describe(record);
        return record;
    }
    const FopRecord* const finished = history_.find(id);
    if (finished == nullptr) return std::nullopt;
    return *finished;
}

void RequestHandler::look_for_hung() {
    const Instant now = reactor_.now();
    Instant next = kNever;
    running_.for_each([&](RunningPlace& place) {
        Fom& fom = static_cast<Fom&>(place);
        if (fom.reported()) return;
        const Instant due = after(fom.started_at(), kHungAfter);
        if (due > now) {
            next = std::min(next, due);
            return;
        }
        fom.set_reported();
        report_hung(fom);
    });
    if (next != kNever) reactor_.arm(*this, next);
}

void RequestHandler::report_slow(const FopRecord& record) {
    if (!events_.wants(core::Level::kWarn)) return;
    static constexpr std::array<std::string_view, kPhaseCount> kKeys{
        "queued_s",      "authenticate_s", "local_resources_s", "distributed_resources_s",
        "load_object_s", "authorise_s",    "fetch_s",           "transaction_s",
        "execute_s",     "reply_s"};
    const std::string id = format_fop_id(record.id);
    std::array<core::Field, 6 + kPhaseCount> fields;
    std::size_t count = 0;
    const auto say = [&fields, &count](const core::Field& field) { fields[count++] = field; };
    say({"fop", std::string_view(id)});
    say({"op", record.type->name});
    say({"peer", record.peer.view()});
    say({"principal", record.principal.view()});
    say({"result", fop::to_string(record.status)});
    say({"seconds", in_seconds(record.times.total())});
    for (std::size_t index = 0; index < kPhaseCount; ++index) {
        const auto phase = static_cast<Phase>(index);
        if (record.times.reached(phase)) say({kKeys[index], in_seconds(record.times.of(phase))});
    }
    events_.emit(core::Level::kWarn, "reqh.slow_fop", std::span(fields).first(count));
}

void RequestHandler::report_hung(const Fom& fom) {
    const std::string id = format_fop_id(fom.id());
    core::emit_each(events_, core::Level::kWarn, "reqh.hung_fom",
                    {{"fop", std::string_view(id)},
                     {"op", fom.type().name},
                     {"phase", to_string(fom.times().phase())},
                     {"age_s", in_seconds(reactor_.now() - fom.started_at())},
                     {"peer", std::string_view(fom.fop().caller().address)},
                     {"principal", std::string_view(fom.fop().caller().principal)}});
}

}  // namespace fopd::reqh

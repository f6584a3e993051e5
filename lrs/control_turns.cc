#include "lrs/control_turns.h"

namespace fopd::lrs {

void ControlTurns::push(Request& request) {
    arrived_.push_back(request);
    auto place = lines_.find(request.attributes.share);
    if (place == lines_.end()) {
        place = lines_.try_emplace(std::string(request.attributes.share)).first;
        place->second.name = &place->first;
        next_.push_back(place->second);
    }
    request.PolicyPlace::queue = &place->second;
    place->second.waiting.push_back(request);
}

Request* ControlTurns::pop() {
    if (arrived_.empty()) return nullptr;
    if (next_.empty()) begin_run();
    Line& line = next_.front();
    auto& request = static_cast<Request&>(*line.waiting.pop_front());
    request.ArrivalPlace::unlink();
    line.unlink();
    line.had_turn = true;
    had_turn_.push_back(line);
    ++run_;
    return &request;
}

void ControlTurns::remove(Request& request) {
    request.ArrivalPlace::unlink();
    request.PolicyPlace::unlink();
    Line& line = *static_cast<Line*>(request.PolicyPlace::queue);
    if (line.waiting.empty() && !line.had_turn) forget(line);
}

Request* ControlTurns::oldest() {
    return arrived_.empty() ? nullptr : &static_cast<Request&>(arrived_.front());
}

void ControlTurns::begin_run() {
    run_ = 0;
    while (Line* const line = had_turn_.pop_front()) {
        line->had_turn = false;
        if (line->waiting.empty()) {
            forget(*line);
        } else {
            next_.push_back(*line);
        }
    }
}

}  // namespace fopd::lrs

#pragma once

#include <memory>
#include <vector>

#include "reqh/operation.h"

namespace fopd::reqh {

// The operations of running foms; grows to the largest number that ever ran at a time. The most
// recently released one is reused first.
class OperationPool {
public:
    Operation& take() {
        if (free_.empty()) return *all_.emplace_back(std::make_unique<Operation>());
        Operation& operation = *free_.back();
        free_.pop_back();
        return operation;
    }
    void give_back(Operation& operation) { free_.push_back(&operation); }

private:
    std::vector<std::unique_ptr<Operation>> all_;
    std::vector<Operation*> free_;
};

}  // namespace fopd::reqh

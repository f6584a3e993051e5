#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace fopd::core {

// Sorts a vector; equal elements keep their order. std::stable_sort of libstdc++ 12 calls a
// deprecated function, which clang refuses to compile.
template <typename T, typename Less = std::less<>, typename Projection = std::identity>
void stable_sort(std::vector<T>& values, Less less = {}, Projection projection = {}) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t one, std::size_t other) {
        const auto& a = std::invoke(projection, values[one]);
        const auto& b = std::invoke(projection, values[other]);
        if (less(a, b)) return true;
        return !less(b, a) && one < other;
    });
    std::vector<T> sorted;
    sorted.reserve(values.size());
    for (const std::size_t index : order) sorted.push_back(std::move(values[index]));
    values = std::move(sorted);
}

}  // namespace fopd::core

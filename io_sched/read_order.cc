#include "io_sched/read_order.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace fopd::io_sched {

namespace {

using devices::DriveModel;
using devices::PhysicalPosition;
using Plan = std::vector<std::uint32_t>;
using Cost = std::int64_t;  // Nanoseconds.

// More files than these are not compared each with each: where so many are wanted, they are near
// each other in linear order.
constexpr std::size_t kComparedMax = 2048;

bool is_forward(std::uint32_t wrap) {
    return wrap % 2 == 0;
}

// devices::locate_time() of positions that were divided into its terms before.
class LocateTable {
public:
    LocateTable(const DriveModel& model, PhysicalPosition start, std::span<const TapeStretch> files)
        : model_(model),
          middle_(model.lpos_begin + model.lpos_length / 2),
          floor_(floor_of(model.costs)) {
        begins_.reserve(files.size());
        ends_.reserve(files.size() + 1);
        for (const TapeStretch& file : files) {
            begins_.push_back(point_of(file.begin));
            ends_.push_back(point_of(file.end));
        }
        ends_.push_back(point_of(start));
    }

    // From where the head is after `from`, to the beginning of `to`.
    Cost between(std::uint32_t from, std::uint32_t to) const {
        const Point& a = ends_[from];
        const Point& b = begins_[to];
        const Cost far = a.lpos < b.lpos ? b.lpos - a.lpos : a.lpos - b.lpos;
        const devices::LocateCosts& costs = model_.costs;
        Cost time = costs.base.count() + far * costs.per_lpos.count();
        if (a.upper != b.upper) time += costs.half_change.count();
        if (a.wrap == b.wrap) {
            if (far == 0) return 0;
            if (b.forward ? b.lpos < a.lpos : b.lpos > a.lpos) time += costs.step_back.count();
        } else {
            time += costs.wrap_change.count();
            if (a.band != b.band) time += costs.band_change.count();
            if (a.forward != b.forward) time += costs.direction_change.count();
        }
        return std::max<Cost>(time, 0);
    }
    // No more than between(), and quickly known.
    Cost between_at_least(std::uint32_t from, std::uint32_t to) const {
        const Cost far = std::abs(ends_[from].lpos - begins_[to].lpos);
        return far == 0 ? 0 : std::max<Cost>(floor_ + far * model_.costs.per_lpos.count(), 0);
    }
    std::uint32_t start() const { return static_cast<std::uint32_t>(begins_.size()); }

    Cost total(std::span<const std::uint32_t> order) const {
        Cost sum = 0;
        std::uint32_t from = start();
        for (const std::uint32_t to : order) {
            sum += between(from, to);
            from = to;
        }
        return sum;
    }

private:
    struct Point {
        Cost lpos;
        std::uint32_t wrap;
        std::uint32_t band;
        bool forward;
        bool upper;
    };
    // What any locate costs, whatever changes on its way.
    static Cost floor_of(const devices::LocateCosts& costs) {
        Cost floor = costs.base.count();
        for (const Duration change : {costs.half_change, costs.step_back, costs.wrap_change,
                                      costs.band_change, costs.direction_change}) {
            floor += std::min<Cost>(change.count(), 0);
        }
        return floor;
    }
    Point point_of(PhysicalPosition position) const {
        const auto band = std::uint64_t{position.wrap} * devices::kTapeBands / model_.wraps;
        return {.lpos = static_cast<Cost>(position.lpos),
                .wrap = position.wrap,
                .band = static_cast<std::uint32_t>(band),
                .forward = is_forward(position.wrap),
                .upper = position.lpos >= middle_};
    }

    const DriveModel& model_;
    const std::uint64_t middle_;
    const Cost floor_;
    std::vector<Point> begins_;
    std::vector<Point> ends_;  // The last is that of the start.
};

Plan arrival_order(std::size_t count) {
    Plan order(count);
    std::iota(order.begin(), order.end(), 0U);
    return order;
}

// The position along the wrap, in the direction of the wrap.
std::int64_t along(const PhysicalPosition& position) {
    const auto lpos = static_cast<std::int64_t>(position.lpos);
    return is_forward(position.wrap) ? lpos : -lpos;
}

Plan linear_order(std::span<const TapeStretch> files) {
    Plan order = arrival_order(files.size());
    std::ranges::sort(order, {}, [&](std::uint32_t index) {
        const PhysicalPosition& position = files[index].begin;
        return std::tuple(position.wrap, along(position), index);
    });
    return order;
}

// Begins in the direction of the wrap on which the head is.
Plan scan_order(PhysicalPosition start, std::span<const TapeStretch> files) {
    Plan order = arrival_order(files.size());
    std::ranges::sort(order, {}, [&](std::uint32_t index) {
        const PhysicalPosition& position = files[index].begin;
        return std::tuple(is_forward(position.wrap) != is_forward(start.wrap), along(position),
                          index);
    });
    return order;
}

// `order` is consumed in groups; within a group the nearest file is next.
Plan sltf_order(const LocateTable& table, std::uint32_t from, const Plan& order) {
    Plan planned;
    planned.reserve(order.size());
    Plan left;
    for (std::size_t first = 0; first < order.size(); first += kComparedMax) {
        const std::size_t count = std::min(kComparedMax, order.size() - first);
        const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first);
        left.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
        while (!left.empty()) {
            std::size_t best = 0;
            std::pair least(std::numeric_limits<Cost>::max(), std::uint32_t{0});
            for (std::size_t i = 0; i < left.size(); ++i) {
                if (table.between_at_least(from, left[i]) > least.first) continue;
                const std::pair cost(table.between(from, left[i]), left[i]);
                if (cost >= least) continue;
                least = cost;
                best = i;
            }
            from = left[best];
            planned.push_back(from);
            left[best] = left.back();
            left.pop_back();
        }
    }
    return planned;
}

// How many locates kAuto may compute to improve the cheapest order. A number, unlike time, gives
// the same order each time.
constexpr std::size_t kImprovementMax = 3'000'000;

// Improves an order by moving up to three files that follow each other to another index (Or-opt),
// and by reversing parts (2-opt), until nothing is gained or the budget is used up.
class Improvement {
public:
    Improvement(const LocateTable& table, Plan order, std::size_t budget)
        : table_(table), order_(std::move(order)), left_(budget) {}

    Plan run() {
        for (bool gained = true; gained && left_ > 0;) {
            gained = false;
            for (std::size_t length = 1; length <= kLengthMax; ++length) {
                for (std::size_t at = 0; at + length <= order_.size() && left_ > 0; ++at) {
                    if (move(at, length)) gained = true;
                }
            }
            for (std::size_t at = 0; at + 1 < order_.size() && left_ > 0; ++at) {
                if (reverse(at)) gained = true;
            }
        }
        return std::move(order_);
    }

private:
    static constexpr std::size_t kLengthMax = 3;

    // The index of the file before index `at`, and the locate that ends there; 0 behind the last.
    std::uint32_t before(std::size_t at) const { return at == 0 ? table_.start() : order_[at - 1]; }
    Cost edge(std::uint32_t from, std::size_t to) {
        if (left_ > 0) --left_;
        return to >= order_.size() ? 0 : table_.between(from, order_[to]);
    }

    // Moves `length` files at `at` to the best other index, if that is cheaper.
    bool move(std::size_t at, std::size_t length) {
        const std::size_t end = at + length;
        const std::uint32_t last = order_[end - 1];
        const Cost freed = edge(before(at), at) + edge(last, end) - edge(before(at), end);
        if (freed <= 0) return false;
        Cost best = freed;
        std::size_t best_at = at;
        for (std::size_t to = 0; to <= order_.size() && left_ > 0; ++to) {
            if (to >= at && to <= end) continue;
            const std::uint32_t from = before(to);
            const Cost to_first = edge(from, at);
            if (to_first >= best) continue;
            const Cost added = to_first + edge(last, to) - edge(from, to);
            if (added >= best) continue;
            best = added;
            best_at = to;
        }
        if (best_at == at) return false;
        const auto from = order_.begin();
        const auto offset = [](std::size_t n) { return static_cast<std::ptrdiff_t>(n); };
        if (best_at < at) {
            std::rotate(from + offset(best_at), from + offset(at), from + offset(end));
        } else {
            std::rotate(from + offset(at), from + offset(end), from + offset(best_at));
        }
        return true;
    }

    // Reverses the files from `at` to the best other end, if that is cheaper.
    bool reverse(std::size_t at) {
        Cost forward = edge(before(at), at);
        Cost backward = 0;
        Cost best = 0;
        std::size_t best_end = at;
        for (std::size_t end = at + 1; end < order_.size() && left_ > 0; ++end) {
            forward += edge(order_[end - 1], end);
            backward += edge(order_[end], end - 1);
            const Cost saved = forward + edge(order_[end], end + 1) - edge(before(at), end) -
                               backward - edge(order_[at], end + 1);
            if (saved <= best) continue;
            best = saved;
            best_end = end;
        }
        if (best_end == at) return false;
        const auto from = order_.begin();
        std::reverse(from + static_cast<std::ptrdiff_t>(at),
                     from + static_cast<std::ptrdiff_t>(best_end) + 1);
        return true;
    }

    const LocateTable& table_;
    Plan order_;
    std::size_t left_;
};

}  // namespace

TapeStretch stretch_from(const DriveModel& model, PhysicalPosition begin,
                         std::uint64_t size_bytes) {
    __extension__ using Wide = unsigned __int128;
    const std::uint64_t lpos_end = model.lpos_begin + model.lpos_length;
    const std::uint64_t from_begin = is_forward(begin.wrap)
                                         ? begin.lpos - std::min(begin.lpos, model.lpos_begin)
                                         : lpos_end - std::min(begin.lpos, lpos_end);
    const Wide size = Wide{size_bytes} * model.wraps * model.lpos_length / model.capacity_bytes;
    const Wide length = size + from_begin;
    const auto passed = static_cast<std::uint64_t>(length / model.lpos_length);
    const auto rest = static_cast<std::uint64_t>(length % model.lpos_length);
    if (begin.wrap + passed >= model.wraps) {
        const std::uint32_t last = model.wraps - 1;
        return {begin, {.wrap = last, .lpos = is_forward(last) ? lpos_end : model.lpos_begin}};
    }
    const auto wrap = static_cast<std::uint32_t>(begin.wrap + passed);
    return {begin,
            {.wrap = wrap, .lpos = is_forward(wrap) ? model.lpos_begin + rest : lpos_end - rest}};
}

std::vector<std::uint32_t> plan_reads(const DriveModel& model, PhysicalPosition start,
                                      std::span<const TapeStretch> files, ReadOrder order) {
    if (files.size() < 2 || order == ReadOrder::kArrival) {
        return arrival_order(files.size());
    }
    if (order == ReadOrder::kLinear) return linear_order(files);
    if (order == ReadOrder::kScan) return scan_order(start, files);
    const LocateTable table(model, start, files);
    const Plan linear = linear_order(files);
    if (order == ReadOrder::kSltf) return sltf_order(table, table.start(), linear);

    Plan best = arrival_order(files.size());
    Cost least = table.total(best);
    const auto consider = [&](Plan plan) {
        const Cost cost = table.total(plan);
        if (cost >= least) return;
        least = cost;
        best = std::move(plan);
    };
    consider(linear);
    consider(scan_order(start, files));
    consider(sltf_order(table, table.start(), linear));
    return Improvement(table, std::move(best), kImprovementMax).run();
}

Duration locate_total(const DriveModel& model, PhysicalPosition start,
                      std::span<const TapeStretch> files, std::span<const std::uint32_t> order) {
    Duration total{0};
    PhysicalPosition at = start;
    for (const std::uint32_t index : order) {
        total += devices::locate_time(model, at, files[index].begin);
        at = files[index].end;
    }
    return total;
}

}  // namespace fopd::io_sched

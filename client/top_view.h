// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/top_figures.h"

namespace fopd::client {

enum class TopView : std::uint8_t { kOps, kClasses, kPrincipals, kDevices, kLocalities };

// A table of one view that can be sorted by each of its columns.
struct TopTable {
    struct Cell {
        std::string text;
        double number = 0;  // The column is sorted by it; a column of names is sorted by the text.
    };
    std::vector<std::string> titles;
    std::vector<std::vector<Cell>> rows;
};
TopTable top_table(TopView view, const TopRates& rates);

// The tables that have rows, one below the other, for people without a terminal.
std::string top_page(const TopSample& now, const TopRates& rates);
std::string top_json(const TopRates& rates);

// The content of the terminal, and the reactions to its keys.
class TopScreen {
public:
    void set(TopSample now, TopRates rates);
    // The lines of a frame, none longer than the terminal is wide and no more than it is high.
    std::vector<std::string> frame(std::size_t columns, std::size_t rows) const;
    // False: the key ends the program.
    bool on_key(char key);

private:
    struct Order {
        std::size_t column;
        bool is_descending;
    };
    Order& order() { return orders_[static_cast<std::size_t>(view_)]; }
    const Order& order() const { return orders_[static_cast<std::size_t>(view_)]; }
    void sort(TopTable& table) const;
    std::string footer(const TopTable& table) const;

    TopSample now_{};
    TopRates rates_{};
    bool has_rates_ = false;
    TopView view_ = TopView::kOps;
    bool shows_help_ = false;
    // Of each view: at first by operations per second, and localities by their number.
    std::array<Order, 5> orders_{Order{1, true}, Order{2, true}, Order{1, true}, Order{1, true},
                                 Order{0, false}};
};

}  // namespace fopd::client

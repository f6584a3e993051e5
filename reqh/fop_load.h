#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "fop/reserved_names.h"
#include "reqh/fop_metrics.h"

namespace fopd::reqh {

// Figures by name, for a limited number of names; fops of other names are counted together. A name
// without fops for kForgottenAfter may lose its row and its figures to a new name, whose figures
// begin at 0.
class NamedLoad {
public:
    static constexpr std::size_t kNamedMax = 64;
    static constexpr Duration kForgottenAfter = 10min;
    static constexpr std::string_view kOthers = fop::kOtherClients;

    // Rows are never taken away, so a number stays valid.
    using Row = std::uint32_t;
    Row row_of(std::string_view name, Instant now);
    LoadFigures& at(Row row) { return *rows_[row].figures; }

    template <typename Visit>
    void for_each(Visit visit) const {
        for (const Named& each : rows_) visit(each.name, *each.figures);
    }

private:
    struct Named {
        std::string name;
        Instant used_at{};
        std::unique_ptr<LoadFigures> figures = std::make_unique<LoadFigures>();
        // The figures of the name that had the row before: another thread may still read them. Kept
        // until the row has another name again, kForgottenAfter later at the earliest.
        std::unique_ptr<LoadFigures> former{};
    };
    void give(Row row, std::string_view name);
    std::optional<Row> find_room(Instant now);

    std::vector<Named> rows_;
    std::map<std::string, Row, std::less<>> by_name_;
    Row last_ = 0;          // The row that was found last.
    Instant look_again_{};  // Until then, no row becomes free.
};

// The load of a locality: how many fops end, how long they take and how much data they move, by
// type, class in the request scheduler, and principal.
class FopLoad {
public:
    // The metrics have the figures by type. They outlive the load.
    explicit FopLoad(const FopMetrics& metrics) : metrics_(metrics) {}

    // The class of a fop that has its turn.
    NamedLoad::Row class_row(std::string_view name, Instant now) {
        return classes_.row_of(name, now);
    }
    struct Fop {
        std::optional<NamedLoad::Row> class_row{};  // None: it has had no turn, or no class.
        std::string_view principal;
        std::uint64_t size_bytes = 0;
        Duration took{};
    };
    void ended(const Fop& fop, Instant now);

    enum class By : std::uint8_t { kOp, kClass, kPrincipal };
    struct Row {
        By by;
        std::string name;
        const LoadFigures* figures;
    };
    // On the reactor of the locality. Any thread may read the figures for kForgottenAfter, as long
    // as this object exists.
    std::vector<Row> rows() const;

private:
    const FopMetrics& metrics_;
    NamedLoad classes_;
    NamedLoad principals_;
};

}  // namespace fopd::reqh

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/gate.h"
#include "core/metrics.h"
#include "core/reactor.h"
#include "core/timer_heap.h"
#include "daemon/admin_server.h"
#include "daemon/node.h"
#include "daemon/status.h"

namespace fopd::daemon {

// The verbs of the admin socket. A request arrives on one of the server's threads, which waits for
// the answer; the verb itself runs on the control reactor. Only a few verbs ask the localities; if
// a locality does not answer, such a request fails after its time limit.
class AdminApi final : public AdminHandler {
public:
    // Requests of one verb that may be in progress: more than the server's threads wait for at a
    // time. Without a bound, those that were not waited for any more would pile up before a
    // locality that does not answer, which would have to answer all of them when it comes back.
    static constexpr std::uint32_t kCallsOfVerbMax = 64;

    struct Parts {
        core::Reactor& control;
        Node& node;
        Configuration& configuration;
        std::function<StatusFacts()> facts;
        std::function<void(core::Level)> set_log_level;
        std::vector<const core::MetricSource*> metrics;
        core::EventSink& events;
        const core::Clock& clock;
    };
    explicit AdminApi(Parts parts) : parts_(std::move(parts)) {}

    std::span<const AdminRoute> routes() const override;
    AdminReply handle(const AdminRequest& request) override;
    std::string metrics(MetricsFormat format) override;

    // Sends the request to the control reactor, which answers it; handle() waits for the future. A
    // request whose future is dropped is carried out all the same. Any thread. REQUIRES: routes()
    // has the request's path.
    std::future<AdminReply> ask(const AdminRequest& request);

    // On the control reactor: refuses new requests and waits for those in progress.
    Task<void> close();

private:
    class Call;
    struct Verb;
    static constexpr std::size_t kVerbCount = 36;
    static const std::array<Verb, kVerbCount> kVerbs;

    static const Verb& verb_of(const AdminRequest& request);
    // How many requests of this verb are in progress.
    std::uint32_t& calls_of(const Verb& verb);
    // Not const, because all verbs in the table have the same signature.
    Task<AdminReply> status(
        AdminRequest request);  // NOLINT(readability-make-member-function-const)
    Task<AdminReply> devices(
        AdminRequest request);  // NOLINT(readability-make-member-function-const)
    Task<AdminReply> device_add(AdminRequest request);
    Task<AdminReply> device_remove(AdminRequest request);
    Task<AdminReply> device_forget(AdminRequest request);
    Task<AdminReply> reload(AdminRequest request);
    // NOLINTNEXTLINE(readability-make-member-function-const)
    Task<AdminReply> health(AdminRequest request);
    // NOLINTNEXTLINE(readability-make-member-function-const)
    Task<AdminReply> keys(AdminRequest request);
    Task<AdminReply> keys_reload(AdminRequest request);
    Task<AdminReply> drain(AdminRequest request);
    Task<AdminReply> log_level(AdminRequest request);
    Task<AdminReply> sessions(AdminRequest request);
    Task<AdminReply> trace(AdminRequest request);
    Task<AdminReply> load(AdminRequest request);
    Task<AdminReply> media(AdminRequest request);
    Task<AdminReply> drives(AdminRequest request);
    Task<AdminReply> scrub(AdminRequest request);
    Task<AdminReply> store_check(AdminRequest request);
    Task<AdminReply> store_check_report(AdminRequest request);

    Task<AdminReply> epoch_show(AdminRequest request);
    Task<AdminReply> epoch_force(AdminRequest request);
    Task<AdminReply> io_sched_show(
        AdminRequest request);  // NOLINT(readability-make-member-function-const)
    Task<AdminReply> io_sched_set(AdminRequest request);
    Task<AdminReply> lrs_show(AdminRequest request);
    Task<AdminReply> lrs_rules(
        AdminRequest request);  // NOLINT(readability-make-member-function-const)
    Task<AdminReply> lrs_which(
        AdminRequest request);  // NOLINT(readability-make-member-function-const)
    Task<AdminReply> lrs_draft(
        AdminRequest request);  // NOLINT(readability-make-member-function-const)
    Task<AdminReply> lrs_saved(AdminRequest request);
    Task<AdminReply> lrs_set(AdminRequest request);
    Task<AdminReply> lrs_rule_add(AdminRequest request);
    Task<AdminReply> lrs_rule_change(AdminRequest request);
    Task<AdminReply> lrs_rule_del(AdminRequest request);
    Task<AdminReply> lrs_rule_load(AdminRequest request);
    AdminReply edit_rules(const AdminRequest& request, lrs::RuleEdit::Verb verb,
                          std::string_view text);
    AdminReply lrs_changed(const LrsChanges::Outcome& result,
                           const std::set<std::string>& before) const;
    std::set<std::string> rule_texts() const;
    // What is wrong with the rules whose text is not in `before`.
    std::vector<std::string> new_rule_warnings(const std::set<std::string>& before) const;

    Task<AdminReply> store_backup(AdminRequest request);
    Task<AdminReply> store_backup_part(AdminRequest request);
    Task<AdminReply> store_backup_end(AdminRequest request);

    AdminReply not_serving() const;
    std::vector<std::string> disk_names(std::string_view wanted) const;
    // The disk's state and reason; empty if it is open or unknown.
    std::string why_not_open(std::string_view device) const;
    AdminReply no_disk(std::string_view wanted) const;
    AdminReply device_reply(const DeviceRequests::Outcome& result) const;
    // Starts a scrub or check on one disk, or on all present disks, as the request says. Takes an
    // enum, not a pointer to a member: GCC 12 miscompiles a member pointer as a coroutine
    // parameter.
    enum class Order : std::uint8_t { kScrub, kCheck };
    Task<AdminReply> order_disks(AdminRequest request, Order order);

    // Frees the space of a backup that is not fetched any more.
    struct BackupTimer final : core::Timer {
        explicit BackupTimer(AdminApi& owner) : Timer(&on_time), api(owner) {}
        static void on_time(core::Timer& timer);
        AdminApi& api;
    };
    // The time in which the next part of the backup must be read begins now.
    void keep_backup();

    Parts parts_;
    core::Gate calls_;
    std::array<std::uint32_t, kVerbCount> calls_of_verbs_{};  // In the order of kVerbs.
    // The newest backup, until it has been fetched, or has not been read for some time.
    std::unique_ptr<StoreBackup> backup_;
    BackupTimer backup_timer_{*this};
    std::uint64_t backup_number_ = 0;
    bool backing_up_ = false;
};

}  // namespace fopd::daemon

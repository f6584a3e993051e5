#!/usr/bin/env python3
"""Puts the figures of bench_io_sched into docs/performance.md, as tables and plots.

    bench/io_sched_page.py [--bin build/release/bin/bench_io_sched] [--figures FILE] [--page docs/performance.md]

Runs the program, or reads what an earlier run with --json has printed; bench/figures_page.py says where the figures go.
"""

from figures_page import bars_plot, by_number, fill, lines_plot, shown, table

ORDERS = ("arrival", "linear", "scan", "sltf", "auto")


def e1(figures):
    fifo = figures["fifo_s"]
    runs = [("fifo", "fifo_mounts", "fifo_s"), ("grouped_read, arrival", None, "grouped_arrival_s"),
            ("grouped_read, linear", None, "grouped_linear_s"), ("grouped_read, auto", "grouped_mounts", "grouped_s")]
    rows = [[name, shown(figures[mounts]) if mounts else "", shown(figures[seconds]) + " s", f"{fifo / figures[seconds]:.1f}"]
            for name, mounts, seconds in runs]
    bars = [(name.replace("grouped_read, ", ""), figures[seconds] / 3600) for name, _, seconds in runs]
    return table(["", "mounts", "time", "times sooner than fifo"], rows), {"e1.svg": bars_plot(bars, "hours", "order")}


def e2(figures):
    series = {order: by_number(figures, f"locate_{order}_s") for order in ORDERS}
    rows = []
    for i, (number, linear) in enumerate(series["linear"]):
        auto = series["auto"][i][1]
        rows.append([shown(number), *(shown(series[order][i][1]) + " s" for order in ORDERS),
                     f"{100 * (auto / linear - 1):.0f} %".replace("-", "−")])
    return (table(["files", *ORDERS, "auto against linear"], rows),
            {"e2.svg": lines_plot(series, "seconds", "files to read")})


def e3(figures):
    each = by_number(figures, "written_each_mb_s_by_file_mb")
    batches = by_number(figures, "written_batches_mb_s_by_file_mb")
    rows = [[shown(size) + " MB", shown(rate) + " MB/s", shown(batch) + " MB/s"]
            for (size, rate), (_, batch) in zip(each, batches)]
    return (table(["file", "each durable by itself", "32 GB or 200 files at a time"], rows),
            {"e3.svg": lines_plot({"each": each, "batches": batches}, "MB/s", "size of a file, MB")})


def e4(figures):
    mounts = by_number(figures, "mounts_per_hour_by_mount_age_min")
    reads = by_number(figures, "read_p95_s_by_mount_age_min")
    rows = [[shown(age) + " min", shown(count), shown(seconds) + " s"] for (age, count), (_, seconds) in zip(mounts, reads)]
    return (table(["grouped_read_mount_age", "mounts an hour", "95th percentile of a read"], rows),
            {"e4-mounts.svg": lines_plot({"mounts": mounts}, "an hour", "grouped_read_mount_age, minutes"),
             "e4-reads.svg": lines_plot({"p95": reads}, "seconds", "grouped_read_mount_age, minutes")})


def e5(figures):
    rows = [["difference from the ideal shares of drive time", f"{figures['fair_share_error_percent']:.1f} %"],
            ["changes of drives between reads and writes, an hour, of all ten", shown(figures["fair_share_moves_per_hour"])],
            ["drive time that is used", f"{figures['fair_share_drives_used_percent']:.0f} %"]]
    weights = [("1:1:1", "_1_1_1"), ("4:2:1", "_4_2_1"), ("8:1:1", "_8_1_1"), ("each of these for two hours", "_shifting")]
    others = [[name, f"{figures['fair_share_error_percent' + key]:.1f} %", shown(figures["fair_share_moves_per_hour" + key])]
              for name, key in weights]
    series = {"share of reads": by_number(figures, "read_drives_share_by_minute"), "reads": by_number(figures, "read_drives_by_minute"),
              "writes": by_number(figures, "write_drives_by_minute")}
    tables = table(["", ""], rows) + "\n\n" + table(["weights of reads, writes and formats", "difference from the ideal", "changes an hour"], others)
    return tables, {"e5.svg": lines_plot(series, "drives", "minutes, means of ten")}


def e6(figures):
    waits = by_number(figures, "single_read_longest_s_by_max_wait_min")
    rows = [[shown(limit) + " min", shown(seconds / 60) + " min"] for limit, seconds in waits]
    bars = [(shown(limit), seconds / 60) for limit, seconds in waits]
    return (table(["grouped_read_max_wait", "longest wait of a single read"], rows),
            {"e6.svg": bars_plot(bars, "minutes", "grouped_read_max_wait, minutes")})


def costs(figures):
    rows = [["planning the order of 2 000 files", shown(figures["plan_2000_ms"]) + " ms"],
            ["memory of a request, of 100 000 that wait for 500 cartridges", shown(figures["request_bytes"]) + " bytes"],
            ["push", shown(figures["push_ns"]) + " ns"],
            ["peek: a drive is free, none is free", f"{shown(figures['peek_ns'])} ns, {shown(figures['peek_busy_ns'])} ns"],
            ["a request's share of peeks, plans and the rest until a drive has it", shown(figures["take_ns"] / 1000) + " µs"],
            ["99th percentile of a disk's reads of 50 µs: alone, beside 10 000 that wait for cartridges",
             f"{shown(figures['disk_p99_us'])} µs, {shown(figures['disk_p99_beside_10k_us'])} µs"]]
    where = [figures["machine"], ""] if "machine" in figures else []
    return "\n".join([*where, table(["", ""], rows)]), {}


EXPERIMENTS = {"E1": e1, "E2": e2, "E3": e3, "E4": e4, "E5": e5, "E6": e6, "costs": costs}


if __name__ == "__main__":
    fill(__doc__, ["bench_io_sched", "--json"], "docs/performance.md", EXPERIMENTS)

#!/usr/bin/env python3
"""Puts the figures of bench_io_sched into docs/performance.md, as tables and plots.

    bench/io_sched_page.py [--bin build/release/bin/bench_io_sched] [--figures FILE] [--page docs/performance.md]

Runs the program, or reads what an earlier run with --json has printed. What stands in the page between `<!-- figures: NAME -->`
and `<!-- end -->` is replaced; the plots are SVG files in the folder with the page's name beside it.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ORDERS = ("arrival", "linear", "scan", "sltf", "auto")
COLOURS = ("#7f7f7f", "#1f77b4", "#2ca02c", "#ff7f0e", "#d62728")
WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 120, 20, 50


def shown(value):
    """A figure as people read it: three digits, and whole numbers as they are."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def by_number(figures, name):
    return [(int(number), value) for number, value in figures[name].items()]


# -- plots --

def text(x, y, words, anchor="middle"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def drawing(parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">\n'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def ticks(most):
    """About five round numbers from 0 on, of which the last is not less than `most`."""
    rough = most / 5 if most > 0 else 1
    size = 10 ** math.floor(math.log10(rough))
    step = next(each * size for each in (1, 2, 5, 10) if each * size >= rough)
    return [step * i for i in range(math.ceil(most / step) + 1)]


def axes(marks, top, unit, x_title):
    parts = []
    for mark in marks:
        y = HEIGHT - BOTTOM - mark / top * (HEIGHT - TOP - BOTTOM)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(text(LEFT - 6, y + 4, shown(mark), "end"))
    parts.append(text(LEFT, TOP - 6, unit))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_title))
    return parts


def lines_plot(series, unit, x_title):
    """Lines by name, each of points (number, value); the numbers are evenly spaced."""
    numbers = [number for number, _ in next(iter(series.values()))]
    marks = ticks(max(value for points in series.values() for _, value in points))
    parts = axes(marks, marks[-1], unit, x_title)
    step = (WIDTH - LEFT - RIGHT) / max(1, len(numbers) - 1)
    places = {number: LEFT + i * step for i, number in enumerate(numbers)}
    for number, x in places.items():
        parts.append(text(x, HEIGHT - BOTTOM + 16, shown(number)))
    for i, (name, points) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        where = [(places[number], HEIGHT - BOTTOM - value / marks[-1] * (HEIGHT - TOP - BOTTOM)) for number, value in points]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in where)
        parts.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in where]
        y = TOP + 14 + 18 * i
        parts.append(f'<rect x="{WIDTH - RIGHT + 14}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(text(WIDTH - RIGHT + 30, y, name, "start"))
    return drawing(parts)


def bars_plot(bars, unit, x_title):
    marks = ticks(max(value for _, value in bars))
    parts = axes(marks, marks[-1], unit, x_title)
    step = (WIDTH - LEFT - RIGHT) / len(bars)
    for i, (name, value) in enumerate(bars):
        high = value / marks[-1] * (HEIGHT - TOP - BOTTOM)
        x = LEFT + (i + 0.2) * step
        parts.append(f'<rect x="{x:.1f}" y="{HEIGHT - BOTTOM - high:.1f}" width="{0.6 * step:.1f}" height="{high:.1f}" '
                     f'fill="{COLOURS[1]}"/>')
        parts.append(text(LEFT + (i + 0.5) * step, HEIGHT - BOTTOM - high - 4, shown(value)))
        parts.append(text(LEFT + (i + 0.5) * step, HEIGHT - BOTTOM + 16, name))
    return drawing(parts)


# -- the experiments: each gives a table, and plots by the name of their file --

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
    return table(["", ""], rows), {}


def e6(figures):
    waits = by_number(figures, "single_read_longest_s_by_max_wait_min")
    rows = [[shown(limit) + " min", shown(seconds / 60) + " min"] for limit, seconds in waits]
    bars = [(shown(limit), seconds / 60) for limit, seconds in waits]
    return (table(["grouped_read_max_wait", "longest wait of a single read"], rows),
            {"e6.svg": bars_plot(bars, "minutes", "grouped_read_max_wait, minutes")})


def machine():
    """The processor and the kernel that figures in real time belong to."""
    processor = next((line.partition(":")[2].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                      if line.startswith("model name")), platform.machine())
    return f"{processor}, {os.cpu_count()} cores, Linux {platform.release()}."


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


def filled(page, figures, folder):
    """The page with tables and images, and the plots by the name of their file."""
    plots = {}
    for name, experiment in EXPERIMENTS.items():
        begin, end = f"<!-- figures: {name} -->\n", "<!-- end -->"
        if page.count(begin) != 1:
            sys.exit(f"the page does not have one '{begin.strip()}'")
        before, rest = page.split(begin)
        old, found, after = rest.partition(end)
        if not found or "<!-- figures:" in old:
            sys.exit(f"there is no '{end}' after '{begin.strip()}'")
        words, drawn = experiment(figures)
        plots |= drawn
        images = "".join(f"\n![{name}]({folder}/{each})\n" for each in drawn)
        page = before + begin + words + "\n" + images + end + after
    return page, plots


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin/bench_io_sched")
    parser.add_argument("--figures", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs/performance.md")
    asked = parser.parse_args()
    if asked.figures:
        figures = json.loads(asked.figures.read_text())
    else:
        printed = subprocess.run([asked.bin, "--json"], check=True, capture_output=True, text=True).stdout
        figures = json.loads(printed) | {"machine": machine()}
    page, plots = filled(asked.page.read_text(), figures, asked.page.stem)
    folder = asked.page.with_suffix("")
    folder.mkdir(exist_ok=True)
    for name, drawn in plots.items():
        (folder / name).write_text(drawn)
    asked.page.write_text(page)


if __name__ == "__main__":
    main()

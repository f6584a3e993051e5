#!/usr/bin/env python3
"""Puts the figures of bench_epochs into docs/epochs-performance.md, as tables and plots.

    bench/epochs_page.py [--bin build/release/bin/bench_epochs] [--figures FILE] [--page docs/epochs-performance.md]

Runs the program, which takes minutes, or reads what an earlier run with --json --losses has printed; bench/figures_page.py says
where the figures go.
"""

from figures_page import bars_plot, fill, lines_plot, shown, table

SERVERS = 16  # Of the losses.
WAYS = ("serve", "wait", "serve, 10 ms")


def percent(part):
    return f"{100 * part:.1f} %".replace("-", "−")


def cost(figures):
    latency = figures["latency"]
    rows = [[shown(each["members"]), f"{each['us']:.0f} µs", shown(each["messages"]), f"{each['messages'] / each['members']:.2f}"]
            for each in latency]
    times = [(each["members"], each["us"]) for each in latency]
    return (table(["members", "until the last one has the epoch", "messages", "of each member"], rows),
            {"cost.svg": lines_plot({"epoch": times}, "µs", "members")})


def gain(figures):
    rows = []
    for each in figures["coordination"]:
        rows.append([shown(each["servers"]), shown(each["apps"]), f"{each['mean_fifo']:.2f}; {each['expected_mean_fifo']:.2f}",
                     f"{each['mean']:.2f}; {each['expected_mean']:.2f}", percent(each["reduction"]),
                     percent(each["makespan"] - 1), f"{each['p99_fifo']:.2f}", f"{each['p99']:.2f}", f"{each['jain_fifo']:.3f}",
                     f"{each['jain']:.3f}"])
    bars = [(f"{each['servers']}, {each['apps']}", 100 * each["reduction"]) for each in figures["coordination"]]
    titles = ["servers", "applications", "`fifo`; to be expected", "`epoch_groups`; to be expected", "less", "the last one is later by",
              "p99, `fifo`", "p99", "Jain, `fifo`", "Jain"]
    return table(titles, rows), {"gain.svg": bars_plot(bars, "less, percent", "servers, applications")}


def plain(figures, way):
    """Nothing takes from the gain."""
    return next(each for each in figures["losses"] if each["what"] == "nothing" and each["way"] == way)


def loss(figures, what, number_of, name, x_title):
    """One thing that takes from the gain; number_of makes what is shown of its amount."""
    found = [each for each in figures["losses"] if each["what"] == what]
    ways = [way for way in WAYS if any(each["way"] == way for each in found)]
    series = {way: [plain(figures, way)] + [each for each in found if each["way"] == way] for way in ways}
    rows = []
    for each_of_ways in zip(*series.values()):
        first = each_of_ways[0]
        row = [shown(number_of(first["amount"]))]
        row += [percent(each["reduction"]) for each in each_of_ways]
        row += [percent(each["makespan"] - 1) for each in each_of_ways]
        row += [f"{first['p99_fifo']:.2f}"] + [f"{each['p99']:.2f}" for each in each_of_ways]
        row += [f"{first['jain_fifo']:.3f}"] + [f"{each['jain']:.3f}" for each in each_of_ways]
        row += [f"{each['epochs']:.1f}" for each in each_of_ways]
        rows.append(row)
    titles = [x_title]
    for figure, has_fifo in (("less", False), ("last one", False), ("p99", True), ("Jain", True), ("epochs", False)):
        titles += [f"{figure}: {way}" for way in (["fifo"] if has_fifo else []) + ways]

    def points(all_of_way, figure, factor=1):
        return [(number_of(each["amount"]), factor * each[figure]) for each in all_of_way]
    fifo = series["serve"]
    plots = {f"{name}-less.svg": lines_plot({way: points(series[way], "reduction", 100) for way in ways}, "less, percent", x_title)}
    for figure, unit in (("p99", "p99, units"), ("jain", "Jain's index")):
        lines = {"fifo": points(fifo, f"{figure}_fifo")} | {way: points(series[way], figure) for way in ways}
        plots[f"{name}-{figure}.svg"] = lines_plot(lines, unit, x_title)
    return table(titles, rows), plots


def epoch_cost(figures):
    return loss(figures, "epoch cost", lambda amount: amount, "epoch-cost", "units that an epoch takes")


def raggedness(figures):
    return loss(figures, "raggedness", lambda amount: amount, "raggedness", "units, at most, that a server is late")


def unequal(figures):
    return loss(figures, "unequal times", lambda amount: 100 * amount, "unequal", "percent more or less, at most")


def striping(figures):
    # Of the plain run, which uses all servers, the amount is 0.
    return loss(figures, "striping", lambda amount: round(SERVERS * (amount or 1)), "striping", "servers of an application")


def no_epochs(figures):
    alone = next(each for each in figures["losses"] if each["what"] == "no epochs")
    rows = [[name, percent(each["reduction"]), percent(each["makespan"] - 1), f"{each['p99']:.2f}", f"{each['jain']:.3f}"]
            for name, each in (("with epochs", plain(figures, "serve")), ("without", alone))]
    return table(["", "less", "last one", "p99", "Jain"], rows), {}


EXPERIMENTS = {"cost": cost, "gain": gain, "epoch cost": epoch_cost, "raggedness": raggedness, "unequal": unequal,
               "striping": striping, "no epochs": no_epochs}


if __name__ == "__main__":
    fill(__doc__, ["bench_epochs", "--json", "--losses"], "docs/epochs-performance.md", EXPERIMENTS)

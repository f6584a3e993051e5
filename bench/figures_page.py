"""Pages of docs/ whose tables and plots show what a program of bench/ has measured.

What stands in such a page between `<!-- figures: NAME -->` and `<!-- end -->` is replaced by a table and plots. The plots are SVG
files in the folder with the page's name beside it. An experiment is a function of the figures that the program printed; it
returns a table, and the plots by the name of their file.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import subprocess
import sys

from objects import processor

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLOURS = ("#7f7f7f", "#1f77b4", "#2ca02c", "#ff7f0e", "#d62728")
WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 120, 20, 50


def shown(value):
    """A figure as people read it: three digits, and whole numbers as they are."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}".replace(",", " ").replace("-", "−")
    return (f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}").replace("-", "−")


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


def ticks(values):
    """About five round numbers, 0 among them; no value is below the first one or above the last one."""
    least, most = min(0, *values), max(0, *values)
    rough = (most - least) / 5 if most > least else 1
    size = 10 ** math.floor(math.log10(rough))
    step = next(each * size for each in (1, 2, 5, 10) if each * size >= rough)
    return [step * i for i in range(math.floor(least / step), max(1, math.ceil(most / step)) + 1)]


def place(value, marks):
    """How far down a value is."""
    return HEIGHT - BOTTOM - (value - marks[0]) / (marks[-1] - marks[0]) * (HEIGHT - TOP - BOTTOM)


def axes(marks, unit, x_title):
    parts = []
    for mark in marks:
        y = place(mark, marks)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(text(LEFT - 6, y + 4, shown(mark), "end"))
    parts.append(text(LEFT, TOP - 6, unit))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_title))
    return parts


def lines_plot(series, unit, x_title):
    """Lines by name, each of points (number, value); the numbers are evenly spaced."""
    numbers = [number for number, _ in next(iter(series.values()))]
    marks = ticks([value for points in series.values() for _, value in points])
    parts = axes(marks, unit, x_title)
    step = (WIDTH - LEFT - RIGHT) / max(1, len(numbers) - 1)
    places = {number: LEFT + i * step for i, number in enumerate(numbers)}
    for number, x in places.items():
        parts.append(text(x, HEIGHT - BOTTOM + 16, shown(number)))
    for i, (name, points) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        where = [(places[number], place(value, marks)) for number, value in points]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in where)
        parts.append(f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in where]
        y = TOP + 14 + 18 * i
        parts.append(f'<rect x="{WIDTH - RIGHT + 14}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(text(WIDTH - RIGHT + 30, y, name, "start"))
    return drawing(parts)


def bars_plot(bars, unit, x_title):
    marks = ticks([value for _, value in bars])
    parts = axes(marks, unit, x_title)
    step = (WIDTH - LEFT - RIGHT) / len(bars)
    for i, (name, value) in enumerate(bars):
        top, bottom = place(max(0, value), marks), place(min(0, value), marks)
        x = LEFT + (i + 0.2) * step
        parts.append(f'<rect x="{x:.1f}" y="{top:.1f}" width="{0.6 * step:.1f}" height="{bottom - top:.1f}" '
                     f'fill="{COLOURS[1]}"/>')
        parts.append(text(LEFT + (i + 0.5) * step, top - 4, shown(value)))
        parts.append(text(LEFT + (i + 0.5) * step, HEIGHT - BOTTOM + 16, name))
    return drawing(parts)


# -- pages --

def filled(page, experiments, figures, folder):
    """The page with tables and images, and the plots by the name of their file."""
    plots = {}
    for name, experiment in experiments.items():
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


def machine():
    """The processor and the kernel that figures in real time belong to."""
    return f"{processor()}, {os.cpu_count()} cores, Linux {platform.release()}."


def fill(description, command, page, experiments):
    """Fills `page` with what the command (its program in build/release/bin, and its options) prints, and its folder with plots."""
    program, *options = command
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin" / program)
    parser.add_argument("--figures", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / page)
    asked = parser.parse_args()
    if asked.figures:
        figures = json.loads(asked.figures.read_text())
    else:
        printed = subprocess.run([asked.bin, *options], check=True, capture_output=True, text=True).stdout
        figures = json.loads(printed) | {"machine": machine()}
    words, plots = filled(asked.page.read_text(), experiments, figures, asked.page.stem)
    folder = asked.page.with_suffix("")
    folder.mkdir(exist_ok=True)
    for name, drawn in plots.items():
        (folder / name).write_text(drawn)
    asked.page.write_text(words)

"""Checks of the plots that a page of docs/ has."""

import xml.etree.ElementTree

from figures_page import HEIGHT, WIDTH

SVG = "{http://www.w3.org/2000/svg}"


def check_within_frame(test, plots):
    """Each plot is a drawing whose points and bars are within its frame."""
    for name, drawn in plots.items():
        with test.subTest(name):
            root = xml.etree.ElementTree.fromstring(drawn)
            for each in root.iter(SVG + "circle"):
                test.assertTrue(0 <= float(each.get("cx")) <= WIDTH)
                test.assertTrue(0 <= float(each.get("cy")) <= HEIGHT)
            for each in root.iter(SVG + "rect"):
                x, y, width, height = (float(each.get(key, 0)) for key in ("x", "y", "width", "height"))
                test.assertTrue(0 <= x and 0 <= width and x + width <= WIDTH, (x, width))
                test.assertTrue(0 <= y and 0 <= height and y + height <= HEIGHT, (y, height))

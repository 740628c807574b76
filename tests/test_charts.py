"""Charts drawn by hand: where points land, what is left out, and that the text is a drawing."""

import xml.etree.ElementTree as tree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adafw import charts
from adafw.charts import Axis, Polyline, line_chart

SVG = "{http://www.w3.org/2000/svg}"
finite = st.floats(-1e12, 1e12)
positive = st.floats(1e-12, 1e12)


def points(svg):
    return [
        np.array([pair.split(",") for pair in line.get("points").split()], dtype=float)
        for line in tree.fromstring(svg).iter(f"{SVG}polyline")
    ]


@given(st.lists(finite, min_size=1, max_size=20), st.booleans())
def test_every_value_has_its_place_and_ticks_are_round(values, log):
    values = np.abs(values) + 1e-9 if log else np.array(values)
    axis = Axis.around(np.array(values), 200.0, 10.0, log)
    places = axis.place(values)
    assert (places <= 200 + 1e-6).all()
    assert (places >= 10 - 1e-6).all()
    assert (np.diff(places[np.argsort(values)]) <= 1e-9).all()  # upwards, as pixels count down
    ticks = axis.ticks()
    assert 1 <= len(ticks) <= 9
    assert (
        all(axis.low * (1 - 1e-9) - 1e-9 <= t <= axis.high * (1 + 1e-9) for t in ticks) or not log
    )
    assert (np.diff(ticks) > 0).all()


def test_a_line_goes_through_its_points():
    x, y = np.array([0.0, 1, 2]), np.array([1.0, 1e-2, 1e-4])
    (line,) = points(line_chart([Polyline(x, y)], "epochs", "gap", log=True))
    np.testing.assert_allclose(line[1], (line[0] + line[2]) / 2, atol=0.06)  # straight in log
    (line,) = points(line_chart([Polyline(x, y)], "epochs", "gap"))
    assert line[1, 1] - line[0, 1] > 90 * (line[2, 1] - line[1, 1])


def test_what_has_no_place_is_left_out():
    x, y = np.arange(5.0), np.array([1.0, 0.0, -1.0, np.nan, 0.1])
    assert [len(line) for line in points(line_chart([Polyline(x, y)], "a", "b", log=True))] == [2]
    assert [len(line) for line in points(line_chart([Polyline(x, y)], "a", "b"))] == [4]
    empty = line_chart([Polyline(x, np.full(5, np.nan))], "a", "b")
    assert "nothing to draw" in "".join(tree.fromstring(empty).itertext())
    one = tree.fromstring(line_chart([Polyline(x[:1], y[:1])], "a", "b", log=True))
    assert len(list(one.iter(f"{SVG}circle"))) == 1


@pytest.mark.parametrize("count", [2, 6, 7])
def test_names_are_escaped_and_many_are_left_out(count):
    x = np.arange(3.0)
    curves = [Polyline(x, x + k, f"<{k}> & co", k) for k in range(count)]
    words = list(tree.fromstring(line_chart(curves, "x < y", "b")).itertext())
    assert "x < y" in words
    assert ("<1> & co" in words) == (count <= 6)


def test_ticks_of_close_values_differ():
    y = 123456.0 + np.array([0, 0.001, 0.002])
    words = [
        w for w in tree.fromstring(line_chart([Polyline(y - 123456, y)], "", "")).itertext() if w
    ]
    assert len(words) == len(set(words))


def test_names_below_stand_beneath_every_curve():
    x = np.arange(5.0)
    curves = [Polyline(x, x, "mean <1>"), Polyline(x[:1], x[:1], "chosen", 2)]
    svg = tree.fromstring(line_chart(curves, "a", "b", height=200, key="below"))
    *_, line = svg.iter("{http://www.w3.org/2000/svg}text")
    assert list(line.itertext()) == ["mean <1>", "● chosen"]
    assert 200 < float(line.get("y")) < float(svg.get("viewBox").split()[3])


def test_axes_and_their_ticks_in_numbers():
    one = np.array([4.0])
    assert (Axis.around(one, 0, 1, True).low, Axis.around(one, 0, 1, True).high) == (2, 8)
    assert (Axis.around(one, 0, 1).low, Axis.around(one, 0, 1).high) == (2, 6)
    assert (Axis.around(0 * one, 0, 1).low, Axis.around(0 * one, 0, 1).high) == (-0.5, 0.5)
    axis = Axis(10.0, 1000.0, 100.0, 0.0, True)
    np.testing.assert_allclose(axis.place(np.array([10.0, 100.0, 1000.0])), [100, 50, 0])
    assert axis.ticks() == [10, 100, 1000]
    assert Axis(1.5, 7.0, 0, 1, True).ticks() == [2, 5]
    assert Axis(2.1, 2.2, 0, 1, True).ticks() == [2.1, 2.2]
    assert Axis(1e-9, 1.0, 0, 1, True).ticks() == [1e-9, 1e-7, 1e-5, 1e-3, 1e-1]
    assert Axis(0.0, 10.0, 0, 1).ticks() == [0, 2, 4, 6, 8, 10]
    assert Axis(0.0, 5.0, 0, 1).ticks() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_allclose(Axis(-1.0, 1.0, 0, 1).ticks(), [-1, -0.5, 0, 0.5, 1])
    assert Axis(0.3, 9.7, 0, 1).ticks() == [2, 4, 6, 8]  # none outside
    assert Axis(-9.7, 40.3, 0, 1).ticks() == [0, 10, 20, 30, 40]
    assert Axis(0.5, 2000.0, 0, 1, True).ticks() == [1, 10, 100, 1000]
    assert Axis(3.0, 20.0, 0, 1, True).ticks() == [5, 10, 20]
    assert Axis(1.0, 5.0, 0, 1).place(np.array([2.0])) == 0.25
    assert (Axis.around(-one, 3, 7).low, Axis.around(-one, 3, 7).high) == (-6, -2)
    assert Axis.around(np.array([1.0, 3.0]), 3, 7) == Axis(1.0, 3.0, 3, 7, False)
    assert Axis.around(np.array([5.0, 100.0]), 3, 7, True) == Axis(5.0, 100.0, 3, 7, True)


def test_numbers_on_a_logarithmic_axis_stay_short():
    written = [charts._written(v, 3, True) for v in (1e-9, 0.01, 0.00999, 9999.0, 1e4, 2.5e6)]
    assert written == ["1e-9", "0.01", "9.99e-3", "1e+04", "1e4", "2.5e6"]
    assert charts._written(1e-9, 3, False) == "1e-09"
    assert [charts._written(1.23456e-5, digits, True) for digits in (3, 5)] == [
        "1.23e-5", "1.2346e-5",
    ]  # fmt: skip
    assert [charts._digits(v) for v in ([1.0, 2.0], [1.0001, 1.0002])] == [3, 5]


def test_a_chart_in_numbers():
    """420 x 260: axes from 62 to 408 and from 210, 6 above the floor, to 12."""
    x, y = np.array([0.0, 2.0, 4.0]), np.array([10.0, 30.0, 20.0])
    one = Polyline(x, y, "one", 1)
    two = Polyline(x[:2], y[:2], "two", 7, dashed=True)
    svg = tree.fromstring(line_chart([one, two], "steps", "gap"))
    assert svg.get("viewBox") == "0 0 420 260"
    assert svg.get("aria-label") == "gap against steps"
    first, second = svg.iter(f"{SVG}polyline")
    assert first.get("points") == "62.0,210.0 235.0,12.0 408.0,111.0"
    assert second.get("points") == "62.0,210.0 235.0,12.0"
    assert first.get("stroke") == second.get("stroke") == charts.COLOURS[1]  # six, then again
    assert (first.get("stroke-dasharray"), second.get("stroke-dasharray")) == (None, "5 4")
    words = {
        "".join(text.itertext()): (float(text.get("x")), float(text.get("y")))
        for text in svg.iter(f"{SVG}text")
        if text.get("x")
    }
    assert words == {
        "10": (56, 214), "15": (56, 164.5), "20": (56, 115), "25": (56, 65.5), "30": (56, 16),
        "0": (62, 232), "1": (148.5, 232), "2": (235, 232), "3": (321.5, 232), "4": (408, 232),
        "steps": (235, 252), "one": (402, 26), "- - two": (402, 42),
    }  # fmt: skip
    (side,) = [text for text in svg.iter(f"{SVG}text") if text.get("transform")]
    assert side.get("transform") == "translate(13 114.0) rotate(-90)"
    assert "".join(side.itertext()) == "gap"
    lines = [path.get("d") for path in svg.iter(f"{SVG}path")]
    assert lines == [
        *(f"M62.0 {at}H408.0" for at in ("210.0", "160.5", "111.0", "61.5", "12.0")),
        "M62.0 12.0V216.0H408.0",
    ]


def test_a_single_point_and_names_below_in_numbers():
    x = np.array([0.0, 4.0])
    dot = Polyline(np.array([1.0]), np.array([1.0]), "best", 3)
    svg = tree.fromstring(
        line_chart([Polyline(x, x, "all"), dot], "a", "b", width=300, height=100, key="below")
    )
    assert svg.get("viewBox") == "0 0 300 120"
    (circle,) = svg.iter(f"{SVG}circle")
    assert (circle.get("cx"), circle.get("cy"), circle.get("r")) == ("118.5", "40.5", "4")
    assert circle.get("fill") == charts.COLOURS[3]
    *_, text = svg.iter(f"{SVG}text")
    assert (text.get("x"), text.get("y")) == ("150", "112")
    parts = [(part.get("dx"), part.get("fill"), part.text) for part in text]
    assert parts == [("0", charts.COLOURS[0], "all"), ("14", charts.COLOURS[3], "● best")]
    above = tree.fromstring(line_chart([Polyline(x, x, "all")], "a", "b", width=300, height=100))
    assert above.get("viewBox") == "0 0 300 100"
    assert not list(above.iter(f"{SVG}tspan"))
    nothing = tree.fromstring(line_chart([], "a", "b", width=300, height=100))
    (text,) = nothing.iter(f"{SVG}text")
    assert (text.get("x"), text.get("y")) == ("150", "50")


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_points_without_an_x_are_left_out_as_those_without_a_y(wrong):
    x, y = np.array([0.0, wrong, 2.0, 4.0]), np.array([10.0, 20.0, wrong, 30.0])
    svg = tree.fromstring(line_chart([Polyline(x, y)], "a", "b"))
    (line,) = svg.iter(f"{SVG}polyline")
    assert line.get("points") == "62.0,210.0 408.0,12.0"
    nothing = line_chart([Polyline(np.array([wrong]), np.array([1.0]))], "a", "b")
    assert "nothing to draw" in nothing

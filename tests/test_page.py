"""Tables and definitions on pages: what is tinted, set to the right, named and escaped."""

import re

from adafw.page import definitions, html_table, page, zoomed

ROWS = [["<b>a</b>", "1"], ["c", "2"], ["d", "3"]]


def test_a_table():
    plain = html_table(["name & co", "n"], ROWS)
    assert plain.startswith('<div class="scroll"><table><tr><th>name &amp; co</th><th>n</th></tr>')
    assert "<td><b>a</b></td><td>1</td>" in plain  # cells are HTML already
    assert plain.count("<tr>") == 4
    assert "class=best" not in plain
    assert "data-name" not in plain


def test_numbers_stand_on_the_right_and_the_best_row_is_tinted():
    found = html_table(["name", "n"], ROWS, numbers=[1], best=2)
    assert found.count("<td class=n>") == 3
    assert found.count("<th class=n>n</th>") == 1
    rows = re.findall(r"<tr( class=best)?>", found)
    assert rows == ["", "", "", " class=best"]


def test_stacked_cells_have_names_and_claims_have_none():
    stacked = html_table(["a<", "n"], ROWS, kind="stacked")
    assert '<table class="stacked">' in stacked
    assert stacked.count('<td data-name="a&lt;">') == 3
    assert "<th data-name" not in stacked
    assert "data-name" not in html_table(["a", "n"], ROWS, kind="claims")


def test_definitions_titles_and_figures():
    assert definitions({"max_epochs": "<3"}) == "<dl><dt>max epochs</dt><dd>&lt;3</dd></dl>"
    whole = page("A & B", ["<p>one</p>", "<p>two</p>"])
    assert "<title>A &amp; B</title>" in whole
    assert "<main><p>one</p><p>two</p></main>" in whole
    assert zoomed("<svg/>").endswith('<div class="scroll"><svg/></div></figure>')

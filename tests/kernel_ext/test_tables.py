"""Tables in a terminal and in a notebook."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.grid_html import FOLDED, HTML_LINES, as_html
from postroom.grid_text import TEXT_LINES, columns_of, plain, printable, wrapped
from postroom.grids import ROWS, Column, Data, Faint, Grid, Signed
from postroom.tables import Table

# What JupyterLab's sanitizer lets through of a notebook that is not trusted; it drops styles.
KEPT = {
    *("div", "p", "small", "table", "thead", "tbody", "tr", "th", "td"),
    *("details", "summary", "pre", "br", "wbr", "em", "span"),
}

TWO = Grid((Column("#", number=True), Column("who"), Column("text", text=True)), ())


def rows(*cells: tuple[str, ...]) -> Grid:
    return Grid(TWO.columns, cells)


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    assert plain(rows(("1", "ann", "hello"), ("12", "bob", "good day"))) == (
        " #  who  text\n"
        " 1  ann  hello\n"
        "12  bob  good day"
    )  # fmt: skip


def test_long_text_is_broken_inside_its_own_column() -> None:
    lines = plain(rows(("1", "ann", "word " * 20)), width=40).splitlines()

    assert len(lines) == 5
    assert all(line.startswith("        word") for line in lines[2:])
    assert all(columns_of(line) <= 40 for line in lines)


def test_line_ends_of_a_text_stay_and_a_very_long_text_says_what_it_hides() -> None:
    lines = plain(rows(("1", "ann", "\n".join("abcdefghijklmnopqrst")))).splitlines()

    assert lines[1].endswith("a")
    assert lines[2].strip() == "b"
    assert lines[-1].strip() == "… 9 more lines"
    assert len(lines) == 1 + TEXT_LINES


def test_wide_letters_keep_the_columns_straight() -> None:
    first, second = plain(rows(("1", "安娜", "x"), ("2", "ann", "y"))).splitlines()[1:]

    assert columns_of(first.partition("x")[0]) == columns_of(second.partition("y")[0])


def test_a_text_cannot_move_the_cursor_of_a_terminal() -> None:
    assert printable("a\x1b[2Jb\r\nc\td\x00") == "a\\x1b[2Jb\nc   d\\x00"


def test_html_escapes_everything_and_fixes_no_colour() -> None:
    page = as_html(rows(("<1>", "<b>", "<script>x</script> &\nline")))

    assert "<script" not in page
    assert "&lt;script&gt;x&lt;/script&gt; &amp;<br>line" in page
    assert "white-space:pre-wrap" in page
    assert not re.search(r"#[0-9a-f]{3,6}\b|rgb\(", page)


def test_a_long_text_unfolds_in_html_and_nothing_of_it_is_lost() -> None:
    lines = [f"<line {n}>" for n in range(40)]
    page = as_html(rows(("1", "ann", "\n".join(lines)), ("2", "bob", "y" * 2_000)))

    assert "<summary>28 more lines</summary>&lt;line 12&gt;" in page
    assert "<summary>800 more characters</summary>" in page
    assert all(f"&lt;line {n}&gt;" in page for n in range(40))
    assert "y" * 2_000 in page.replace("<wbr>", "").replace(
        "<details><summary>800 more characters</summary>", ""
    )


def test_one_line_too_many_is_not_folded() -> None:
    page = as_html(rows(("1", "ann", "a\n" * HTML_LINES + "a")))

    assert "<details" not in page


def test_only_the_table_scrolls_where_it_is_wider_than_the_page() -> None:
    page = as_html(rows(("1", "ann", "hi")))

    assert page.startswith('<div class="postroom-table mathjax_ignore tex2jax_ignore" style="')
    assert "overflow-x:auto;max-width:100%" in page
    assert page.count('<th scope="col"') == 3


def test_an_empty_table_says_so() -> None:
    grid = Grid(TWO.columns, (), empty="No mail <yet>.")

    assert plain(grid) == "No mail <yet>."
    assert as_html(grid) == "<p>No mail &lt;yet&gt;.</p>"


def test_a_table_is_a_list_that_shows_itself() -> None:
    table = Table(["a", "b"], lambda some: rows(*(("1", "ann", each) for each in some)))

    assert table == ["a", "b"]
    assert table[1] == "b"
    assert repr(table) == plain(table.grid)
    assert table._repr_mimebundle_() == {
        "text/plain": repr(table),
        "text/html": as_html(table.grid),
    }


def numbered(count: int, *, latest: bool) -> Table[int]:
    def draw(some: object) -> Grid:
        assert isinstance(some, list)
        cells = tuple((str(each), "ann", "hi") for each in some)
        return Grid(TWO.columns, cells, more="letters = %mail ann", latest=latest)

    return Table(range(count), draw)


@pytest.mark.parametrize("latest", [False, True])
def test_of_many_rows_some_are_shown_with_how_to_see_the_others(latest: bool) -> None:
    table = numbered(300, latest=latest)
    page, text = as_html(table.grid), repr(table)
    which, rest = ("last", "[:200]") if latest else ("first", "[100:]")
    note = f"The {which} 100 of 300 rows. The others: letters = %mail ann, then letters{rest}"

    assert len(table) == 300
    assert page.count("<tr>") == 1 + ROWS
    assert f"<small>{note}</small>" in page
    assert page.startswith("<p>") is latest
    assert text.splitlines()[-1] == note
    assert len(text.splitlines()) == 1 + ROWS + 1
    assert text.splitlines()[1].split()[0] == ("200" if latest else "0")


def test_a_slice_of_a_table_is_a_table_with_no_row_twice() -> None:
    table = numbered(300, latest=True)

    some = table[3:5]

    assert isinstance(some, Table)
    assert some == [3, 4]
    assert repr(some).splitlines()[1:] == ["3  ann  hi", "4  ann  hi"]
    assert repr(numbered(1, latest=True)).splitlines() == ["#  who  text", "0  ann  hi"]


# ── What a narrow page, a strict page and a strange text make of it ──


class Page(HTMLParser):
    """The tags of a page and its text, the text of styles left out."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.text, self.titles = set[str](), "", list[str | None]()
        self._style = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._style = tag == "style"
        self.titles += [value for name, value in attrs if name == "data-name"]

    def handle_endtag(self, tag: str) -> None:
        self._style = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._style else f"{data} "


def test_a_page_without_styles_has_all_words_and_line_ends() -> None:
    page = as_html(rows(("1", "<i>", "one\n  two & three")))

    read = Page(page)

    assert read.tags - {"style"} <= KEPT
    assert "one<br>  two &amp; three" in page
    assert read.text.split() == ["#", "who", "text", "1", "<i>", "one", "two", "&", "three"]


def test_each_cell_knows_its_column_for_when_rows_become_cards() -> None:
    grid = Grid((Column('"<n>"', number=True), Column("t", text=True)), (("1", "x"),))

    assert Page(as_html(grid)).titles == ['"<n>"', "t"]


def test_no_style_reaches_a_table_whose_cells_have_lost_their_names() -> None:
    """A page that is not trusted keeps classes and loses what it is not meant to have."""
    style = re.search(r"<style>(.*?)</style>", as_html(rows(("1", "ann", "x"))))
    assert style
    _, _, cards = style[1].partition("@container")
    selectors = [
        each.strip() for part in re.findall(r"([^{};]+)\{", cards) for each in part.split(",")
    ]

    assert len(selectors) > 8
    assert all(each.startswith(("table[data-cards=", "(max-width")) for each in selectors)


def test_a_page_becomes_cards_below_the_width_the_table_needs() -> None:
    def below(grid: Grid) -> int:
        found = re.search(r"max-width:(\d+)px\)", as_html(grid))
        assert found
        return int(found[1])

    small = Grid((Column("a"), Column("b")), (("1", "2"),))
    wide = Grid(tuple(Column(f"column {n}") for n in range(30)), (("some words",) * 30,))

    assert below(small) < 100
    assert 300 < below(rows(("1", "a-rather-long-name", "text"))) < 500
    assert below(wide) == 639  # a page wider than this scrolls the table instead


def test_a_word_without_end_gets_places_to_break_rather_at_its_signs() -> None:
    name = "a-rather-long-session-name-for-a-tester"
    page = as_html(rows(("1", name, "&" * 30 + " plain words")))

    assert "a-rather-long-session-<wbr>name-" in page
    assert f"{'&amp;' * 24}<wbr>{'&amp;' * 6} plain words" in page


def test_what_unfolds_is_bounded_and_says_so() -> None:
    page = as_html(rows(("1", "ann", "z " * 50_000)))

    assert len(page) < FOLDED + 5_000
    assert "more characters in the list itself" in page


def test_cells_that_are_more_than_text() -> None:
    whole = '{\n  "a": 1\n}'
    cells = (Signed("idle", "○", "var(--c)"), Faint("NULL"), Data('{"a": 1}', whole))
    long = Data("x" * 70, "<whole>")
    grid = Grid((Column("s"), Column("n"), Column("d", text=True)), (cells, (*cells[:2], long)))

    page = as_html(grid)

    assert '<span aria-hidden="true" style="color:var(--c)">○</span> idle' in page
    assert '<em style="opacity:0.7">NULL</em>' in page
    assert "&quot;a&quot;: 1}</td>" in page
    assert "&lt;whole&gt;</pre></details>" in page
    assert plain(grid).splitlines()[1] == 'idle  NULL  {"a": 1}'


def test_a_text_that_reads_from_the_right_keeps_to_its_cell() -> None:
    grid = Grid((Column("who"), Column("n", number=True)), (("שלום", "12"), ("ann", "3")))

    first, second = plain(grid).splitlines()[1:]

    assert first == "שלום\u200e  12"
    assert columns_of(first) == columns_of(second)
    assert 'dir="auto"' in as_html(grid)


def test_no_text_can_turn_the_line_it_stands_in() -> None:
    assert printable("a\u202eb\u2066c") == "a\\u202eb\\u2066c"
    assert printable("a\u2028b") == "a\\u2028b"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("日本", 4),
        ("é", 1),
        ("e\u0301", 1),
        ("👩\u200d💻", 2),
        ("❤\ufe0f", 2),
        ("שלום", 4),
        ("a\u200eb", 2),
    ],
)
def test_columns_are_counted_as_a_terminal_draws(text: str, columns: int) -> None:
    assert columns_of(text) == columns


def test_wide_text_is_broken_at_the_width_of_the_terminal() -> None:
    assert wrapped("日本語の文章", 5) == ["日本", "語の", "文章"]
    assert wrapped("ab 日本 cd", 7) == ["ab 日本", "cd"]
    assert wrapped("  in dented", 6) == ["  in", "dented"]
    lines = plain(rows(("1", "安", "長い文章" * 30)), width=60).splitlines()
    assert max(map(columns_of, lines)) <= 60


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), st.integers(4, 30))
def test_wrapping_fits_and_loses_nothing_but_blanks(text: str, width: int) -> None:
    line = printable(text).replace("\n", " ")

    lines = wrapped(line, width)

    assert all(columns_of(each) <= width for each in lines)
    assert "".join(lines).replace(" ", "") == line.replace(" ", "")


def test_the_names_of_columns_are_as_safe_as_the_cells() -> None:
    grid = Grid((Column("a\x1b[2J\n<b>"),), (("1",),))

    assert plain(grid).splitlines()[0] == "a\\x1b[2J <b>"
    assert "&lt;b&gt;</th>" in as_html(grid)


_ASCII = st.text(st.characters(max_codepoint=0x7E))


@given(
    st.lists(
        st.tuples(_ASCII.map(lambda text: text[:2]), _ASCII.map(lambda text: text[:2]), _ASCII),
        min_size=1,
    )
)
def test_a_table_of_anything_fits_its_width_and_shows_every_row(
    cells: list[tuple[str, str, str]],
) -> None:
    lines = plain(rows(*cells), width=60).split("\n")

    assert len(lines) >= 1 + len(cells)
    assert max(map(len, lines)) <= 60

import json
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.tables.cells import (
    float_of_text,
    integer_of_text,
    is_missing,
    is_number,
    key_of,
    label_of,
    number_of,
    time_of,
)
from connectors.tables.columns import RowReader
from connectors.tables.log_source import BATCH, LogSource
from connectors.tables.readers import TableError
from connectors.wire.codec import decode, encode
from streamgp.interactive.messages import Event, Rejected

CSV = """light,noise,name,at,who,room
0.5,3,ann,10,u1,hall
,4,bob,20,u2,kitchen
0.25,NaN,cy,30,u1,
"""

NO_TIME = "must be POSIX seconds or an ISO 8601 time such as 2026-03-02T14:19:00"

NO_FEATURE = (
    r"has no column of numbers or of recurring texts besides label, time and key \(.*\); "
    "name the columns that are features$"
)
NO_COLUMN = r"has no column besides label, time, key and ignored ones; expected others, from which "


def source(tmp_path, text=CSV, name="log.csv", **roles):
    path = tmp_path / name
    path.write_text(text)
    return LogSource(path, **{"label": "room", **roles})


def drain(log):
    found = []
    while not log.exhausted:
        found += log.poll()
    log.close()
    return [received.message for received in found]


def rows(*lines, header="a,b,room"):
    return "\n".join([header, *lines]) + "\n"


def reasons(messages):
    return {m.subject: m.reason for m in messages if isinstance(m, Rejected)}


def strict(x):
    return {name: (type(value), value) for name, value in x.items()}


def test_rows_become_events_with_truth_time_and_key(tmp_path):
    found = drain(source(tmp_path, time="at", key="who"))
    xs = [
        {"light": 0.5, "noise": 3, "name": "ann"},
        {"noise": 4, "name": "bob"},
        {"light": 0.25, "name": "cy"},
    ]
    assert found == [
        Event(event_id="1", key="u1", x=xs[0], occurred_at=10.0, truth="hall"),
        Event(event_id="2", key="u2", x=xs[1], occurred_at=20.0, truth="kitchen"),
        Event(event_id="3", key="u1", x=xs[2], occurred_at=30.0),
    ]


def test_without_time_and_key_the_row_number_counts_as_seconds(tmp_path):
    found = drain(source(tmp_path, ignore=["at", "who"]))
    assert [(m.event_id, m.key, m.occurred_at) for m in found] == [
        ("1", None, 1.0),
        ("2", None, 2.0),
        ("3", None, 3.0),
    ]


def test_the_time_of_a_record_is_that_of_its_event(tmp_path):
    assert [received.at for received in source(tmp_path, time="at").poll()] == [10.0, 20.0, 30.0]


def test_columns_of_texts_are_features_with_one_note(tmp_path):
    notes = []
    found = drain(source(tmp_path, time="at", notes=notes.append))
    assert notes == [
        "features that are texts: name (at least 3 different), who (at least 2 different)"
    ]
    assert found[0].x == {"light": 0.5, "noise": 3, "name": "ann", "who": "u1"}


def test_decimal_commas_that_cannot_be_read_are_noted(tmp_path):
    notes = []
    cells = [f'"-{n % 7},{n % 2}",1,x' for n in range(30)]
    first = drain(source(tmp_path, rows(*cells), notes=notes.append))[0]
    assert first.x == {"a": "-0,0", "b": 1}
    assert notes[-1] == (
        "not numbers, because decimal commas need semicolons between the cells of a table: a"
    )
    notes.clear()
    drain(source(tmp_path, rows(*(f'"{n},{n}",1,x' for n in range(30))), notes=notes.append))
    assert [note.partition(",")[0] for note in notes] == ["left out", "not numbers"]
    notes.clear()
    text = rows(*cells, header="a,b,room").replace('"', "").replace(",1,x", ";1;x")
    first = drain(source(tmp_path, text.replace("a,b,room", "a;b;room"), notes=notes.append))[0]
    assert first.x["a"] == 0.0
    assert notes == []


def test_numbers_with_points_and_with_commas_are_noted(tmp_path):
    notes = []
    table = ["1.234;1;x", "999;0,5;x"]
    text = "\n".join(["a;b;room", *table])
    found = drain(source(tmp_path, text, notes=notes.append))
    assert [one.x for one in found] == [{"a": 1.234, "b": 1}, {"a": 999, "b": 0.5}]
    assert notes == [
        "commas and points both count as decimal signs: '0,5' in b, '1.234' in a; remove those "
        "that separate thousands"
    ]
    notes.clear()
    drain(source(tmp_path, text, ignore=["b"], notes=notes.append))
    assert notes == []  # a column that is not used says nothing


@pytest.mark.parametrize(
    ("cells", "example"),
    [
        (["0", "3.4 kg", "12 kg"], "3.4 kg"),
        (["45%", "7%", "n/a"], "45%"),
        (["-3°C", "21,5°C", "7°C"], "-3°C"),
        (["1st", "2nd", "3rd"], None),
        (["hall", "bath 2", "2 rooms"], None),
        (["1e-5", "2e-5", "3e-5"], None),
    ],
)
def test_units_behind_numbers_are_noted(tmp_path, cells, example):
    notes = []
    text = rows(*(f'"{cells[n % 3]}",1,x' for n in range(30)))
    drain(source(tmp_path, text, notes=notes.append))
    said = f"not numbers, because something follows them: a (for example {example!r})"
    noted = example is not None
    assert [note for note in notes if note.startswith("not numbers")] == [said] * noted


@pytest.mark.parametrize(
    ("cells", "example"),
    [
        (["1.480,5", "-1.473,8", "12,0"], "1.480,5"),
        (["1,234,567", "1,234.5", "n/a"], "1,234,567"),
        (["852.8", "1'234.5", "12 345,6"], "1'234.5"),
        (["192.168.0.1", "10.0.0.1", "10.0.0.2"], None),
        (["hall, 200", "bath, 2", "1.2.3"], None),
    ],
)
def test_separated_thousands_are_noted(tmp_path, cells, example):
    notes = []
    text = "a;b;room\n" + "".join(f"{cells[n % 3]};1;x\n" for n in range(30))
    drain(source(tmp_path, text, notes=notes.append))
    said = f"not numbers, because thousands are separated: a (for example {example!r})"
    noted = example is not None
    assert [note for note in notes if note.startswith("not numbers")] == [said] * noted


@pytest.mark.parametrize(
    ("meter", "noted"),
    [
        (lambda n: 0.5 + 1.25 * n, True),
        (lambda n: 0.5 + 1.25 * abs(n - 2), False),  # it has fallen
        (lambda n: 0.5 + n // 3, False),  # it often repeats
    ],
)
def test_features_that_only_rise_are_noted(tmp_path, meter, noted):
    notes = []
    text = rows(*(f"{meter(n)},{n % 2},x" for n in range(30)))
    found = drain(source(tmp_path, text, notes=notes.append))
    assert found[1].x == {"a": meter(1), "b": 1}
    said = (
        "features that rise with every row; if these are meters, leave them out or take "
        "differences: a"
    )
    assert notes == [said] * noted
    notes.clear()
    drain(source(tmp_path, text, features=["a"], notes=notes.append))
    assert notes == []


@pytest.mark.parametrize(
    ("numbers", "left_out"),
    [
        ([1_700_000_000 + n // 6 for n in range(30)], True),
        ([1_700_000_000.5 + n // 6 for n in range(30)], True),
        ([1_700_000_000_000 + n // 6 for n in range(30)], True),
        ([1_700_000_000 + n // 6 for n in range(9)], False),
        ([1_700_000_000] * 30, False),
        ([1_700_000_000 + n // 6 % 3 for n in range(30)], False),  # it has fallen
        ([3_000_000_000 + n // 6 for n in range(30)], False),  # not before 2065
        ([1_200_000_000 + n // 20 * 200_000_000 for n in range(30)], False),  # six years, or Hz
        ([7 + n // 6 for n in range(30)], False),
    ],
)
def test_posix_times_are_no_features_though_rows_have_the_same(tmp_path, numbers, left_out):
    alone = drain(source(tmp_path, rows(*(f"{number},1,x" for number in numbers))))
    turns = [f"{number},{n % 2},x" for number in numbers for n in range(2)]
    text = rows(*turns, header="a,user,room")
    assert ("a" not in alone[0].x) == left_out
    if left_out:
        with pytest.raises(TableError, match="a number that rises with every row: a"):
            source(tmp_path, text, key="user")
    else:
        assert drain(source(tmp_path, text, key="user"))[0].x == {"a": numbers[0]}


def test_what_rises_in_each_key_is_judged_as_if_keys_came_one_after_another(tmp_path):
    notes = []
    table = [
        f"{n // 2 + 7000 * (n % 2)},{0.5 + n // 2 * 1.5},p{n % 2},{n % 3},x" for n in range(60)
    ]
    header = "meter,fine,user,b,room"
    found = drain(source(tmp_path, rows(*table, header=header), key="user", notes=notes.append))
    assert found[2].x == {"fine": 2.0, "b": 2}
    assert notes == [
        "left out, a number that rises with every row: meter",
        "features that rise with every row; if these are meters, leave them out or take "
        "differences: fine",
    ]
    by_key = sorted(table, key=lambda row: row.split(",")[2])
    assert drain(source(tmp_path, rows(*by_key, header=header), key="user"))[1].x == found[2].x
    # With fewer rows of each key, it might be chance.
    short = rows(*table[:30], header=header)
    assert drain(source(tmp_path, short, key="user"))[2].x == {"meter": 1, **found[2].x}


@pytest.mark.parametrize(
    "others",
    [
        [f"{n * 37 % 100},key {n},x" for n in range(30)],  # too few of each key to tell
        [f"{9 - n % 10},key {n // 10},x" for n in range(20)],  # it falls
    ],
)
def test_what_rises_in_one_key_only_is_a_feature(tmp_path, others):
    table = [*(f"{n},one,x" for n in range(25)), *others]
    found = drain(source(tmp_path, rows(*table, header="a,user,room"), key="user"))
    assert found[0].x == {"a": 0}


def test_no_feature_says_why(tmp_path):
    counters = rows(*(f"{n},{n * n},x" for n in range(30)))
    with pytest.raises(
        TableError, match=r"time and key \(left out, a number that rises .*: a, b\); name the"
    ):
        source(tmp_path, counters)
    lists = '{"a": [1], "room": "x"}\n'
    with pytest.raises(
        TableError, match=r"named as features \(left out, neither numbers nor texts: a\)$"
    ):
        source(tmp_path, lists, name="log.jsonl", features=["a"])


def test_a_first_line_of_numbers_with_a_name_may_be_a_row(tmp_path):
    """A name that does not recur, as of a device, may also be that of a column."""
    with pytest.raises(
        TableError, match=r"7, hall; if the first line is a row, name the columns in a"
    ):
        source(tmp_path, "p1,0.4,0.1,7,hall\np2,0.5,0.2,6,bath\np3,0.4,0.3,7,hall\n")


@pytest.mark.parametrize(
    ("text", "name"), [("at,value\n1,2\n", "log.csv"), ('{"at": 1, "value": 2}\n', "log.jsonl")]
)
def test_a_log_needs_a_column_from_which_the_label_is_predicted(tmp_path, text, name):
    with pytest.raises(TableError, match=NO_COLUMN):
        source(tmp_path, text, name=name, label="value", time="at")


@pytest.mark.parametrize(
    ("unit", "name"), [(10**3, "milliseconds"), (10**6, "microseconds"), (10**9, "nanoseconds")]
)
def test_times_in_other_units_are_noted(tmp_path, unit, name):
    text = rows(*(f"{1_700_000_000 * unit + n},1,x" for n in range(3)))
    assert notes_on_times(tmp_path, text) == [
        f"times of 'a' look like {name}, and count as seconds: divide them by {unit}"
    ]


@pytest.mark.parametrize("time", ["20231114", "202311142213", "20231114221320"])
def test_times_that_are_dates_without_hyphens_are_noted(tmp_path, time):
    assert notes_on_times(tmp_path, rows(f"{time},1,x")) == [
        f"times of 'a' look like dates ({time}), and count as seconds: write them as 2026-08-01 "
        "or 2026-08-01T14:30:00"
    ]


@pytest.mark.parametrize("times", [[1_700_000_000] * 3, [20231114, 20231199], [0, 1, 2]])
def test_seconds_are_not_noted(tmp_path, times):
    assert notes_on_times(tmp_path, rows(*(f"{at},1,x" for at in times))) == []


def notes_on_times(tmp_path, text, **roles):
    notes = []
    drain(source(tmp_path, text, time="a", notes=notes.append, **roles))
    return notes


def test_rows_of_a_signal_are_noted_unless_they_become_windows(tmp_path):
    # Two sensors at 20 Hz each, rows of both at once, and a pause.
    signal = rows(*(f"{n // 2 * 0.05 + n // 40 * 60:.2f},{n % 2},{n % 7}" for n in range(60)))
    roles = {"key": "b", "label": None}
    assert notes_on_times(tmp_path, signal, **roles) == [
        "rows come about 20 times a second, and each may be asked about: if they are a signal, cut "
        "it into windows, as docs/windows.md shows"
    ]
    assert notes_on_times(tmp_path, signal, **roles, windowed=True) == []
    assert notes_on_times(tmp_path, rows(*(f"{n},{n % 5},x" for n in range(60)))) == []


def test_rows_without_any_value_are_noted(tmp_path):
    notes = []
    drain(source(tmp_path, rows("1,2,x", ",,", ",3,", " ,,"), notes=notes.append))
    assert notes == ["2 of 4 rows are empty, and count like any other; remove empty rows"]
    drain(source(tmp_path, rows("1,2,x", ",,"), notes=notes.append))
    assert notes[1:] == ["1 of 2 rows is empty, and counts like any other; remove empty rows"]


def test_times_that_go_backwards_within_a_key_are_noted(tmp_path):
    text = rows("9,p,x", "3,q,x", "8,p,x", "4,q,x", "bad,q,x", "7,p,x")
    notes = []
    log = {"time": "a", "key": "b", "features": ["room"], "label": None}
    drain(source(tmp_path, text, **log, notes=notes.append))
    assert notes[-1:] == [
        "2 of 6 rows are earlier than the one before; sort the log by time, because answers and "
        "deadlines depend on it"
    ]
    drain(source(tmp_path, rows("9,p,x", "8,p,x"), **log, notes=notes.append))
    assert "1 of 2 rows is earlier than the one before" in notes[-1]
    notes.clear()
    drain(source(tmp_path, text, **log, windowed=True, notes=notes.append))
    assert not any("earlier" in note for note in notes)


@pytest.mark.parametrize(
    ("before", "after", "noted"),
    [
        ("2026-10-25 02:59:00", "2026-10-25 02:00:00", True),  # the hour that occurs twice
        ("2026-10-25 02:59:00", "2026-10-24 02:00:00", False),
        ("2026-10-25T00:59:00Z", "2026-10-25T00:00:00Z", False),
        ("1761354000", "1761351000", False),
    ],
)
def test_where_local_time_is_set_back_the_zone_is_asked_for(tmp_path, before, after, noted):
    notes = []
    log = {"time": "a", "features": ["room"], "label": None, "notes": notes.append}
    drain(source(tmp_path, rows(f"{before},1,x", f"{after},2,x"), **log))
    assert "1 of 2 rows is earlier" in notes[-1]
    assert ("or write local times with their zone" in notes[-1]) is noted


def test_texts_can_be_left_out_but_for_those_that_are_named(tmp_path):
    notes = []
    found = drain(source(tmp_path, time="at", texts=False, notes=notes.append))
    assert notes == ["left out, texts: name, who"]
    assert set(found[0].x) == {"light", "noise"}
    found = drain(source(tmp_path, features=["who"], texts=False))
    assert found[0].x == {"who": "u1"}


def test_empty_and_nan_cells_among_texts_are_missing(tmp_path):
    found = drain(source(tmp_path, rows("1, hall ,p", "2,,p", "3,NaN,p", "4,  ,p", "5,NA,p")))
    assert [m.x.get("b") for m in found] == ["hall", None, None, None, "NA"]
    assert all("b" not in m.x for m in found[1:4])


@pytest.mark.parametrize(
    "cell",
    ["NA", "n/a", "#N/A", "Null", " none ", "-", "?", "--", "\\N", "#DIV/0!", "unavailable", "."],
)
def test_what_stands_for_a_missing_number_is_missing_among_numbers(tmp_path, cell):
    """Also where most of the first rows lack the number, and in a label that is a number."""
    text = rows(*[f"1,{cell},{cell}"] * 5, "2,7,0.5", "3,warm,0.5")
    found = drain(source(tmp_path, text, label="room", numbers=True))
    assert [m.x for m in found[:6]] == [{"a": 1}] * 5 + [{"a": 2, "b": 7}]
    assert [m.truth for m in found[:6]] == [None] * 5 + [0.5]
    assert reasons(found) == {"row 7": "line 8: 'b' must be a number or empty, got 'warm'"}


def test_numbers_beside_semicolons_may_have_a_decimal_comma(tmp_path):
    """A class and a key are what stands there; without semicolons a comma means nothing."""
    text = "a;b;who;at;room\n1,5;2;0,1;10,5;3,5\n-2,5e1;2,5;0,2;11;4,5\n"
    found = drain(source(tmp_path, text, key="who", time="at"))
    assert [m.x for m in found] == [{"a": 1.5, "b": 2.0}, {"a": -25.0, "b": 2.5}]
    assert [(m.key, m.occurred_at, m.truth) for m in found] == [
        ("0,1", 10.5, "3,5"),
        ("0,2", 11.0, "4,5"),
    ]
    assert [m.truth for m in drain(source(tmp_path, text, numbers=True))] == [3.5, 4.5]
    (event,) = drain(source(tmp_path, rows('1,"1,5",p')))
    assert event.x == {"a": 1, "b": "1,5"}


def test_numbers_in_a_column_of_texts_are_texts(tmp_path):
    found = drain(source(tmp_path, rows("1,12a,p", "2,7,p", "3,b,p", "4,true,p", "5,c,p")))
    assert [m.x["b"] for m in found] == ["12a", "7", "b", "true", "c"]
    lines = [{"b": b, "room": "p"} for b in ("x", "y", "z", "w", "v", 7, 7.0, 0.5, True)]
    found = drain(source(tmp_path, "\n".join(map(json.dumps, lines)), "log.jsonl"))
    assert [m.x["b"] for m in found] == ["x", "y", "z", "w", "v", "7", "7", "0.5", "True"]


def test_texts_that_come_later_are_not_said_to_be_missing(tmp_path):
    notes = []
    drain(source(tmp_path, rows(*[f"{n},day{n // 48},p" for n in range(336)]), notes=notes.append))
    assert notes == [
        "left out, a number that rises with every row: a",
        "features that are texts: b (at least 3 different)",
    ]


def test_what_tells_every_row_apart_is_no_feature(tmp_path):
    notes = []
    text = rows(
        *[
            f"{n},{n // 2},u{n},r{n % 80},{1.6e9 + 0.5 * n},2020-01-01T00:{n // 2:02},{n % 3},p"
            for n in range(100)
        ],
        header="id,pair,who,often,unix,at,b,room",
    )
    found = drain(source(tmp_path, text, notes=notes.append))
    assert notes == [
        "left out, a number that rises with every row: id, unix",
        "left out, a different text in nearly every one of the first rows: who",
        "features that are texts: often (at least 80 different)",
        "left out, times: at",
    ]
    assert found[7].x == {"pair": 3, "often": "r7", "b": 1}


@pytest.mark.parametrize("day", ["10/03/2004", "1.3.2004 18.00.00", "2004/3/10", "3-10-2004T9h"])
def test_dates_in_other_forms_are_no_features_unless_they_are_named(tmp_path, day):
    notes = []
    text = rows(*[f"{n % 7},{day},p" for n in range(3)])
    assert drain(source(tmp_path, text, notes=notes.append))[2].x == {"a": 2}
    assert notes == ["left out, dates in a form that is not read: b"]
    assert drain(source(tmp_path, text, features=["b"]))[2].x == {"b": day}


def test_what_is_no_feature_by_itself_is_one_if_it_is_named(tmp_path):
    text = rows(
        *[f"{n},u{n},2020-01-01T00:00:{n // 2:02},p" for n in range(100)],
        header="id,who,at,room",
    )
    found = drain(source(tmp_path, text, features=["id", "who", "at"]))
    assert found[7].x == {"id": 7, "who": "u7", "at": 1577836803.0}


def test_few_rows_do_not_tell_what_is_different_in_every_row(tmp_path):
    found = drain(source(tmp_path, rows(*[f"{n},u{n},p" for n in range(19)])))
    assert found[-1].x == {"a": 18, "b": "u18"}


def test_a_log_may_have_no_feature_but_a_text(tmp_path):
    assert drain(source(tmp_path, "place,room\nhall,p\n"))[0].x == {"place": "hall"}


def test_only_the_features_named_are_used(tmp_path):
    found = drain(source(tmp_path, features=["noise", "at"]))
    assert [m.x for m in found] == [{"noise": 3, "at": 10}, {"noise": 4, "at": 20}, {"at": 30}]


def test_a_column_is_text_if_most_of_its_first_cells_are_no_numbers(tmp_path):
    text = rows("1,x,p", "x,y,p", "2,3,p", "x,z,p", "3,,p")
    notes = []
    found = drain(source(tmp_path, text, notes=notes.append))
    assert notes == [
        "features that are texts: b (at least 4 different)",
        "taken for numbers, so rows with a text there are rejected, unless the column is ignored: "
        "a (for example 'x')",
    ]
    assert [type(m) for m in found] == [Event, Rejected, Event, Rejected, Event]
    assert reasons(found) == {
        "row 2": "line 3: 'a' must be a number or empty, got 'x'",
        "row 4": "line 5: 'a' must be a number or empty, got 'x'",
    }


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        (["1", "2", "EG", "2", "1"], True),
        (["4", "f", "r", "4"], True),
        (["1", "-1", *["2"] * 5, "K"], True),
        (["1", "2", *["2"] * 7, "K"], False),  # no more than a tenth
        (["1.5", "2", "EG", "2", "1"], False),
        ([*map(str, range(7)), "EG"], True),
        ([*map(str, range(8)), "EG"], False),  # of 40 cells, 9 are different
    ],
)
def test_few_whole_numbers_beside_texts_are_names(tmp_path, cells, names):
    cells = [cells[n % len(cells)] for n in range(40)]
    found = drain(source(tmp_path, rows(*(f"{cell},1,p" for cell in cells))))
    if names:
        assert [event.x["a"] for event in found] == cells
    else:
        assert [type(m) is Rejected for m in found] == [not is_number(cell) for cell in cells]


def test_names_in_json_may_be_numbers(tmp_path):
    lines = [json.dumps({"floor": floor, "room": "x"}) for floor in [1, 2, "EG", 2] * 10]
    found = drain(source(tmp_path, "\n".join(lines), name="log.jsonl"))
    assert [event.x["floor"] for event in found] == ["1", "2", "EG", "2"] * 10


@pytest.mark.parametrize("cell", ["warm", "NA", "-"])
def test_a_text_that_does_not_recur_among_numbers_is_not_noted(tmp_path, cell):
    notes = []
    text = rows("1,2,p", f"{cell},2,p", "3,4,q", "NA,5,q", "NA,6,q")
    drain(source(tmp_path, text, notes=notes.append))
    assert notes == []


def test_text_in_a_numeric_column_rejects_the_row_and_the_run_goes_on(tmp_path):
    text = rows(*["1,2,p"] * 200, "oops,2,p", "3,4,q")
    found = drain(source(tmp_path, text))
    assert found[200] == Rejected(
        subject="row 201",
        fault="malformed",
        reason="line 202: 'a' must be a number or empty, got 'oops'",
        at=201.0,
    )
    assert found[201].event_id == "202"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1,2", "has 2 cells, expected 3"),
        ("1,2,3,4", "has 4 cells, expected 3"),
        ("inf,2,p", "'a' must be finite, got 'inf'"),
        ("1,-Infinity,p", "'b' must be finite, got '-Infinity'"),
        ("1,1e999,p", "'b' must be finite, got '1e999'"),
        ("1_000,2,p", "'a' must be a number or empty, got '1_000'"),
        ("1.5.2,2,p", "'a' must be a number or empty, got '1.5.2'"),
        (
            "\u22125,2,p",
            "'a' must be a number or empty, got '\u22125'; its minus is U+2212, which is no -",
        ),
    ],
)
def test_a_row_that_cannot_be_used_is_rejected_with_line_and_reason(tmp_path, row, reason):
    found = drain(source(tmp_path, rows("0.5,2,p", row, "3,4,q")))
    assert reasons(found) == {"row 2": f"line 3: {reason}"}
    assert [m.event_id for m in found if isinstance(m, Event)] == ["1", "3"]


@pytest.mark.parametrize(
    ("row", "reason", "key"),
    [
        (",u1,1,p", "time 't' is missing", None),
        ("soon,u1,1,p", f"time 't' {NO_TIME}, got 'soon'", None),
        ("02.03.2026 14:19,u1,1,p", f"time 't' {NO_TIME}, got '02.03.2026 14:19'", None),
        ("inf,u1,1,p", f"time 't' {NO_TIME}, got 'inf'", None),
        ("11,,1,p", "key 'k' is missing", None),
        ("11,u1,x,p", "'a' must be a number or empty, got 'x'", "u1"),
    ],
)
def test_a_row_needs_its_time_and_key(tmp_path, row, reason, key):
    text = rows("10,u0,1,p", row, header="t,k,a,room")
    found = drain(source(tmp_path, text, time="t", key="k"))
    assert reasons(found) == {"row 2": f"line 3: {reason}"}
    assert found[1].key == key
    assert found[1].at == (11.0 if row.startswith("11") else 10.0)


def test_booleans_are_numbers(tmp_path):
    found = drain(source(tmp_path, rows("true,False,p", "TRUE,0.5,p")))
    assert [m.x for m in found] == [{"a": 1, "b": 0}, {"a": 1, "b": 0.5}]


def test_whole_columns_are_integers(tmp_path):
    found = drain(source(tmp_path, rows("-1,1.5,p", "2,2,p", "2.5,3,p")))
    assert [strict(m.x) for m in found] == [
        {"a": (float, -1.0), "b": (float, 1.5)},
        {"a": (float, 2.0), "b": (float, 2.0)},
        {"a": (float, 2.5), "b": (float, 3.0)},
    ]
    found = drain(source(tmp_path, rows("-1,1.5,p", "2,2,p", *["3,3,p"] * 100, "2.5,3,p")))
    assert [strict(m.x)["a"] for m in (found[0], found[-1])] == [(int, -1), (float, 2.5)]


def test_labels_that_are_all_integers_are_integers(tmp_path):
    found = drain(source(tmp_path, rows("1,2,3", "1,2,-4", "1,2,", "1,2,+5", "1,2,nan")))
    assert [m.truth for m in found] == [3, -4, None, 5, None]
    assert type(found[0].truth) is int


@pytest.mark.parametrize("labels", [["1", "2.0"], ["1", "x"], ["01", "2"], ["1", "1_2"]])
def test_labels_that_are_not_all_integers_are_texts(tmp_path, labels):
    found = drain(source(tmp_path, rows(*[f"1,2,{y}" for y in labels])))
    assert [m.truth for m in found] == labels


def test_a_later_label_that_is_no_integer_rejects_its_row(tmp_path):
    found = drain(source(tmp_path, rows(*["1,2,3"] * 100, "1,2,hall", "1,2,4")))
    reason = "line 102: label 'room' must be an integer like the first ones, got 'hall'"
    assert reasons(found) == {"row 101": reason}
    found = drain(source(tmp_path, rows(*["1,2,3"] * 100, "1,2,17.5", "1,2,4")))
    assert reasons(found)["row 101"] == (
        "line 102: label 'room' must be an integer like the first ones, got '17.5'; to predict the "
        'number itself, set target = "number"'
    )


def test_a_label_that_equals_one_of_another_type_rejects_its_row(tmp_path):
    lines = [json.dumps({"a": n, "room": y}) for n, y in enumerate([True, False, 1, 0.0, True])]
    found = drain(source(tmp_path, "\n".join(lines), "log.jsonl"))
    assert [m.truth for m in found if isinstance(m, Event)] == [True, False, True]
    assert reasons(found)["row 3"].startswith(
        "line 3: equal labels must be of one type, got 1 where True is known; Python takes"
    )
    assert list(reasons(found)) == ["row 3", "row 4"]


@pytest.mark.parametrize(
    ("labels", "note"),
    [
        ([n / 10 for n in range(30)], "every different number in 'room' counts as a class, 30 in"),
        ([f"id{n}" for n in range(30)], "'room' has 30 different labels in the first 30 rows: "),
        ([n % 19 for n in range(100)], None),
        ([*range(30), *range(30)], None),
        ([n / 10 for n in range(19)], None),
        ([f"room {n}" for n in range(19)], None),
        ([f"room {n}" for n in [*range(30), *range(30)]], None),
    ],
)
def test_labels_that_hardly_repeat_are_noted(tmp_path, labels, note):
    notes = []
    drain(source(tmp_path, rows(*[f"1,2,{y}" for y in labels]), notes=notes.append))
    assert len(notes) == (note is not None)
    assert all(told.startswith(note) for told in notes)


@pytest.mark.parametrize(
    ("text", "n"),
    [
        (rows(*[f"1,2,{n % 25 / 10}" for n in range(100)]), 25),  # fractions, that repeat
        (rows(*[f"1,5;2,5;{n % 40},5" for n in range(50)], header="a;b;room"), 40),
        (rows(*[f"1,5;2,5;{n % 40}" for n in range(90)], header="a;b;room"), 0),
        (rows(*["1,2," for _ in range(30)]), 0),
    ],
)
def test_numbers_are_told_from_classes(tmp_path, text, n):
    with closing(source(tmp_path, text)) as log:
        assert log.n_numbers == n
    with closing(source(tmp_path, text, numbers=True)) as log:
        assert log.n_numbers == 0


@pytest.mark.parametrize(
    ("labels", "n"),
    [
        (["0"] * 200 + [str(n) for n in range(1, 100)], 100),
        (["0"] * 200 + [str(n) for n in range(1, 99)], 0),
        (["0.5"] * 200 + [f"{n}.5" for n in range(1, 100)], 100),
        (["0.5"] * 200 + [f"{n}.5" for n in range(1, 100)] + ["off"], 0),
        ([str(n) for n in range(300)], 0),  # noted at the start
    ],
)
def test_many_numbers_that_come_late_are_told_from_classes_at_the_end(tmp_path, labels, n):
    notes = []
    text = rows(*[f"1,2,{label}" for label in labels])
    log = source(tmp_path, text, notes=notes.append)
    first = list(notes)
    drain(log)
    told = [note.split(";")[0] for note in notes[len(first) :]]
    assert told == [f"every different number in 'room' counts as a class, {n} in all"] * bool(n)
    notes.clear()
    drain(source(tmp_path, text.replace("off", "1"), numbers=True, notes=notes.append))
    assert notes == []


@pytest.mark.parametrize(
    ("cells", "noted"),
    [
        (["0.5", "-999", "2", "-999.0", "-999"], "-999 in a"),
        (["-0.5", "-9999", "?", "7", "-9999"], "-9999 in a"),
        (["20", "65535", "25", "65535", "65535"], "65535 in a"),
        (["0.5", "-999", "2"], None),  # it does not recur
        (["-2000", "-999", "2000", "-999"], None),
        (["0.5", "998", "2", "998"], None),
        (["-999", "-999", "warm"], None),
        (["true", "999", "false", "999"], "999 in a"),
        (["5", "-200", "9.5", "-200"], "-200 in a"),
        (["5", "-200", "-9.5", "-200"], None),
        (["0", "-1", "0", "-1"], None),
    ],
)
def test_numbers_that_may_stand_for_a_missing_one_are_noted(tmp_path, cells, noted):
    notes = []
    drain(source(tmp_path, rows(*[f"{cell},2,x" for cell in cells]), notes=notes.append))
    found = [note for note in notes if note.startswith("far from all")]
    what = f"far from all other numbers: {noted}; if it stands for a missing number, leave the c"
    assert [note[: len(what)] for note in found] == [what] * (noted is not None)


@pytest.mark.parametrize("numbers", [True, False])
def test_labels_are_such_numbers_only_if_they_are_targets(tmp_path, numbers):
    notes = []
    text = rows(*[f"1,2,{label}" for label in ("20.5", "-999", "21", "-999")])
    drain(source(tmp_path, text, numbers=numbers, notes=notes.append))
    found = [note.split(";")[0] for note in notes if note.startswith("far from all")]
    assert found == ["far from all other numbers: -999 in room"] * numbers


@pytest.mark.parametrize(
    ("cells", "noted"),
    [
        (
            ['"20,5"', '"21,25"', ""],
            "decimal commas need semicolons between the cells of a table: room",
        ),
        (["20.5 kg", "21 kg", "NA"], "something follows them: room (for example '20.5 kg')"),
        (['"1,234.5"', '"2,234.5"'], "thousands are separated: room (for example '1,234.5')"),
        (["20.5", "21.25", "1,5"], None),
    ],
)
def test_targets_that_only_people_read_as_numbers_are_noted(tmp_path, cells, noted):
    notes = []
    drain(source(tmp_path, rows(*[f"1,2,{c}" for c in cells]), numbers=True, notes=notes.append))
    assert notes == [f"not numbers, because {noted}"] * (noted is not None)


@pytest.mark.parametrize("cell", ["20,5", "20.5"])
def test_targets_may_have_decimal_commas_where_semicolons_separate_cells(tmp_path, cell):
    notes = []
    text = f"a;b;room\n1,5;2;{cell}\n2,5;2;{cell}\n"
    [one, _] = drain(source(tmp_path, text, numbers=True, notes=notes.append))
    assert (one.truth, [note for note in notes if "not numbers" in note]) == (20.5, [])


@pytest.mark.parametrize(
    ("times", "noted"),
    [
        (["46083.59653", "46083.597222222", "46083.6"], True),
        (["46083.59653", "46086.59722", "46089.59792"], False),
        (["50400.02", "50400.04", "50400.06"], False),
        (["6083.59653", "6083.59722", "6083.59792"], False),
        (["46083", "46084", "46085"], False),
    ],
)
def test_times_that_are_days_of_a_spreadsheet_are_noted(tmp_path, times, noted):
    found = notes_on_times(tmp_path, rows(*[f"{time},1,x" for time in times]))
    told = f"times of 'a' look like days, as spreadsheets count them ({times[0]}), and count as"
    assert [note[: len(told)] for note in found] == [told] * noted


def test_labels_that_may_stand_for_none_are_noted(tmp_path):
    notes = []
    found = drain(source(tmp_path, rows("1,2,p", "2,2,NA", "3,2,?"), notes=notes.append))
    assert [one.truth for one in found] == ["p", "NA", "?"]
    assert notes == [
        "?, NA in 'room' counts as a class; leave the cell empty where there is no label"
    ]
    notes.clear()
    drain(source(tmp_path, rows("1,2,none", "2,2,null", "3,2,"), notes=notes.append))
    drain(source(tmp_path, rows("1,2,3", "2,2,NA"), numbers=True, notes=notes.append))
    assert notes == []


PAIRS = ", ".join(f"'{y}' and '{y.upper()}'" for y in "abcde")


@pytest.mark.parametrize(
    ("name", "labels", "found"),
    [
        ("log.csv", ["Walk", "sit", "walk"], "'Walk' and 'walk'"),
        ("log.csv", ["walk"] * 300 + ["Walk", "WALK"], "'walk' and 'Walk' and 'WALK'"),
        ("log.csv", ["p", "P", "q", "Q"], "'p' and 'P', 'q' and 'Q'"),
        ("log.csv", [*"abcdefgABCDEFG"], f"{PAIRS} and 2 more"),
        ("log.csv", ["walk ", "sit", "walk"], None),
        ("log.jsonl", [True, "true", False], "True and 'true'"),
        ("log.jsonl", [1, 2, "1"], "1 and '1'"),
        ("log.jsonl", [1, 2, 1.0, None], None),
    ],
)
def test_labels_that_may_be_one_class_are_noted(tmp_path, name, labels, found):
    notes = []
    if name == "log.csv":
        text = rows(*[f"1,2,{y}" for y in labels])
    else:
        text = "\n".join(json.dumps({"a": 1, "room": y}) for y in labels)
    drain(source(tmp_path, text, name, notes=notes.append))
    advice = "in 'room' count as different classes; if they are one, write it in one way"
    assert notes == ([] if found is None else [f"{found} {advice}"])


def test_an_integer_too_large_for_a_message_is_a_float_as_in_csv(tmp_path):
    typed = source(tmp_path, '{"a": 18446744073709551615, "room": "p"}', "log.jsonl")
    text = source(tmp_path, "a,room\n18446744073709551615,p\n")
    assert strict(drain(typed)[0].x) == strict(drain(text)[0].x) == {"a": (float, 2.0**64)}


def test_labels_are_judged_by_the_first_one_if_the_first_rows_have_none(tmp_path):
    found = drain(source(tmp_path, rows(*["1,2,"] * 150, "1,2,7", "1,2,8")))
    assert [m.truth for m in found[-2:]] == [7, 8]


def test_a_column_that_starts_empty_is_judged_by_its_first_cell(tmp_path):
    notes = []
    text = rows(*["1,,,p"] * 150, "1,2,late,p", "1,3,x,p", header="a,b,c,room")
    found = drain(source(tmp_path, text, notes=notes.append))
    assert notes == ["features that are texts: c (for example 'late')"]
    assert [m.x for m in found[-2:]] == [{"a": 1, "b": 2, "c": "late"}, {"a": 1, "b": 3, "c": "x"}]


@pytest.mark.parametrize("texts", [True, False])
def test_a_text_in_the_first_rows_before_numbers_is_noted_at_the_end(tmp_path, texts):
    """Not where a text is all that there is, nor where numbers are few."""
    notes = []
    lines = ["1,off air,hall,x,p"] * 100 + ["1,2.5,hall,y,p"] * 9 + ["1,off air,hall,7,p"] * 8
    text = rows(*lines, header="a,b,c,d,room")
    log = source(tmp_path, text, texts=texts, notes=notes.append)
    said = len(notes)
    drain(log)
    assert notes[said:] == [
        "taken for texts, by the first 100 rows, though later ones have numbers: b ('off air'); if "
        "the text stands for a missing number, leave the cell empty"
    ]


def test_columns_without_a_name_are_left_out_with_a_note(tmp_path):
    notes = []
    found = drain(source(tmp_path, ",a,room\n0,1,p\n", notes=notes.append))
    assert found[0].x == {"a": 1}
    assert notes == ["left out without a name: column 1"]


@pytest.mark.parametrize(("n_texts", "noted"), [(20, False), (21, True)])
def test_a_column_that_costs_more_than_a_tenth_of_the_rows_is_noted(tmp_path, n_texts, noted):
    notes = []
    lines = ["1.5,2,p"] * (200 - n_texts) + ["0a,2,p", "0b,x,p", "0c,2,p"] * (n_texts // 3)
    lines += ["0d,2,p"] * (n_texts % 3)
    found = drain(source(tmp_path, rows(*lines), notes=notes.append))
    assert len(reasons(found)) == n_texts
    said = "21 of 200 rows are rejected for their cells in 'a'; ignore this column to use them"
    assert notes == [said] * noted


def test_columns_without_any_value_are_noted_once_at_the_end(tmp_path):
    notes = []
    log = source(tmp_path, rows(*["1,,,p"] * 300, header="a,b,c,room"), notes=notes.append)
    log.poll()
    assert notes == []
    drain(log)
    log.poll()
    assert notes == ["without a value in every row that could be read: b, c"]


def test_columns_of_rows_that_cannot_be_read_are_not_called_empty(tmp_path):
    notes = []
    assert len(reasons(drain(source(tmp_path, rows("1,2", "3"), notes=notes.append)))) == 2
    assert notes == []


@pytest.mark.parametrize(
    ("header", "cells", "why"),
    [
        (",,room", "2,1,x", "left out without a name: column 1, column 2"),
        ("a,room", "{}%,x", "not numbers, because something follows them: a (for example '0%')"),
        ("a,room", '"{},5",x', "not numbers, because decimal commas need semicolons"),
        ("a,room", '"{},000.5",x', "not numbers, because thousands are separated: a"),
    ],
)
def test_a_log_without_features_says_why_no_column_is_one(tmp_path, header, cells, why):
    text = rows(*(cells.format(n) for n in range(40)), header=header)
    with pytest.raises(TableError) as raised:
        source(tmp_path, text)
    assert why in str(raised.value)


def test_json_keeps_its_types(tmp_path):
    lines = [
        {"a": 1, "b": True, "room": "1"},
        {"a": 0.5, "b": None, "room": 1},
        {"a": "", "room": False},
        {"a": 1, "c": 2, "room": 2.0},
        {"a": float("nan"), "room": 2.5},
        {"b": False, "room": None},
    ]
    found = drain(source(tmp_path, "\n".join(map(json.dumps, lines)), "log.jsonl"))
    assert [(type(m.truth), m.truth) for m in found] == [
        (str, "1"),
        (int, 1),
        (bool, False),
        (int, 2),
        (float, 2.5),
        (type(None), None),
    ]
    assert [m.x for m in found] == [
        {"a": 1, "b": 1},
        {"a": 0.5},
        {},
        {"a": 1, "c": 2},
        {},
        {"b": 0},
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('{"a": Infinity}', "'a' must be finite, got inf"),
        ('{"a": [1]}', "'a' must be a number, got [1]"),
        ('{"a": 1' + "0" * 400 + "}", "'a' must be finite, got '1" + "0" * 58),
        (
            '{"a": 1, "room": [1]}',
            "label 'room' must be a label (text, integer or boolean), got [1]",
        ),
        ("[1]", "is not a JSON object: '[1]'"),
        (
            '{"a\\ud800": 1, "room": "p"}',
            r"""names must be valid Unicode, got '{"a\\ud800": 1, "room": "p"}'""",
        ),
    ],
)
def test_json_that_cannot_be_used_is_rejected(tmp_path, row, reason):
    text = '{"a": 1, "room": "p"}\n' * 3 + row
    assert reasons(drain(source(tmp_path, text, "log.jsonl"))) == {"row 4": f"line 4: {reason}"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "1\n[2]\n",
            r"of the first 2 rows .* one JSON object on each line; line 1: is not a JSON object",
        ),
        ('{"room": ' + "9" * 5000 + "}\n", r"of the first 1 rows .*; line 1: "),
        ('{"a":' + "[" * 10**5 + "]" * 10**5 + "}\n", r"of the first 1 rows .*; line 1: "),
    ],
)
def test_a_file_none_of_whose_rows_name_columns_says_what_is_wrong_with_them(
    tmp_path, text, reason
):
    with pytest.raises(TableError, match=reason):
        source(tmp_path, text, "log.jsonl")


def test_a_json_column_that_comes_too_late_for_its_role_is_not_said_to_be_missing(tmp_path):
    text = '{"a": 1}\n' * 100 + '{"a": 1, "room": "p"}\n'
    with pytest.raises(
        TableError, match=r"^the first 100 rows of .*log\.jsonl have no column 'room'"
    ):
        source(tmp_path, text, "log.jsonl")


def test_json_columns_that_come_later_are_judged_then(tmp_path):
    notes = []
    text = '{"a": 1, "room": "p"}\n' * 150 + '{"a": 1, "b": 2, "c": "x", "room": "p"}\n' * 2
    found = drain(source(tmp_path, text, "log.jsonl", notes=notes.append))
    assert found[-1].x == {"a": 1, "b": 2, "c": "x"}
    assert notes == ["features that are texts: c (for example 'x')"]


def test_what_is_neither_number_nor_text_is_left_out(tmp_path):
    notes = []
    text = '{"a": 1, "b": [1], "room": "p"}\n' * 150 + '{"a": 1, "c": {}, "room": "p"}\n'
    found = drain(source(tmp_path, text, "log.jsonl", notes=notes.append))
    assert {tuple(m.x) for m in found} == {("a",)}
    assert notes == [
        "left out, neither numbers nor texts: b",
        "values within lists and objects are features only in fields of their own, such as 'b_0'",
        "left out, neither numbers nor texts: c (for example {})",
    ]


def test_what_lies_within_objects_is_said_to_need_fields_of_its_own(tmp_path):
    notes = []
    text = '{"acc": {"x": 1.5, "y": 2}, "a": 1, "room": "p"}\n' * 3
    drain(source(tmp_path, text, "log.jsonl", notes=notes.append))
    assert notes == [
        "left out, neither numbers nor texts: acc",
        "values within lists and objects are features only in fields of their own, such as 'acc_x'",
    ]


def test_a_log_of_objects_alone_is_refused_with_what_to_do(tmp_path):
    text = '{"acc": {"x": 1.5, "y": 2}, "room": "p"}\n' * 3
    advice = r"texts: acc\); values within lists .* fields of their own, such as 'acc_x'$"
    with pytest.raises(ValueError, match=advice):
        source(tmp_path, text, "log.jsonl")


def test_parquet_keeps_its_types(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    when = datetime(2015, 2, 2, 14, 19, tzinfo=UTC)
    columns = {
        "a": pa.array([1.5, None, float("nan")], pa.float32()),
        "on": [True, False, None],
        "price": [Decimal("1.25"), Decimal(2), Decimal(3)],
        "t": pa.array([when] * 3, pa.timestamp("ns")),
        "who": [7, 8, None],
        "room": [1.0, None, 2.0],
    }
    path = tmp_path / "log.parquet"
    parquet.write_table(pa.table(columns), path)
    notes = []
    log = LogSource(path, label="room", time="t", key="who", notes=notes.append)
    found = drain(log)
    assert notes == []
    assert strict(found[0].x) == {"a": (float, 1.5), "on": (int, 1), "price": (float, 1.25)}
    assert found[1].x == {"on": 0, "price": 2.0}
    assert [m.truth for m in found[:2]] == [1, None]
    assert [(m.key, m.occurred_at) for m in found[:2]] == [("7", when.timestamp())] * 1 + [
        ("8", when.timestamp())
    ]
    assert reasons(found) == {"row 3": "row 3: key 'who' is missing"}


@pytest.mark.parametrize(
    ("cell", "at"),
    [
        ("1422886740", 1422886740.0),
        ("-0.5", -0.5),
        ("2015-02-02T14:19:00Z", 1422886740.0),
        ("2015-02-02 14:19:00", 1422886740.0),
        ("2015-02-02T15:19:00.25+01:00", 1422886740.25),
        ("2015-02-02", 1422835200.0),
        (1422886740, 1422886740.0),
        (datetime(2015, 2, 2, 14, 19), 1422886740.0),
        (datetime(2015, 2, 2, 14, 19, tzinfo=UTC), 1422886740.0),
        (date(2015, 2, 2), 1422835200.0),
    ],
)
def test_times_are_posix_seconds_or_iso_8601_in_utc(cell, at):
    assert time_of(cell) == at


@pytest.mark.parametrize("cell", [True, [1], "1_0", "nan", "tomorrow", 10**400, float("inf")])
def test_what_is_no_time_is_refused(cell):
    with pytest.raises(ValueError, match=f"^{NO_TIME}, got "):
        time_of(cell)


def test_keys_are_texts_or_integers():
    assert [key_of(cell) for cell in (" u1 ", 7, 7.0, True, 0.5)] == ["u1", "7", "7", "True", "0.5"]
    with pytest.raises(ValueError, match=r"^must be a key \(text or integer\), got \[1\]$"):
        key_of([1])


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63) + 1, 2**63 - 1))
def test_every_finite_number_is_read_from_its_text(value):
    assert float_of_text(repr(value)) == float(value)
    assert number_of(value) == value
    if isinstance(value, int):
        assert integer_of_text(str(value)) == pytest.approx(value, rel=1e-15)


@given(st.text(max_size=10) | st.none() | st.floats() | st.integers() | st.booleans() | st.binary())
def test_a_cell_means_something_or_raises_a_value_error(cell):
    for meaning in (number_of, time_of, label_of, key_of):
        try:
            value = meaning(cell)
        except ValueError:
            continue
        assert value == value
    is_missing(cell)


@given(st.text(max_size=200))
def test_any_text_is_a_log_or_a_table_error(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("any") / "log.csv"
    path.write_bytes((rows("1,2,p") + text).encode(errors="replace"))
    try:
        found = drain(LogSource(path, label="room"))
    except TableError:
        return
    assert all(isinstance(m, Event | Rejected) for m in found)
    assert all(decode(encode(m)) == m for m in found)


@pytest.mark.parametrize(
    ("roles", "match"),
    [
        (
            {"label": "rom"},
            r"has no column 'rom' \(label\); columns: light, noise, name, at, who, r",
        ),
        ({"label": "rom"}, r"did you mean 'room'\?$"),
        ({"label": "ro\u0308om"}, r"did you mean 'room'\?$"),
        ({"time": "zzz"}, r"has no column 'zzz' \(time\); columns: .*, room$"),
        ({"key": "zzz"}, r"has no column 'zzz' \(key\); columns: "),
        ({"ignore": ["zzz"]}, r"has no column 'zzz' \(ignore\); columns: "),
        ({"features": ["light", "zzz"]}, r"has no column 'zzz' \(features\); columns: "),
        ({"ignore": ["light", "noise", "name", "who"], "time": "at"}, NO_COLUMN),
        ({"ignore": ["*"], "time": "at"}, NO_COLUMN),
        ({"ignore": ["light*", "z*"]}, r"has no column 'z\*' \(ignore\); columns: "),
        ({"features": ["z*"]}, r"has no column 'z\*' \(features\); columns: "),
    ],
)
def test_a_missing_column_is_named_with_the_columns_there_are(tmp_path, roles, match):
    with pytest.raises(TableError, match=match):
        source(tmp_path, **roles)


def test_a_column_in_another_unicode_form_is_told(tmp_path):
    text = CSV.replace("room", "\u00f6")
    with pytest.raises(TableError, match=r"; one that looks the same has another .* '.xf6'$"):
        source(tmp_path, text, label="o\u0308")


@pytest.mark.parametrize("delimiter", ["|", "~"])
def test_a_header_of_one_cell_says_what_parts_cells(tmp_path, delimiter):
    with pytest.raises(
        TableError, match=r"expected commas, .*, or a line before .*such as sep=\|$"
    ):
        source(tmp_path, CSV.replace(",", delimiter))


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("Device: pump 7\nSerial: 123\n\n", 4),
        ("# exported\n", 2),
        ("Pump 7,,,,,\r\nFirmware,1.2,,,,\r\n", 3),
    ],
)
def test_lines_before_the_header_are_told(tmp_path, before, line):
    with pytest.raises(
        TableError, match=rf"; line {line} has it, so .* tail -n \+{line} OLD > NEW"
    ):
        source(tmp_path, before + CSV)
    with pytest.raises(TableError, match=r"columns: light, noise, name, at, who, room$"):
        source(tmp_path, label="kitchen")  # a cell below
    text = (before + CSV).split("\n", line - 1)[-1]
    assert len(drain(source(tmp_path, text))) == len(drain(source(tmp_path)))


@pytest.mark.parametrize(
    "time", ["02.03.2026 14:19", "03/02/2026 02:19 PM", "14:19:00", "2026-03-02 14:19 CET"]
)
def test_a_log_whose_times_cannot_be_read_is_refused_at_once(tmp_path, time):
    text = rows(f"{time},1,x", ",2,x", f"{time},3,y")
    with pytest.raises(
        TableError, match=r"^no time .*: 'a' must be .*rewrite the column, as docs/lo"
    ):
        source(tmp_path, text, time="a")
    found = drain(source(tmp_path, text + "2026-03-02 14:22,4,z\n", time="a"))
    assert len(reasons(found)) == 3


@pytest.mark.parametrize("time", ["0000-00-00 00:00:00", "0000-00-00T00:00:00.000Z", "-", "n/a"])
def test_a_clock_that_was_set_late_does_not_refuse_a_log(tmp_path, time):
    text = rows(*[f"{time},1,x"] * 100, "2026-03-02 14:22,4,z")
    found = drain(source(tmp_path, text, time="a"))
    assert len(reasons(found)) == 100
    assert found[100].event_id == "101"


def test_of_many_columns_some_are_named(tmp_path):
    header = ",".join(f"c{n}" for n in range(100))
    with pytest.raises(TableError, match=r"columns: c0, .*, c29 and 70 more; did you mean"):
        source(tmp_path, rows(",".join("1" * 100), header=header), label="c100")


@pytest.mark.parametrize(
    ("roles", "features"),
    [
        ({"ignore": ["is_*"]}, {"ax", "ay", "bz", "a*"}),
        ({"ignore": ["*y", "a*"]}, {"ax", "bz", "is_hot"}),  # one is called a*
        ({"features": ["*z", "a*"]}, {"bz", "a*"}),
        ({"features": ["?x", "is_*"]}, None),
        ({"features": ["*x", "bz", "is_*"], "ignore": ["i*"]}, {"ax", "bz"}),
        ({"features": ["*"], "ignore": ["a*", "is*t"]}, {"ax", "ay", "bz"}),
    ],
)
def test_a_name_with_a_star_stands_for_columns_without_another_role(tmp_path, roles, features):
    text = rows("1,2,3,4,5,6", "6,5,4,3,2,1", header="ax,ay,bz,a*,is_hot,is_wet")
    roles = {"label": "is_wet", **roles}
    if features is None:
        with pytest.raises(TableError, match=r"no column '\?x'"):
            source(tmp_path, text, **roles)
    else:
        assert [set(m.x) for m in drain(source(tmp_path, text, **roles))] == [features] * 2


def test_a_star_holds_for_columns_that_begin_late(tmp_path):
    late = ['{"a": 1, "z1": 1, "room": "x"}'] * 150 + ['{"a": 2, "z2": 1, "b": 3, "room": "x"}']
    found = drain(source(tmp_path, "\n".join(late), "log.jsonl", ignore=["z*"]))
    assert found[0].x == {"a": 1}
    assert found[-1].x == {"a": 2, "b": 3}


@pytest.mark.parametrize(
    ("roles", "match"),
    [
        ({"time": "room"}, "^column 'room' is given as label and as time; choose one$"),
        ({"features": ["room"]}, "^column 'room' is given as label and as features; choose one$"),
        ({"ignore": ["at"], "time": "at"}, "^column 'at' is given as time and as ignore; choose"),
        ({"limit": 0}, "^limit must be a whole number of at least 1, got 0$"),
    ],
)
def test_a_column_has_one_role(tmp_path, roles, match):
    with pytest.raises(ValueError, match=match):
        source(tmp_path, **roles)


def test_a_table_without_rows_says_so(tmp_path):
    with pytest.raises(TableError, match=r"log\.csv has a header but no rows; expected rows$"):
        source(tmp_path, "a,room\n")


def test_a_log_whose_first_rows_are_all_bad_goes_on(tmp_path):
    found = drain(source(tmp_path, rows(*["1", "1,2"] * 75, "1,2,p")))
    assert len(reasons(found)) == 150
    assert found[-1].x == {"a": 1, "b": 2}


def test_a_header_that_fits_no_row_is_refused(tmp_path):
    match = r"^none of the first 100 rows of .* could be read; line 2: has 4 cells, expected 3$"
    with pytest.raises(TableError, match=match):
        source(tmp_path, rows(*["1,2,p,"] * 150))


@pytest.mark.parametrize("limit", [1, 50, 150, BATCH, BATCH + 1, 1000])
def test_the_limit_counts_rows(tmp_path, limit):
    log = source(tmp_path, rows(*["1,2,p"] * 600), limit=limit)
    found = drain(log)
    assert len(found) == min(limit, 600)
    assert log.exhausted
    assert log.progress == 1.0


def test_progress_counts_the_limit(tmp_path):
    log = source(tmp_path, rows(*["1,2,p"] * 50_000), limit=2 * BATCH)
    log.poll()
    assert log.progress == 0.5
    log.close()


@pytest.mark.parametrize("n_good", [5, 300, BATCH, 1000])
def test_rows_before_a_damage_are_delivered_then_the_damage_is_reported(
    tmp_path, monkeypatch, n_good
):
    monkeypatch.setattr("connectors.tables.readers.MAX_LINE", 1000)
    log = source(tmp_path, rows(*["1,2,p"] * n_good, "9" * 2000))
    found = []
    with pytest.raises(TableError, match=f"line {n_good + 2} has more than 1000 bytes"):
        poll_to_the_end(log, found)
    assert len(found) == n_good
    assert not log.exhausted


def poll_to_the_end(log, found):
    while not log.exhausted:
        found.extend(log.poll())


@pytest.mark.parametrize("n", [1, 3])
def test_the_first_rows_are_fewer_where_they_are_long(tmp_path, monkeypatch, n):
    path = tmp_path / "log.jsonl"
    path.write_text('{"a":1,"b":"x"}\n' * 5)
    monkeypatch.setattr("connectors.tables.log_source.FIRST_BYTES", 16 * n)
    judged = []
    real = RowReader.__init__

    def noting(reader, table, *, first, **more):
        judged.append(len(first))
        real(reader, table, first=first, **more)

    monkeypatch.setattr(RowReader, "__init__", noting)
    log = LogSource(path)
    assert len(drain(log)) == 5
    assert judged == [n]


def test_rows_that_name_too_many_columns_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("connectors.tables.readers.MAX_COLUMNS", 3)
    path = tmp_path / "log.jsonl"
    path.write_text('{"a":1,"b":2}\n{"b":1,"c":2}\n')
    assert len(drain(LogSource(path))) == 2
    path.write_text('{"a":1,"b":2}\n{"c":1,"d":2}\n')
    with pytest.raises(TableError, match=r"jsonl has 4 columns, expected at most 3; keep those"):
        LogSource(path)


def test_a_row_is_numbered_by_its_place_in_the_file(tmp_path):
    found = drain(source(tmp_path, rows("1,2,p", "bad", "", "3,4,q")))
    assert [m.event_id for m in found if isinstance(m, Event)] == ["1", "3"]
    assert reasons(found) == {"row 2": "line 3: has 1 cell, expected 3"}

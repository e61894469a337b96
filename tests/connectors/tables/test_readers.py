import builtins
import bz2
import gzip
import io
import lzma
import random
import struct
import tarfile
import tracemalloc
from collections import Counter

import pytest

from connectors.tables import readers
from connectors.tables.cells import label_of, time_of
from connectors.tables.readers import BadRow, Row, TableError, open_table, refuse_duplicates

CSV = b"a,b,room\n1,2.5,hall\n3,,kitchen\n"
CELLS = [{"a": "1", "b": "2.5", "room": "hall"}, {"a": "3", "b": "", "room": "kitchen"}]

NOT_UTF_8 = "is not UTF-8 text; save it as UTF-8 (as with iconv -f CP1252 -t UTF-8 OLD > NEW)"


def read(path):
    table = open_table(path)
    rows = list(table.rows())
    table.close()
    return rows


def write(tmp_path, data, name="log.csv"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


def tar_of(data):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("log.csv")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def cells(rows):
    return [row.cells for row in rows]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log"])
def test_compression_is_detected_by_content_not_by_name(tmp_path, pack, name):
    assert cells(read(write(tmp_path, pack(CSV), name))) == CELLS


def test_several_members_of_gzip_are_one_file(tmp_path):
    path = write(tmp_path, gzip.compress(CSV[:12]) + gzip.compress(CSV[12:]))
    assert cells(read(path)) == CELLS


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_that_of_the_header(tmp_path, delimiter):
    path = write(tmp_path, CSV.replace(b",", delimiter.encode()))
    assert cells(read(path)) == CELLS


def test_delimiters_within_quotes_are_not_those_of_the_header(tmp_path):
    path = write(tmp_path, b'"acc, x, y";"a ""b"", c";room\n1;2;p\n')
    assert cells(read(path)) == [{"acc, x, y": "1", 'a "b", c': "2", "room": "p"}]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("t;acc (x, y, z);room\n1;2;p\n3;4;q\n", ["t", "acc (x, y, z)", "room"]),
        ("a (m,s);b\n1,5;2,5\n3,5;4,5\n", ["a (m,s)", "b"]),
        ("a;b\troom\n1\tp\n2\tq\n", ["a;b", "room"]),
        ("a,b\nhall;1\nbath;2\n", ["a", "b"]),
        ("a,b;c\n", ["a", "b;c"]),
    ],
)
def test_of_two_delimiters_that_is_taken_which_parts_the_rows(tmp_path, text, columns):
    table = open_table(write(tmp_path, text.encode()))
    assert table.columns == columns
    table.close()


@pytest.mark.parametrize("told", [b"sep=|\r\n", b'\n"sep=|"\n', b"\xef\xbb\xbfsep=| \n\n"])
def test_a_line_before_the_header_may_name_the_delimiter(tmp_path, told):
    path = write(tmp_path, told + CSV.replace(b",", b"|"))
    assert cells(read(path)) == CELLS
    assert read(path)[0].start == 2 + told.count(b"\n")


def test_a_line_that_names_a_delimiter_is_no_table(tmp_path):
    with pytest.raises(TableError, match="is empty; expected a table with a header and rows"):
        open_table(write(tmp_path, b"sep=;\n\n"))


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [b"", b"\n", b"\n\n  \n"])
def test_line_ends_and_byte_order_marks_do_not_matter(tmp_path, end, mark, last):
    data = mark + (CSV.rstrip() + last).replace(b"\n", end)
    assert cells(read(write(tmp_path, data))) == CELLS


def test_quotes_hold_delimiters_quotes_and_line_ends(tmp_path):
    path = write(tmp_path, b'a,"b ""c"""\n"1,5","two\nlines"\n3, "4"\n')
    assert read(path) == [
        Row(1, 2, 3, {"a": "1,5", 'b "c"': "two\nlines"}),
        Row(2, 4, 4, {"a": "3", 'b "c"': "4"}),
    ]


def test_blank_lines_count_as_lines_but_not_as_rows(tmp_path):
    assert read(write(tmp_path, b"\n\na,b\n\n1,2\n  \n3,4\n")) == [
        Row(1, 5, 5, {"a": "1", "b": "2"}),
        Row(2, 7, 7, {"a": "3", "b": "4"}),
    ]


def test_a_table_of_one_column_has_no_delimiter(tmp_path):
    assert cells(read(write(tmp_path, b"room\nhall\n\nkitchen\n"))) == [
        {"room": "hall"},
        {"room": "kitchen"},
    ]


def test_columns_without_a_name_get_one_and_are_reported(tmp_path):
    table = open_table(write(tmp_path, b",a,\n0,1,\n"))
    assert table.columns == ["column 1", "a", "column 3"]
    assert table.unnamed == ["column 1", "column 3"]
    table.close()


def test_row_numbers_that_r_writes_without_a_name_are_a_column_without_one(tmp_path):
    table = open_table(write(tmp_path, b'"a","b"\n"140","x, y",1\n"141",,2\n'))
    assert table.unnamed == ["column 1"]
    assert cells(list(table.rows())) == [
        {"column 1": "140", "a": "x, y", "b": "1"},
        {"column 1": "141", "a": "", "b": "2"},
    ]
    table.close()


@pytest.mark.parametrize(
    "text",
    [
        b"time,a\n12:00,21,5\n12:01,21,7\n",  # a comma before decimals
        b'"time","a"\n"12:00",21,5\n"12:01",21,7\n',
        b'"n","a"\n"1",21,5\n"2",21\n',
        b'"n","a"\n"1",21,\r\n"2",22,\r\n',
        b'n,a\n"1",21,5\n"2",21,7\n',
    ],
)
def test_other_rows_with_more_cells_than_the_header_cannot_be_read(tmp_path, text):
    table = open_table(write(tmp_path, text))
    assert len(table.columns) == 2
    assert isinstance(next(iter(table.rows())), BadRow)
    table.close()


def test_rows_of_which_none_ends_are_not_read_again_from_each_line(tmp_path, monkeypatch):
    # Within quotes and outside, each of these lines ends within quotes.
    n, good = 20_000, b"7,8\n"
    monkeypatch.setattr(readers, "MAX_LINE", 1 << 18)
    monkeypatch.setattr(readers, "_SHORT", 20)
    lines_read = Counter()
    read_line = readers._Lines.__next__

    def counting(lines):
        lines_read[lines.number] += 1
        return read_line(lines)

    monkeypatch.setattr(readers._Lines, "__next__", counting)
    found = read(write(tmp_path, b"a,b\n" + good + b'a","\n' * n + good * 2))
    # The first rows may have 2^18 bytes, each of all rows some lines: not 20,000 for each.
    assert lines_read.total() < 25 * n
    assert len(found) >= n
    assert found[1] == BadRow(2, 3, 3, "is not CSV: a quote is not closed")
    assert found[-1].cells == {"a": "7", "b": "8"}


def test_a_short_row_of_several_lines_is_read_after_any_number_of_unclosed_quotes(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(readers, "MAX_LINE", 1 << 14)
    unclosed, filler, long = b'7","\n' * 50, b"7,8\n" * 2000, b'7,"' + b"8\n" * 400 + b'8"\n'
    found = read(write(tmp_path, b"a,b\n" + unclosed + filler + long))
    assert [type(row) for row in found] == [BadRow] * 50 + [Row] * 2001
    assert found[-1].cells == {"a": "7", "b": "8\n" * 400 + "8"}


@pytest.mark.parametrize(
    ("row", "where", "reason"),
    [
        (b"1,2", (3, 3), "has 2 cells, expected 3"),
        (b"1,2,3,4", (3, 3), "has 4 cells, expected 3"),
        (b'1,"2"x,3', (3, 3), r"is not CSV: ',' expected after '\"'"),
        (b"1,\xff,3", (3, 3), NOT_UTF_8),
        (b"1,\0\0\0,3", (3, 3), "holds a NUL byte"),
        (b'1,"two\nlines"', (3, 4), "has 2 cells, expected 3"),
    ],
)
def test_a_bad_row_is_told_and_the_next_ones_are_read(tmp_path, row, where, reason):
    good = b"7,8,9\n"
    found = read(write(tmp_path, b"a,b,c\n" + good + row + b"\n" + good))
    assert found[1] == BadRow(2, *where, reason.replace("\\", ""))
    assert [row.number for row in found] == [1, 2, 3]
    assert found[2].cells == {"a": "7", "b": "8", "c": "9"}


@pytest.mark.parametrize("quote", [b"", b'"'])
def test_a_cell_may_be_as_long_as_its_line(tmp_path, quote):
    text = b"word " * 100_000
    data = b"a,b,c\n1,2,3\n4," + quote + text + quote + b",6\n7,8,9\n"
    found = read(write(tmp_path, data))
    assert [row.cells["c"] for row in found] == ["3", "6", "9"]
    assert found[1].cells["b"] == text.decode()


def test_a_header_may_be_long_too(tmp_path):
    name = "a" * 500_000
    assert read(write(tmp_path, f"{name},b\n1,2\n".encode()))[0].cells == {name: "1", "b": "2"}


@pytest.mark.parametrize("n_later", [0, 1, 50_000])  # of so many no row would hold all
@pytest.mark.parametrize("last", [b"", b'"x",1\n'])  # beside which the quote is not closed either
def test_a_quote_that_is_not_closed_costs_its_line(tmp_path, n_later, last):
    rows = b"".join(b"%d,%d\n" % (i, i) for i in range(n_later))
    found = read(write(tmp_path, b'a,b\n1,2\n3,"4\n' + rows + last))
    assert found[1] == BadRow(2, 3, 3, "is not CSV: a quote is not closed")
    later = [{"a": str(i), "b": str(i)} for i in range(n_later)]
    assert cells(found[2:]) == [*later, *([{"a": "x", "b": "1"}] if last else [])]
    assert [row.start for row in found] == [*range(2, len(found) + 2)]


def test_a_line_after_a_quote_that_is_not_closed_is_damaged_by_itself(tmp_path):
    found = read(write(tmp_path, b'a,b\n1,"2\n\xff,1\n"3\n4",5\n'))
    assert [row.number for row in found] == [1, 2, 3]
    assert found[0] == BadRow(1, 2, 2, "is not CSV: a quote is not closed")
    assert found[1] == BadRow(2, 3, 3, NOT_UTF_8)
    assert found[2] == Row(3, 4, 5, {"a": "3\n4", "b": "5"})


def test_json_lines_bring_their_own_columns_and_types(tmp_path):
    data = b'{"a": 1, "b": true}\n\n{"a": 0.5, "c": null}\n[1]\n{"a": NaN}\n{"a": \xff}\n{"a"\n'
    table = open_table(write(tmp_path, data, "log.jsonl"))
    assert table.columns is None
    assert table.typed
    rows = list(table.rows())
    table.close()
    assert rows[:2] == [
        Row(1, 1, 1, {"a": 1, "b": True}),
        Row(2, 3, 3, {"a": 0.5, "c": None}),
    ]
    assert rows[2] == BadRow(3, 4, 4, "is not a JSON object: '[1]'")
    assert rows[3].cells["a"] != rows[3].cells["a"]
    assert rows[4] == BadRow(5, 6, 6, NOT_UTF_8)
    assert rows[5] == BadRow(6, 7, 7, "is not a JSON object: '{\"a\"'")


def test_json_lines_are_known_by_content_too(tmp_path):
    assert cells(read(write(tmp_path, gzip.compress(b'{"a": 1}\n'), "log"))) == [{"a": 1}]


def test_json_that_nests_without_end_is_a_bad_row(tmp_path):
    [row] = read(write(tmp_path, b'{"a":' + b"[" * 100_000, "log.jsonl"))
    assert isinstance(row, BadRow)


def write_parquet(path, columns):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_parquet_keeps_types_and_may_be_compressed_once_more(tmp_path, pack):
    columns = {"a": [1, None], "b": [0.5, 1.5], "c": [True, False], "room": ["hall", None]}
    path = write_parquet(tmp_path / "log.parquet", columns)
    path.write_bytes(pack(path.read_bytes()))
    assert read(path) == [
        Row(1, 0, 0, {"a": 1, "b": 0.5, "c": True, "room": "hall"}),
        Row(2, 0, 0, {"a": None, "b": 1.5, "c": False, "room": None}),
    ]


def test_parquet_times_finer_than_a_microsecond_are_cut(tmp_path):
    pa = pytest.importorskip("pyarrow")
    times = pa.array([1_422_886_740_123_456_789], pa.timestamp("ns", "UTC"))
    path = write_parquet(tmp_path / "log.parquet", {"t": times})
    [row] = read(path)
    assert row.cells["t"].isoformat() == "2015-02-02T14:19:00.123456+00:00"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_full_or_missing_temporary_directory_is_no_damage(tmp_path, monkeypatch, is_there):
    def full(**_):
        if is_there:
            return open("/dev/full", "w+b", buffering=0)
        raise FileNotFoundError(2, "No usable temporary directory found")

    path = write_parquet(tmp_path / "log.parquet", {"a": [1, 2]})
    path.write_bytes(gzip.compress(path.read_bytes()))
    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(TableError, match=r"cannot be unpacked .*: No .*; free some space, name"):
        open_table(path)


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_parquet_cells_without_a_value_in_python_cost_only_themselves(tmp_path, unit):
    pa = pytest.importorskip("pyarrow")
    times = pa.array([2**62, 0], pa.timestamp(unit))
    latin = [
        None,
        pa.py_buffer(struct.pack("<3i", 0, 6, 8)),
        pa.py_buffer("Kücheok".encode("latin-1") + b"!"),
    ]
    texts = pa.Array.from_buffers(pa.string(), 2, latin)
    days = pa.array([10**8, 0], pa.date32())
    path = write_parquet(tmp_path / "log.parquet", {"t": times, "room": texts, "day": days})
    first, second = read(path)
    assert [repr(cell)[:1] for cell in first.cells.values()] == ["<"] * 3
    with pytest.raises(ValueError, match=r"got <'utf-8' codec can't decode byte 0xfc"):
        label_of(first.cells["room"])
    with pytest.raises(ValueError, match=r"got <.*(range|convert)"):
        time_of(first.cells["t"])
    assert second.cells["t"].isoformat().startswith("1970-01-01T00:00:00")
    assert second.cells["day"].isoformat() == "1970-01-01"


def test_progress_runs_from_zero_to_one(tmp_path):
    n = 50_000
    rng = random.Random(1)
    csv = b"a,b\n" + b"".join(b"%d,%d\n" % (rng.random() * 1e9, i) for i in range(n))
    paths = [write(tmp_path, pack(csv), pack.__name__) for pack in (bytes, gzip.compress)]
    paths.append(write_parquet(tmp_path / "p", {"a": list(range(n)), "b": list(range(n))}))
    for path in paths:
        table = open_table(path)
        shares = [table.progress for _ in table.rows()]
        assert shares == sorted(shares)
        assert shares[0] < 0.6
        assert 0.3 < shares[n // 2] < 0.9
        assert shares[-1] == table.progress == 1.0
        table.close()


def test_reading_takes_constant_memory(tmp_path):
    row = b"%s,%s\n" % (b"1" * 150, b"2" * 150)
    path = write(tmp_path, gzip.compress(b"a,b\n" + row * 10_000))
    tracemalloc.start()
    table = open_table(path)
    assert sum(1 for _ in table.rows()) == 10_000
    table.close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6  # the text has 3e6 bytes


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", r"log\.csv is empty; expected a table with a header and rows$"),
        (b"\n  \n", r"log\.csv is empty; expected a table"),
        (gzip.compress(b"", mtime=0), r"log\.csv is empty; expected a table"),
        (b"\n" * 200_000, r"log\.csv is empty; expected a table"),
        (bytes(range(9)), r"log\.csv is binary, or UTF-16 text; expected CSV, JSON lines or"),
        (gzip.compress(b"ab\0", mtime=0), r"log\.csv is binary, or UTF-16 text; expected CSV"),
        (b"a,b\r1,2\r3,4\r", r"log\.csv has an unreadable header: lines end with CR alone; save"),
        ("a,b\n1,2\n".encode("utf-16-le"), r"log\.csv is binary, or UTF-16 text"),
        (
            b"\xff\xd8\xff\xe0junk",
            r"log\.csv is not UTF-8 text; save it as UTF-8 \(as with iconv -f CP1252 ",
        ),
        (
            "a,b\n1,2\n".encode("utf-16"),
            r"log\.csv is UTF-16 text; save it as UTF-8 \(as with iconv -f UTF-16 ",
        ),
        (b"1,2\n3,4\n", r"log\.csv has no header, its first line is '1,2'; name the 2 columns"),
        (b"a,b,a\n1,2,3\n", r"log\.csv has several columns named 'a'; rename all but one$"),
        (b'a,"b\n1,2\n', r"log\.csv has an unreadable header: a quote is not closed$"),
        (b'[{"a": 1}]', r"log\.csv is a JSON array; .* on each line \(as from jq -c '\.\[\]'"),
        (b"PAR1 and no more", r"log\.csv is not readable as Parquet: "),
        (
            gzip.compress(CSV, mtime=0)[:8],
            r"log\.csv is damaged from the start: Compressed file ended bef",
        ),
        (b"\x1f\x8b" + b"junk" * 9, r"log\.csv is damaged from the start: Unknown compression m"),
        ("a,b\n1,2\n".encode("utf-32"), r"log\.csv is UTF-32 text; save it as UTF-8 \(as with "),
    ],
)
def test_a_file_that_holds_no_table_says_why(tmp_path, data, match):
    if data.startswith(b"PAR1"):
        pytest.importorskip("pyarrow")
    with pytest.raises(TableError, match=match):
        open_table(write(tmp_path, data))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"PK\x03\x04\0\0junk", "a ZIP archive or an Excel workbook; unpack it, or save it as C"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook; save it as CSV$"),
        (b"\x28\xb5\x2f\xfd\0zstd", "compressed, but not with gzip; unpack it$"),
        (bz2.compress(CSV), "compressed, but not with gzip; unpack it$"),
        (lzma.compress(CSV), "compressed, but not with gzip; unpack it$"),
        (b"SQLite format 3\0", "an SQLite database; save a table as CSV, as docs/logs.md shows$"),
        (tar_of(CSV), "a tar archive; unpack it$"),
        (b"ARROW1\0\0\xff\xff", "an Arrow or Feather file; save it as Parquet$"),
        (b"PARE\x3c\0\0\0", "encrypted Parquet; decrypt it$"),
        (b'{\n  "a": 1\n}\n', r"JSON over several lines; write an object on each \(jq -c \. "),
        (b"\x89HDF\r\n\x1a\n\0", "a file of arrays; save it as CSV, as docs/logs.md shows$"),
        (b"\x93NUMPY\1\0", "a file of arrays; "),
        (b"MATLAB 5.0 MAT-file\0", "a file of arrays; "),
        (b'\xef\xbb\xbf<?xml version="1.0"?>\n<gpx>', "XML or HTML; convert it, as docs/logs.md "),
        (b"<GPX version='1.1'>", "XML or HTML; "),
        (b"@RELATION pump\n@DATA\n1,2\n", "ARFF of Weka; convert it, as docs/logs.md shows$"),
        (b"% a % b\n%\n\n% c\n@relation pump\n", "ARFF of Weka; "),
        (b"#group,false\n#datatype,string\n,result\n", "annotated CSV of InfluxDB; convert it"),
        (b'pump,site=A vib=1,state="a b" 1772461140000000000\n', "line protocol; convert it"),
        (b"$GPGGA,141900.00,4606.0000,N\n", "NMEA of a GPS receiver; convert it"),
        (b"-1 1:0.5 2:7 3:1\n", "in LIBSVM's format; convert it"),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_another_format_is_named_with_what_to_do(tmp_path, data, what, pack):
    with pytest.raises(TableError, match=rf"log\.csv is {what}"):
        open_table(write(tmp_path, pack(data)))


@pytest.mark.parametrize(
    "header",
    [
        "<DATE>,<TIME>,<OPEN>",
        "# time,b,c",
        "#groups,b,c",
        "a b=c,d e=1,f",
        "at 12:30,b,c",
        "% a,b,c",
        "$GPS,b,c",
        "$PRICE,b,c",
    ],
)
def test_a_header_that_looks_like_another_format_is_one(tmp_path, header):
    table = open_table(write(tmp_path, f"{header}\n1,2,3\n".encode()))
    assert table.columns == header.split(",")
    table.close()


@pytest.mark.parametrize(
    "text",
    [
        "0.5,0.25,g\n0.75,0.5,b\n1.5,2.5,g\n",
        "0.5,0.5,first\n0.75,0.5,second\n",
        "2026-03-02 14:19,0.5,None,\n2026-03-02 14:20,0.75,None,\n",
        "'low';A1;3;'yes'\n'high';A2;4;'no'\n'low';A1;5;'yes'\n",
        '"hall",5\n"bath",7\n"hall",9\n',
    ],
)
def test_a_row_in_place_of_the_header_is_no_header(tmp_path, text):
    with pytest.raises(
        TableError, match=r"log\.csv has no header, its first line is .*; name the \d c"
    ):
        open_table(write(tmp_path, text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        ",0,1,2\n0,1,2,3\n",
        "time,773869,767541\n1,2,3\n",
        "yes,no\nyes,yes\n",
        "a,b\na,b\n1,2\n",
        "sensor,2026-03-01,2026-03-02\nt1,20.5,21\n",
    ],
)
def test_names_that_are_numbers_times_or_values_may_be_a_header(tmp_path, text):
    table = open_table(write(tmp_path, text.encode()))
    assert [name for name in table.columns if name != "column 1"] == [
        name for name in text.split("\n")[0].split(",") if name
    ]
    table.close()


@pytest.mark.parametrize(
    "text",
    [
        "a b  c\n1 2 3\n4 5 6\n",
        " 0.1   20 3\n 0.2    1 3\n",
        '"a" "b"\n"1" 2.5 "the hall"\n"2" 2.7 "bath"\n',  # of R
    ],
)
def test_spaces_between_cells_are_told(tmp_path, text):
    with pytest.raises(TableError, match=r"has spaces between its cells; .*, as docs/logs\.md sh"):
        open_table(write(tmp_path, text.encode()))


def test_the_only_column_may_have_a_name_of_several_words(tmp_path):
    assert cells(read(write(tmp_path, b"outside temperature\n20.5\n21\n"))) == [
        {"outside temperature": "20.5"},
        {"outside temperature": "21"},
    ]


@pytest.mark.parametrize(
    ("text", "row"),
    [("last message\ndoor open\n", "door open"), ("sep=,\nlast zone\nzone 3\n", "zone 3")],
)
def test_the_only_column_may_hold_several_words(tmp_path, text, row):
    [only] = cells(read(write(tmp_path, text.encode())))
    assert list(only.values()) == [row]


def test_a_json_array_is_refused_by_name_too(tmp_path):
    with pytest.raises(TableError, match=r"log\.json is a JSON array; expected one JSON object on"):
        open_table(write(tmp_path, b"[\n1]", "log.json"))


def test_a_missing_file_and_a_directory_are_named(tmp_path):
    with pytest.raises(TableError, match=r"nothing\.csv does not exist; expected a file$"):
        open_table(tmp_path / "nothing.csv")
    with pytest.raises(TableError, match=r"expected a file; standard input is /dev/stdin$"):
        open_table("-")
    with pytest.raises(TableError, match=r"is a directory; expected a file: join the files of on"):
        open_table(tmp_path)
    with pytest.raises(TableError, match=r"cannot be read: Not a directory$"):
        open_table(write(tmp_path, CSV) / "log.csv")


def long_csv():
    rng = random.Random(1)
    return b"a,b\n" + b"".join(b"%d,%d\n" % (rng.random() * 1e9, i) for i in range(100_000))


def test_rows_before_a_cut_are_delivered(tmp_path):
    packed = gzip.compress(long_csv())
    table = open_table(write(tmp_path, packed[: len(packed) // 2]))
    found = []
    match = r"log\.csv is damaged after row \d+: Compressed file ended before .*; the rows before"
    with pytest.raises(TableError, match=match):
        drain(table.rows(), found)
    table.close()
    assert 40_000 < len(found) < 60_000
    assert [int(row.cells["b"]) for row in found] == list(range(len(found)))


def drain(rows, found):
    for row in rows:
        found.append(row)  # one by one: an error must not take the earlier ones along


def test_damaged_bytes_end_the_table(tmp_path):
    packed = bytearray(gzip.compress(long_csv()))
    packed[len(packed) // 2 : len(packed) // 2 + 64] = b"\xff" * 64
    table = open_table(write(tmp_path, bytes(packed)))
    with pytest.raises(TableError, match=r"log\.csv is damaged after row \d+: "):
        list(table.rows())
    table.close()


def test_a_cut_compressed_parquet_file_is_damaged(tmp_path):
    path = write_parquet(tmp_path / "log.parquet", {"a": list(range(10_000))})
    path.write_bytes(gzip.compress(path.read_bytes())[:-2000])
    with pytest.raises(
        TableError, match=r"log\.parquet is damaged after row 0: Compressed file en"
    ):
        open_table(path)


def test_parquet_that_breaks_off_delivers_the_rows_before(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "log.parquet"
    table = pa.table({"a": list(range(20_000))})
    parquet.write_table(table, path, row_group_size=5_000, compression="gzip")
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 2000] = b"\xff" * 2000
    path.write_bytes(bytes(data))
    table = open_table(path)
    found = []
    with pytest.raises(TableError, match=r"log\.parquet is damaged after row \d+: "):
        drain(table.rows(), found)
    table.close()
    assert len(found) >= 5_000


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("connectors.tables.readers.MAX_LINE", 1000)
    table = open_table(write(tmp_path, b"a,b\n1,2\n" + b"3" * 2000))
    rows = table.rows()
    assert next(rows).number == 1
    with pytest.raises(
        TableError, match=r"line 3 has more than 1000 bytes; expected one row on ea"
    ):
        next(rows)
    table.close()


def test_too_many_columns_are_refused_before_they_are_named(tmp_path):
    path = write(tmp_path, b"," * 3_000_000 + b"\n")
    tracemalloc.start()
    try:
        with pytest.raises(
            TableError, match=r"csv has 3000001 columns, expected at most 100000; keep those that"
        ):
            open_table(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * 2**20  # names would take as much again several times


def test_too_many_columns_of_parquet_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "MAX_COLUMNS", 3)
    columns = {name: [1] for name in "abcd"}
    read(write_parquet(tmp_path / "3.parquet", {name: columns[name] for name in "abc"}))
    with pytest.raises(TableError, match=r"4\.parquet has 4 columns, expected at most 3; keep"):
        open_table(write_parquet(tmp_path / "4.parquet", columns))


def test_long_texts_of_parquet_are_not_in_memory_by_the_thousand(tmp_path):
    pa = pytest.importorskip("pyarrow")
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 1000), pa.array(["a" * 2**20]))
    table = open_table(write_parquet(tmp_path / "log.parquet", {"text": text}))
    rows = table.rows()
    tracemalloc.start()
    try:
        assert len(next(rows).cells["text"]) == 2**20
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        table.close()
    assert peak < 100 * 2**20  # of 1000
    assert table.n_bytes >= 2**20


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    real = builtins.__import__

    def without_pyarrow(name, *args, **options):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    path = write(tmp_path, b"PAR1....PAR1", "log.parquet")
    match = r"log\.parquet is a Parquet file; pip install pyarrow to read it$"
    with pytest.raises(TableError, match=match):
        open_table(path)


def test_parquet_columns_must_differ(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "log.parquet"
    parquet.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), path)
    with pytest.raises(TableError, match=r"has several columns named 'a'; rename all but one$"):
        open_table(path)


def test_names_of_columns_are_not_compared_with_each_other(tmp_path):
    """A header may have a million of them."""
    compared = []

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(other)
            return str.__eq__(self, other)

    refuse_duplicates([Name(i) for i in range(1000)], tmp_path)
    assert len(compared) < 1000

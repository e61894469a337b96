"""`streamgp tune`: what it finds, what it writes, and what it says to unkind users."""

from __future__ import annotations

import gzip
import importlib.resources
import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from streamgp.apps.recorded_logs import RepeatedLog
from streamgp.apps.tune import search
from streamgp.cli import tune as command
from streamgp.config.load import load, with_options
from streamgp.config.settings import Config
from tests.helpers import commands
from tests.helpers.commands import streamgp

DOCUMENT = Path(__file__).parents[3] / "docs" / "tuning.md"
HEADER = "near,far,phone,room"


tune, wrong = partial(streamgp, "tune"), partial(commands.wrong, "tune")


def rows(n: int) -> list[str]:
    """Two rooms, ten readings in each at a time, of two phones in turn."""
    return [
        f"{i % 7 + 4 * (i // 10 % 2)},{i % 5},{'ab'[i % 2]},{['hall', 'den'][i // 10 % 2]}"
        for i in range(n)
    ]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


@pytest.fixture(autouse=True)
def few_replays(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay with one seed and one `c`, except for what a document shows."""
    if "document" not in request.node.name:
        monkeypatch.setattr(search, "N_SEEDS", 1)
        monkeypatch.setattr(search, "FACTORS_OF_C", (4.0,))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "rooms.csv", rows(80))


@pytest.fixture
def wifi(tmp_path: Path) -> Path:
    """Rooms in turn, so that all of them are among the first rows."""
    packed = importlib.resources.files("streamgp") / "data" / "wifi_rooms.csv.gz"
    head, *readings = gzip.decompress(packed.read_bytes()).decode().splitlines()
    path = tmp_path / "wifi.csv"
    path.write_text(
        "\n".join([head, *(readings[i] for r in range(80) for i in range(r, 2000, 500))])
    )
    return path


def table(result: Result) -> list[list[str]]:
    """Return the cells of the table of a search."""
    return part(result, 0)


def replays(result: Result) -> list[list[str]]:
    """Return the cells of the table of the replays with questions."""
    return part(result, 3)


def by_c(result: Result) -> list[list[str]]:
    """Return the cells of the table with fewer and more questions."""
    return part(result, 6)


def part(result: Result, i: int) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    lines = result.stdout.split("\n\n")[i].splitlines()[1:]
    cells = [re.split(r" {2,}", line.strip()) for line in lines]
    return [row for row in cells if len(row) > 1]  # not "and 5 more"


# --- searching


def test_best_is_written_as_a_configuration_that_replay_takes_as_it_is(
    wifi: Path, tmp_path: Path
) -> None:
    best = tmp_path / "best.toml"
    values = ("--length-scales", "0.05,2", "--noise-variances", "0.1")
    result = tune(wifi, "--label", "room", *values, "--output", best)
    config = load(best)
    assert (config.learner.length_scale, config.learner.noise_variance) == (2.0, 0.1)
    assert (config.log.label, config.log.limit) == ("room", None)
    [line] = [row for row in replays(result) if "best" in row[-1]]
    assert line[:2] == ["2", "0.1"]
    assert f"configuration: {best}" in result.stdout
    assert streamgp("replay", wifi, "--config", best).exit_code == 0


def test_accuracy_is_that_of_a_replay_in_which_every_label_is_asked_for(
    wifi: Path, tmp_path: Path
) -> None:
    asking = tmp_path / "asking.toml"
    asking.write_text('[query]\nrule = "always"\n[challenge]\nrule = "never"\n')
    options = ("--label", "room", "--annotator", "error_rate=0.2", "--config", asking)
    replayed = streamgp("replay", wifi, *options).stdout
    searched = table(tune(wifi, *options, "--length-scales", "2", "--noise-variances", "0.1"))
    [given] = [row for row in searched if row[-1].endswith("as it is")]
    assert re.search(rf"skeptical GP +{given[2]} ", replayed)
    assert given[4] == "100 %"


def test_it_says_so_where_the_limit_has_left_rows_out(log: Path, tmp_path: Path) -> None:
    one = ("--label", "room", "--length-scales", "1", "--noise-variances", "0.5")
    left_out = "the log was read up to row 60; --limit N reads more\n"
    assert left_out in tune(log, *one, "--limit", "60").stdout
    assert "as far as" not in tune(log, *one, "--limit", "81").stdout
    # Of raw rows, not of windows.
    raw = write(tmp_path / "raw.csv", [f"{i},{line}" for i, line in enumerate(rows(80))])
    raw.write_text(raw.read_text().replace(HEADER, f"t,{HEADER}"))
    windows = tmp_path / "windows.toml"
    windows.write_text("[windows]\nlength_s = 5\n[log]\ntime = 't'\nignore = ['phone']\n")
    assert left_out in tune(raw, *one, "--config", windows, "--limit", "60").stdout


def test_rows_that_make_no_window_are_refused_with_the_reason(tmp_path: Path) -> None:
    raw = write(tmp_path / "raw.csv", [f"{i},{line}" for i, line in enumerate(rows(3))])
    raw.write_text(raw.read_text().replace(HEADER, f"t,{HEADER}"))
    windows = tmp_path / "windows.toml"
    windows.write_text("[windows]\nlength_s = 5\nmin_rows = 4\n[log]\ntime = 't'\n")
    result = tune(raw, "--label", "room", "--config", windows)
    assert result.exit_code == 2
    assert "make no window: the time must be in seconds, and a window has at least" in result.stderr
    assert f"Error: the rows of {raw} make no window; see the notes above" in result.stderr


def test_without_a_limit_windows_are_counted_rather_than_raw_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "DEFAULT_LIMIT", 60)
    raw = write(tmp_path / "raw.csv", [f"{i},{line}" for i, line in enumerate(rows(800))])
    raw.write_text(raw.read_text().replace(HEADER, f"t,{HEADER}"))
    windows, best = tmp_path / "windows.toml", tmp_path / "best.toml"
    windows.write_text("[windows]\nlength_s = 5\n[log]\ntime = 't'\nignore = ['phone']\n")
    options = ("--label", "room", "--length-scales", "1", "--noise-variances", "0.5")
    result = tune(raw, *options, "--config", windows, "--output", best)
    # 512 rows, two polls, close 102 windows; the replays with questions end the window after them.
    assert "each of 102 labelled events predicted" in result.stdout
    assert "the log was read up to row 512; --limit N reads more\n" in result.stdout
    assert "in 103 events" in best.read_text()
    assert load(best).log.limit is None


def test_everything_else_in_the_configuration_stays(log: Path, tmp_path: Path) -> None:
    start, best = tmp_path / "start.toml", tmp_path / "best.toml"
    start.write_text(
        'seed = 9\nwarm_up = 20\n[learner]\nmax_points = 50\n[log]\nlabel = "room"\nkey = "phone"\n'
    )
    values = ("--length-scales", "1,2,4", "--noise-variances", "0.3")
    result = tune(log, "--config", start, *values, "--output", best)
    assert len(table(result)) == 4
    before, after = load(start), load(best)
    assert (after.seed, after.warm_up, after.log) == (before.seed, before.warm_up, before.log)
    assert after.learner.max_points == 50


def test_sections_about_questions_are_said_to_play_no_part(log: Path, tmp_path: Path) -> None:
    start = tmp_path / "start.toml"
    options = ("--label", "room", "--length-scales", "1", "--noise-variances", "0.5")
    searched = tune(log, *options)
    start.write_text('[reservoir]\nrule = "latest"\n[budget]\nrule = "at_most"\nn = 3\n')
    with_rules = tune(log, *options, "--config", start)
    assert "the search learns" not in searched.stderr
    assert with_rules.stderr == (
        "note: the search learns every label and ignores [reservoir], [budget], used only when the "
        f"best are replayed with questions\n{searched.stderr}"
    )
    assert replays(with_rules) != replays(searched)
    assert [row[:5] for row in table(with_rules)] == [row[:5] for row in table(searched)]


def test_every_key_has_a_learner_of_its_own(log: Path, tmp_path: Path) -> None:
    # Each phone by itself: the halves of the log, one after the other, are the same to it.
    halves = write(tmp_path / "halves.csv", [*rows(80)[::2], *rows(80)[1::2]])
    values = ("--length-scales", "1", "--noise-variances", "0.1,0.5")
    options = ("--label", "room", "--key", "phone", *values)
    scores = [[row[:5] for row in table(tune(path, *options))] for path in (log, halves)]
    assert scores[0] == scores[1]
    together = [row[:5] for row in table(tune(log, "--label", "room", *values))]
    assert scores[0] != together


def test_log_loss_ranks_by_log_loss(log: Path) -> None:
    values = ("--length-scales", "0.2,1,5", "--noise-variances", "0.01,0.5")
    searched = table(tune(log, "--label", "room", "--by", "log-loss", *values))
    losses = [float(row[3]) for row in searched]
    assert losses == sorted(losses)
    assert len(set(losses)) > 4


def test_rows_that_cannot_be_used_are_told_and_left_out(tmp_path: Path) -> None:
    lines = rows(40)
    lines[3], lines[5], lines[8] = "inf,1,a,hall", "1e200,1,a,hall", ",,,den"
    values = ("--length-scales", "1", "--noise-variances", "0.5")
    result = tune(write(tmp_path / "gaps.csv", lines), "--label", "room", *values)
    assert result.exit_code == 0
    assert "rejected row 4: line 5: 'near' must be finite" in result.stderr
    assert "rejected row 6: feature 'near' must be at most 1e+150" in result.stderr
    assert "38 labelled events" in result.stdout


def test_rows_that_cannot_be_used_are_told_where_the_others_have_one_label(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    lines = [HEADER, *(f"1,2,a,{('hall', 'Büro')[i % 2]}" for i in range(8))]
    log.write_text("\n".join(lines) + "\n", encoding="latin-1")
    result = streamgp("tune", log, "--label", "room")
    assert result.exit_code == 2
    assert "rejected row 2: line 3: is not UTF-8 text" in result.stderr
    assert "holds one label only, 'hall', in 4 rows" in result.stderr


def test_keys_with_one_event_each_leave_nothing_to_predict(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", [f"1,2,{i},{'ab'[i % 2]}" for i in range(9)])
    assert "no two events of the same key, in column 'phone', are labelled" in wrong(
        log, "--label", "room", "--key", "phone"
    )


def test_noise_too_small_for_the_log_is_a_remark_not_an_end(log: Path) -> None:
    result = tune(log, "--label", "room", "--length-scales", "50", "--noise-variances", "1e-300,1")
    assert ["50", "1e-300", "-", "-", "-", "-", "too little noise for this log"] in table(result)


def test_differences_are_those_of_events_whose_label_is_known(log: Path) -> None:
    lines = [line if n % 3 else line.rpartition(",")[0] + "," for n, line in enumerate(rows(80))]
    path = write(log, lines)
    config = with_options(Config(), label="room", features=("near",))
    found = search._means(RepeatedLog(path, source="test"), config, of="")
    assert found is not None
    n_known = sum(not line.endswith(",") for line in lines)
    assert (found.n_events, len(found.hits)) == (80, n_known)
    # Nothing is predicted before the first label.
    assert sum(found.hits.values()) == pytest.approx(found.accuracy * (n_known - 1))


def test_ctrl_c_keeps_the_best_so_far(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge: Callable[..., object] = search.judge
    calls = 0

    def interrupted(*arguments: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        judge(*arguments)

    monkeypatch.setattr(search, "judge", interrupted)
    best = tmp_path / "best.toml"
    result = tune(log, "--label", "room", "--output", best)
    assert result.exit_code == 130
    assert "interrupted; 2 of 25 configurations tried; replays the best of them" in result.stderr
    assert "best: worth most" in result.stdout
    assert load(best).log.label == "room"


@pytest.mark.parametrize("while_it_starts", [False, True])
def test_ctrl_c_after_the_best_was_found_keeps_it(
    while_it_starts: bool, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_seed: Callable[..., Any] = search.play_seed

    def interrupted(log: RepeatedLog, config: Config, **options: Any) -> Any:
        played = play_seed(log, config, **options)
        if config.query is None:  # not with another `c`
            return played
        if while_it_starts:
            raise KeyboardInterrupt
        return replace(played, result=replace(played.result, interrupted=True))

    monkeypatch.setattr(search, "play_seed", interrupted)
    best = tmp_path / "best.toml"
    values = ("--length-scales", "1", "--noise-variances", "0.5")
    result = tune(log, "--label", "room", *values, "--output", best)
    assert result.exit_code == 130
    assert "best: worth most" in result.stdout
    assert "interrupted; what more and fewer questions bring is not shown" in result.stderr
    assert load(best).log.label == "room"


@pytest.mark.skipif(not DOCUMENT.is_file(), reason="docs/ is not beside the tests")
def test_document_shows_what_is_printed_and_written(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    packed = importlib.resources.files("streamgp") / "data" / "wifi_rooms.csv.gz"
    wifi, best = tmp_path / "wifi_rooms.csv.gz", tmp_path / "best.toml"
    wifi.write_bytes(packed.read_bytes())
    options = ("--label", "room", "--annotator", "error_rate=0.2", "--output", best)
    values = ("--length-scales", "4.76", "--noise-variances", "0.02")
    result = tune(wifi, *options, *values)
    for row in table(result):
        # But for the time, and what is remarked behind it.
        assert re.search(rf"^ +{' +'.join(map(re.escape, row[:5]))} +\d+", text, re.M)
    for row in replays(result):
        assert re.search(rf"^ +{' +'.join(map(re.escape, row))}$", text, re.M)
    for row in by_c(result):
        assert re.search(rf"^ *{' +'.join(map(re.escape, row))}$", text, re.M)
    assert result.stdout.split("\n\n")[4] in text
    [written] = re.findall(r"```toml\n(.*?)```", text, re.S)
    assert written.splitlines()[1:] == best.read_text().splitlines()[1:]


def test_the_best_is_shown_with_other_numbers_of_questions(wifi: Path, tmp_path: Path) -> None:
    values = ("--label", "room", "--length-scales", "2", "--noise-variances", "0.5")
    few = tmp_path / "few.toml"
    few.write_text('[query]\nrule = "skeptical"\nc = 0.25\n[budget]\nrule = "unlimited"\n')
    result = tune(wifi, *values, "--config", few)
    [best] = [row for row in replays(result) if "best" in row[-1]]
    assert [row[0] for row in by_c(result)] == ["0.25", "1"]
    assert by_c(result)[0][1:] == best[2:5]
    usual = tune(wifi, *values)
    [same] = [row for row in replays(usual) if row[:2] == best[:2]]
    assert by_c(result)[1][1:] == same[2:5]


@pytest.mark.parametrize(
    "setting",
    [
        '[query]\nrule = "skeptical"\nc = 0',
        '[query]\nrule = "skeptical"\nc = 1e308',
        '[query]\nrule = "always"',
        '[budget]\nrule = "at_most"\nn = 9',
        '[log]\nkey = "phone"\n[total_budget]\nrule = "at_most"\nn = 9',
    ],
)
def test_where_no_c_says_how_many_questions_there_is_nothing_to_show(
    log: Path, tmp_path: Path, setting: str
) -> None:
    start = tmp_path / "start.toml"
    start.write_text(setting)
    values = ("--length-scales", "1", "--noise-variances", "0.5")
    result = tune(log, "--label", "room", *values, "--config", start)
    assert result.exit_code == 0
    assert "best: worth most" in result.stdout
    assert "`c`" not in result.stdout


# --- what is wrong


@pytest.mark.parametrize(
    ("lines", "label", "expected"),
    [
        (rows(40), "rooom", "rooom"),
        (rows(10), "room", "holds one label only, 'hall', in 10 rows"),
        ([f"{i},1,a," for i in range(9)], "room", "room"),
        (["nan,nan,,hall"] * 5, "room", ""),
        (["inf,1,a,hall"] * 5, "room", "could be used"),
        ([], "room", "no rows"),
    ],
    ids=["no such column", "one class", "no label", "only NaN", "only infinite", "no rows"],
)
def test_log_without_anything_to_tell_apart_is_one_line(
    tmp_path: Path, lines: list[str], label: str, expected: str
) -> None:
    assert expected in wrong(
        write(tmp_path / "log.csv", lines), "--label", label, "--ignore", "phone"
    )


def test_empty_missing_and_damaged_files_are_one_line(tmp_path: Path, wifi: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    damaged = tmp_path / "damaged.csv.gz"
    damaged.write_bytes(gzip.compress(wifi.read_bytes())[:-2000])
    for path in (empty, tmp_path / "nothing.csv", damaged, tmp_path):
        assert str(path) in wrong(path, "--label", "room")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "name the column that holds the label"),
        (("--label", "room", "--length-scales", "1,nan"), "expected a number > 0"),
        (("--label", "room", "--noise-variances", ""), "expected a number > 0"),
        (("--label", "room", "--limit", "0"), "0"),
        (("--label", "room", "more.toml"), "unexpected argument 'more.toml'"),
        (("--label", "room", "--picture", "a.png"), "--picture can be used only with --compare"),
        (("--label", "room", "--compare"), "--compare needs configuration files"),
        (("--label", "room", "--compare", "--output", "b.toml", "a.toml"), "leave out --output"),
        (("--label", "room", "--compare", "nothing.toml"), "nothing.toml: cannot be read"),
        (("--label", "room", "--config", "nothing.toml"), "nothing.toml: cannot be read"),
        (("--label", "room", "--output", "no/where/best.toml"), "there is no directory"),
        (("--label", "room", "--output", "."), "is a directory"),
        (("--label", "room", "--annotator", "decline_rate=1"), "lower decline_rate"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_use_is_one_line(log: Path, options: tuple[str, ...], expected: str) -> None:
    assert expected in wrong(log, *options)


def test_neither_log_nor_configuration_is_overwritten(log: Path, tmp_path: Path) -> None:
    config = tmp_path / "a.toml"
    config.write_text('[log]\nlabel = "room"\n')
    for file in (log, config):
        before = file.read_bytes()
        other_name = tmp_path / f"{file.name}-too"
        other_name.hardlink_to(file)
        for output in (file, other_name):
            message = wrong(log, "--config", config, "--output", output)
            assert message == f"{file} would be overwritten; name another file"
        assert file.read_bytes() == before


def test_other_learners_are_for_comparing(log: Path, tmp_path: Path) -> None:
    river = tmp_path / "river.toml"
    river.write_text('[learner]\nname = "river.naive_bayes.GaussianNB"\n')
    assert "--compare" in wrong(log, "--label", "room", "--config", river)
    assert tune(log, "--label", "room", "--ignore", "phone", "--compare", river).exit_code == 0


# --- comparing


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    never, always = tmp_path / "never.toml", tmp_path / "always.toml"
    never.write_text('[query]\nrule = "never"\n')
    always.write_text('[query]\nrule = "always"\n')
    return [never, always]


def test_comparison_shows_what_each_replay_shows(log: Path, two: list[Path]) -> None:
    options = ("--label", "room", "--annotator", "error_rate=0.2,delay=3")
    result = tune(log, *options, "--compare", *two)
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line.split()[1:-1] for line in result.stdout.splitlines()[-2:]}
    assert list(lines) == ["never", "always"]
    for file in two:
        [row] = re.findall(
            r"^skeptical GP +(.*) \d+$",
            streamgp("replay", log, *options, "--config", file).stdout,
            re.M,
        )
        assert lines[file.stem] == row.split()
    assert "one run of each, so a small difference may be chance" in result.stderr
    alone = tune(log, *options, "--compare", two[0])
    assert "one run of each" not in alone.stderr


def test_numbers_are_not_tuned(log: Path, tmp_path: Path) -> None:
    numbers = tmp_path / "numbers.toml"
    numbers.write_text('target = "number"\n')
    message = wrong(log, "--label", "room", "--config", numbers)
    assert 'tune works for labels only, got target = "number"' in message
    assert 'if the log holds names of classes, write target = "label"' in message


@pytest.mark.parametrize("how", ["search", "compare"])
def test_a_column_of_numbers_is_refused_before_any_work(
    how: str, two: list[Path], tmp_path: Path
) -> None:
    log = write(tmp_path / "warm.csv", [f"{n % 7},{n % 5},a,{n / 10}" for n in range(120)])
    message = wrong(log, "--label", "room", *(["--compare", *two] if how == "compare" else []))
    assert message.startswith("column 'room' holds numbers, 100 different ones in its first rows")
    assert "use `streamgp replay` with --target number" in message


def test_picture_of_a_comparison_is_drawn(log: Path, two: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "both.svg"
    result = tune(log, "--label", "room", "--compare", *two, "--picture", picture)
    assert result.exit_code == 0, result.output
    assert picture.read_text().startswith("<?xml")
    assert f"picture: {picture}" in result.stdout
    message = wrong(log, "--label", "room", "--compare", *two, "--picture", tmp_path / "both.gif")
    assert ".png, .svg, .pdf" in message


def test_comparison_of_a_damaged_log_shows_what_came_before(
    wifi: Path, two: list[Path], tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.csv.gz"
    damaged.write_bytes(gzip.compress(wifi.read_bytes())[:-2000])
    result = tune(damaged, "--label", "room", "--compare", *two)
    assert result.exit_code == 2
    assert "what came before it is shown" in result.stderr


def test_comparison_says_which_configuration_rejected_what(
    log: Path, two: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "rules_of_no_use.py").write_text(
        "class Half:\n    def decide(self, belief, draw):\n        return belief and True\n"
    )
    half = tmp_path / "half.toml"
    half.write_text('[query]\nrule = "rules_of_no_use:Half"\n')
    result = tune(log, "--label", "room", "--compare", half, two[1])
    assert result.exit_code == 0, result.output
    assert re.search(
        r"^half: \d+ rejected, the first: rejected 1 \(ask\): TypeError: Half", result.stderr, re.M
    )
    assert "always: " not in result.stderr


def test_comparison_without_a_usable_row_is_one_line(tmp_path: Path, two: list[Path]) -> None:
    log = write(tmp_path / "log.csv", ["inf,1,a,hall"] * 5)
    assert "no row of" in wrong(log, "--label", "room", "--compare", *two)


def test_comparison_of_rows_that_make_no_window_says_so(tmp_path: Path) -> None:
    log, windows = tmp_path / "raw.csv", tmp_path / "windows.toml"
    log.write_text("t,a,room\n1,2,x\n2,2,y\n")
    windows.write_text("[windows]\nlength_s = 5\nmin_rows = 4\n[log]\ntime = 't'\n")
    said = wrong(log, "--label", "room", "--compare", windows, windows)
    assert f"the rows of {log} make no window; `streamgp replay` with the same file says" in said


# --- annotators that are not alike


def test_configurations_with_unlike_annotators_are_not_compared(log: Path, tmp_path: Path) -> None:
    default, best = tmp_path / "default.toml", tmp_path / "best.toml"
    default.write_text(streamgp("init").stdout)
    best.write_text("[annotator]\nerror_rate = 0.2\ndelay = 30.0\nseed = 7\n")
    options = ("--label", "room", "--ignore", "phone", "--compare", default, best)
    assert wrong(log, *options) == (
        f"{default} and {best} cannot be compared: their labels come from different annotators, "
        "error_rate is 0.0 in one, 0.2 in the other, delay is 0.0 in one, 30.0 in the other; say "
        "who answers with --annotator, which then holds for all of them, as in --annotator "
        "error_rate=0.2,delay=30.0 (see `cli tune --help`)"
    )
    assert "delay is" in wrong(log, *options, "--annotator", "error_rate=0.2")
    result = tune(log, *options, "--annotator", "error_rate=0.2,delay=30.0")
    assert result.exit_code == 0, result.output


def test_one_annotator_is_not_compared_with_several(log: Path, tmp_path: Path) -> None:
    several, one = tmp_path / "several.toml", tmp_path / "one.toml"
    several.write_text("[annotators.ann]\nerror_rate = 0.2\n[annotators.bob]\n")
    one.write_text("")
    options = ("--label", "room", "--ignore", "phone", "--compare")
    message = wrong(log, *options, several, one)
    assert "'ann' and 'bob' and one; write the same ones into both files" in message
    assert tune(log, *options, several, several).exit_code == 0


@pytest.mark.parametrize("setting", ["limit = 50", 'label = "phone"'])
def test_results_on_other_rows_or_labels_are_not_compared(
    log: Path, tmp_path: Path, setting: str
) -> None:
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    one.write_text('[log]\nlabel = "room"\n')
    label = "" if setting.startswith("label") else 'label = "room"\n'
    other.write_text(f"[log]\n{label}{setting}\n")
    name = setting.split()[0]
    message = wrong(log, "--compare", one, other)
    assert f"cannot be compared: {name} in section [log] is " in message
    assert f"give --{name}, which then holds for all of them" in message


def test_a_limit_of_questions_a_day_is_proposed_with_what_it_costs(tmp_path: Path) -> None:
    hours = [f"{3600 * i},{row}" for i, row in enumerate(rows(72))]
    log = tmp_path / "days.csv"
    log.write_text("\n".join([f"time,{HEADER}", *hours]) + "\n")
    options = ("--label", "room", "--time", "time", "--length-scales", "1")
    one = ("--noise-variances", "0.5")
    shown = tune(log, *options, *one).stdout.splitlines()[-1]
    found = re.fullmatch(
        r"it asks for (\d+) labels? a day, rounded up; with `\[questions\] per_day = (\d+)`, which "
        r"spreads them evenly: accuracy ([.\d]+), (\d+) questions, worth ([-.\d]+)",
        shown,
    )
    assert found
    n, same, accuracy, n_questions, _ = found.groups()
    assert n == same
    start = tmp_path / "limit.toml"
    start.write_text(f"[questions]\nper_day = {n}\n")
    limited = tune(log, *options, *one, "--config", start)
    # The limit in the configuration is no proposal, and the replays are the same.
    assert "rounded up" not in limited.stdout
    assert [accuracy, n_questions] in [row[2:4] for row in replays(limited)]
    assert "a day" not in tune(log, "--label", "room", *options[4:], *one).stdout


def test_keys_of_less_than_two_days_propose_no_limit_however_many_they_are(tmp_path: Path) -> None:
    log = tmp_path / "phones.csv"
    hours = [f"{3600 * (i // 4)},p{i % 4},{row}" for i, row in enumerate(rows(80))]
    log.write_text("\n".join([f"time,who,{HEADER}", *hours]) + "\n")
    options = ("--label", "room", "--time", "time", "--key", "who", "--ignore", "phone")
    one = ("--length-scales", "1", "--noise-variances", "0.5")
    assert "a day" not in tune(log, *options, *one).stdout


@pytest.mark.parametrize("others", [[], ["--compare", "as-it-is.toml"]])
def test_a_log_that_can_be_read_only_once_is_refused(
    others: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("as-it-is.toml").touch()
    os.mkfifo("pipe")
    assert wrong("pipe", "--label", "room", *others) == (
        "pipe cannot be read a second time, which tune needs; save it to a file first"
    )

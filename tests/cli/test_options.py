"""Numbers on the command line: within bounds, finite, and told in one line where they are not."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from streamgp.cli.main import cli
from streamgp.cli.options import LARGEST, Number, WholeNumber


def options(
    command: click.Command, path: tuple[str, ...], given: type, ours: type
) -> Iterator[tuple[str, ...]]:
    """Return the path of every option that takes a value of a type of click's, made ours."""
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from options(each, (*path, name), given, ours)
    for parameter in command.params:
        if isinstance(parameter.type, given):
            assert isinstance(parameter.type, ours), parameter.name
            yield (*path, parameter.opts[0])


OPTIONS = list(options(cli, (), type(click.FLOAT), Number))
# Without those of `dead-letters`, which takes a configuration before the command.
WHOLE = [path for path in options(cli, (), type(click.INT), WholeNumber) if len(path) == 2]


def test_commands_have_such_options() -> None:
    assert {path[-1] for path in OPTIONS} == {
        "--interval",
        "--speed",
        "--stop-when-idle",
        "--timeout",
        "--wait",
    }


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1", "1e13", "soon"])
@pytest.mark.parametrize("path", OPTIONS, ids=" ".join)
def test_what_is_no_number_within_bounds_is_refused_in_one_line(
    path: tuple[str, ...], text: str
) -> None:
    *command, option = path
    result = CliRunner().invoke(cli, [*command, f"{option}={text}"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert f"'{option}': expected a number >" in result.stderr
    assert f"got {text!r}" in result.stderr


@pytest.mark.parametrize("text", [str(10**23), "-1", "1e3", "nan", "5000 digits"])
@pytest.mark.parametrize("path", WHOLE, ids=" ".join)
def test_what_is_no_whole_number_within_bounds_is_refused_in_one_line(
    path: tuple[str, ...], text: str
) -> None:
    *command, option = path
    text = "9" * 5000 if text == "5000 digits" else text
    result = CliRunner().invoke(cli, [*command, f"{option}={text}"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert f"Invalid value for '{option}'" in result.stderr


@given(text=st.one_of(st.floats().map(repr), st.text()), least=st.none() | st.floats(0.0, 10.0))
def test_only_finite_numbers_within_the_bounds_are_taken(text: str, least: float | None) -> None:
    try:
        number = Number(at_least=least).convert(text, None, None)
    except click.BadParameter:
        return
    assert isfinite(number)
    assert 0.0 <= number <= LARGEST
    assert number > 0.0 if least is None else number >= least


def paths(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, click.Parameter]]:
    """Return every argument and option that takes a path."""
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from paths(each, (*path, name))
    for parameter in command.params:
        if isinstance(parameter.type, click.Path):
            yield " ".join([*path, parameter.name or ""]), parameter


PATHS = dict(paths(cli, ()))


@pytest.mark.parametrize("path", PATHS)
def test_an_unset_variable_is_not_the_current_directory(path: str) -> None:
    parameter, context = PATHS[path], click.Context(cli)
    value = [""] if parameter.multiple or parameter.nargs == -1 else ""
    with pytest.raises(click.BadParameter, match="got an empty text"):
        parameter.process_value(context, value)

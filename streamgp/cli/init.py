"""The command `streamgp init`: a commented configuration file with the values in force."""

from __future__ import annotations

import click
import msgspec

from streamgp.cli.settings import Config, Learner, PresetName, resolved
from streamgp.cli.validation import shown

# Settings stand with their value; those that are off by default stand as `#name = example`, so
# that taking away the `#` gives a valid file. Other comments begin with `# `.
_TEMPLATE = """\
# Configuration of streamgp, read by `streamgp replay LOG --config FILE`.
# Every setting may be left out; what stands here is the default. Settings that begin
# with `#` are off: take away the `#` to use them. The command line overrides the file.

# Where the values come from that this file leaves out: "default", or "paper" (the rules
# and numbers of the ISGP paper, on unscaled features).
preset = {preset}

# Seeds every random draw: the same seed and log give the same run.
seed = {seed}

# Features are scaled by their mean and standard deviation over this many first events,
# then never again. 0: not scaled at all.
warm_up = {warm_up}

[learner]
# "gp", an exact Gaussian process, or any River classifier by its path, for example
# "river.naive_bayes.GaussianNB"; a River classifier's settings go into a section
# [learner.options], in place of the two below.
name = {name}
# How far a labelled example reaches, in units of the scaled features. Without it: grows
# with the square root of the number of features.
{length_scale}
# How much a single label may be off (labels count as 0 and 1); more is more skeptical.
noise_variance = {noise_variance}

[query]
# When to ask for a label. The other rules, and their settings:
#   "paper"               the ISGP paper's: a coin with the probability of being wrong
#   "always"              every event
#   "never"               no event
#   "random"              rate = 0.1 (share of the events)
#   "entropy"             threshold = 0.5 (nats)
#   "least_confidence"    threshold = 0.3 (one minus the highest probability)
#   "best_versus_second"  threshold = 0.3 (second best probability over best)
# "skeptical": a coin with c times the probability of being wrong; more c, more questions.
{query}

[challenge]
# When to ask again because a given label is probably wrong. The other rules:
#   "paper"   the ISGP paper's: a coin, whenever label and prediction differ
#   "always"  whenever they differ
#   "never"   take every label as it is
# "skeptical": when the label is wrong with more than this probability.
{challenge}

[budget]
# How many labels may be asked for; challenges are not counted. The other rules, and their settings:
#   "at_most"      n = 100
#   "at_most_per"  n = 5, span_s = 3600.0 (at most 5 in any hour)
#   "rate"         rate = 0.1, window = 50, horizon = 8 (about this share of the events)
rule = {budget}

[annotator]
# The simulated annotator, who reads the answers from the log's label column. For several
# of them at once, replace this section by one for each: [annotators.ann], [annotators.bob].
# Share of wrong answers, seconds until an answer comes, share of unanswered requests.
error_rate = {error_rate}
delay = {delay}
decline_rate = {decline_rate}
# true: a challenged annotator always repeats the first answer.
stubborn = {stubborn}
# What each question adds to the share of wrong answers, and the seconds after which half of
# that has passed. 0.0: never tired.
tiring_rate = {tiring_rate}
half_life_s = {half_life_s}
# The labels to err among, of the same type as those in the log. Without it: those seen so far.
#classes = ["hall", "kitchen"]
# How the annotator signs; without it "simulated".
#name = "ann"
# Without a seed of their own the annotator's draws follow the seed above.
#seed = 1

[log]
# Column names. Without a time column the row number counts as seconds; with a key column
# every key (a user, a device) has a learner of its own.
#label = "label"
#time = "time"
#key = "user"
# Columns that are not features, or the only ones that are.
ignore = []
#features = ["a", "b"]
# Stop after this many rows.
#limit = 1000

[loop]
# Seconds of the log's time after which an unanswered request ends.
#expires_after_s = 3600.0
# Seconds after which an event can no longer be answered. Without it, every event is
# remembered for ever.
#answer_horizon_s = 86400.0
# With a key column: how many learners to hold in memory. The others are put away, and come back
# unchanged with their next row.
#max_keys = 1000
"""


def template(preset: PresetName = "default") -> str:
    """Write the configuration file of a preset."""
    config = resolved(Config(preset=preset))
    scale = config.learner.length_scale
    return _TEMPLATE.format(
        preset=shown(config.preset),
        seed=config.seed,
        warm_up=config.warm_up,
        name=shown(Learner().name),
        length_scale="#length_scale = 2.0" if scale is None else f"length_scale = {scale}",
        noise_variance=config.learner.noise_variance,
        query=_rule(config.query),
        challenge=_rule(config.challenge),
        budget=shown("unlimited"),
        error_rate=config.annotator.error_rate,
        delay=config.annotator.delay,
        decline_rate=config.annotator.decline_rate,
        stubborn=shown(config.annotator.stubborn),
        tiring_rate=config.annotator.tiring_rate,
        half_life_s=config.annotator.half_life_s,
    )


def _rule(rule: object) -> str:
    settings = msgspec.to_builtins(rule)
    return "\n".join(f"{name} = {shown(value)}" for name, value in settings.items())


@click.command()
@click.option(
    "--preset",
    type=click.Choice(["default", "paper"]),
    default="default",
    show_default=True,
    help="Whose values to write.",
)
def init(preset: PresetName) -> None:
    """Print a commented configuration file with all settings.

    \b
    streamgp init > streamgp.toml
    streamgp replay log.csv --label activity --config streamgp.toml
    """
    click.echo(template(preset), nl=False)

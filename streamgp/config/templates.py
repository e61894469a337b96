"""The text of the configuration files that `streamgp init` prints.

Settings stand with their value; those that are off by default stand as `#name = example`, so that
taking away the `#` gives a valid file. Other comments begin with `# `.

"""

_REPLAY_HEAD = """\
# Configuration of streamgp, read by `streamgp replay LOG --config FILE`.
# Every setting may be left out; what stands here is the default. Settings that begin
# with `#` are off: take away the `#` to use them. The command line overrides the file.

"""

_TOP = """\
# Where the values come from that this file leaves out: "default", or "paper" (the rules
# and numbers of the ISGP paper, on unscaled features).
preset = {preset}

# What is predicted: "label", names of classes, or "number". Some settings below are for one of
# the two.
target = {target}

# Seeds every random draw: the same seed and log give the same run.
seed = {seed}

# Features are scaled by their mean and standard deviation over this many first events,
# then never again. 0: not scaled at all.
warm_up = {warm_up}

"""

_RULES = """\
[learner]
# "gp", a Gaussian process; "ensemble", several with random features, which cost the same after a
# million labels; for labels "forest", random trees, "confidence_boosting" or "gradient_boosting",
# several forests, or "privileged", a Gaussian process that believes an answer as far as what came
# with it suggests; or any River classifier by its path, for example "river.naive_bayes.GaussianNB",
# or regressor. The settings of all but "gp" go into a section [learner.options], in place of those
# below; an ensemble has n_features = 50, forgetting = 1.0, refit = true, preset = "default",
# noise_variance = 0.1, n_initial = 10 and, for labels, likelihood = "regression" or "logistic"; a
# forest n_models = 10, n_tests = 50, min_weight = 30, max_nodes = 2000, inherit = true; boosting
# n_models = 10, uncertainty = "bvsb" or "entropy", normalise_weights = false, preset = "default";
# "privileged" max_points = 300, n_replays = 3, preset = "default", learn_hyperparameters = true.
name = {name}
# How far a labelled example reaches, in units of the scaled features. Without it: grows
# with the square root of the number of features.
{length_scale}
# How much a single label may be off (labels count as 0 and 1); more is more skeptical. For
# numbers a share of their variance.
noise_variance = {noise_variance}
# How many points it keeps. It is exact up to so many labelled examples, and from then on
# as fast and as large as at that time; "all" keeps every example. For a world that changes all the
# time, window = 200 in its place: the latest so many examples, and no others.
max_points = {max_points}
# Whether it finds length scale and noise by itself, starting from the two above, whenever
# the number of its examples has doubled. That event takes up to some seconds. "leave_one_out":
# likewise, by what each example is predicted to be by all others.
learn_hyperparameters = {learn_hyperparameters}
# Whether it forgets all examples when labels are predicted wrongly more often than they were: for
# a world that changes at times.
drift = {drift}

[query]
# When to ask for a label. The other rules, and their settings:
#   "paper"               the ISGP paper's: a coin with the probability of being wrong
#   "always"              every event
#   "never"               no event
#   "random"              rate = 0.1 (share of the events)
#   "entropy"             threshold = 0.5 (nats)
#   "least_confidence"    threshold = 0.3 (one minus the highest probability)
#   "best_versus_second"  threshold = 0.3 (second best probability over best)
#   "equal_error"         at_least = 0.1 (with this probability, and below a confidence that it
#                         learns from the answers: for learners that know probabilities only)
#   "variance"            threshold = 0.0 (variance of the prediction)
#   "kl"                  threshold = 0.0, least_weight = 0.01 (how the models of one differ)
#   "deterministic"       threshold = 0.0 (the same, by their means alone)
# "skeptical": a coin with c times the probability of being wrong; more c, more questions. With
# at_least this probability however sure the learner is: how it notices that the world has changed.
# The last three go with the budgets "rate" and "adaptive"; "kl" and "deterministic" compare the
# models of learner.name = "ensemble".
# For numbers: "variance", which is the default then, "kl", "deterministic", "always", "never" or
# "random".
{query}

[challenge]
# When to ask again because a given label is probably wrong. The other rules:
#   "paper"   the ISGP paper's: a coin, whenever label and prediction differ
#   "always"  whenever they differ
#   "never"   take every label as it is
# "skeptical": when the label is wrong with more than this probability.
# For numbers: "skeptical", "never" or "outside_interval", the default then: when the number lies
# outside the interval in which answers are expected with the probability level = 0.99.
{challenge}

[review]
# When to doubt a label that was learned before. The other rule, and its settings:
#   "leave_one_out"  threshold = 0.3, every = 5 (every 5 labels the one that fits the others least,
#                    if it is wrong with more than this probability)
# A section [review.budget], with the rules of [budget], limits these challenges.
rule = "never"

[reservoir]
# When to ask about an earlier event that has no label. The other rule, and its settings:
#   "latest"  criterion = "l2fm", size = 200, every = 10 (every 10 events the one of the latest 200
#             whose label would change the predictions of the others most; with max_age_s =
#             3600.0 none of more than an hour ago)
# For a log that is to be labelled well as a whole; the next predictions are better without it.
# A section [reservoir.budget], with the rules of [budget], limits these questions.
rule = "never"

[budget]
# How many labels may be asked for; challenges are not counted. The other rules, and their settings:
#   "at_most"      n = 100
#   "at_most_per"  n = 5, span_s = 3600.0 (at most 5 in any hour)
#   "rate"         rate = 0.1, window = 50, horizon = 8 (about this share of the events)
#   "adaptive"     rate = 0.1, step = 1.0 (the same, more of it while scores are high)
# and "all_of", several at once: a section [[budget.budgets]] with such a rule for each of them.
# gives_back = true: a question that nobody answered does not count after all.
rule = {budget}

[total_budget]
# Where every key has a learner, how many labels may be asked for in all, on top of what [budget]
# allows each key. The rules are the same.
rule = {budget}

"""

_ANNOTATOR = """\
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
# Of a tired one: the median seconds that an answer takes when rested, what each question adds to
# them, in units of these, and how much they vary (standard deviation of the logarithm).
response_s = {response_s}
slowing = {slowing}
response_spread = {response_spread}
# For numbers: standard deviation of an answer; how many standard deviations of all truths a
# wrong one is off; whether the annotator says how exact the answers are.
noise = {noise}
outlier = {outlier}
states_noise = {states_noise}
# The labels to err among, of the same type as those in the log. Without it: those seen so far.
#classes = ["hall", "kitchen"]
# How the annotator signs; without it "simulated".
#name = "ann"
# Without a seed of their own the annotator's draws follow the seed above.
#seed = 1

"""

_LOG = """\
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

"""

_REPLAY_LOOP = """\
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

_WORKER_HEAD = """\
# Configuration of a streamgp worker, read by `streamgp run FILE`, and by the commands that work
# on the same topics. Settings that begin with `#` are off: take away the `#` to use them.
# Try it without Kafka: `streamgp run FILE --broker file://./topics --create-topics`.

"""

_BROKER = """\
[broker]
# Some servers of the cluster; "file://DIR" keeps the topics in a directory (one worker),
# "memory://" only as long as the worker runs.
url = "kafka://localhost:9092"

# Who the worker is, and whom it trusts. The passwords stand in environment variables, or, with
# password_file and key_password_file in place of the two below, in files.
#[broker.security]
# "PLAINTEXT", "SSL", "SASL_PLAINTEXT" or "SASL_SSL".
#protocol = "SASL_SSL"
# "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512".
#mechanism = "SCRAM-SHA-512"
#username = "streamgp"
#password_env = "KAFKA_PASSWORD"
# Certificates: of the authority that signed the broker's (without it those that the system
# trusts), and the worker's own, where the broker asks for one.
#ca_file = "ca.pem"
#cert_file = "worker.pem"
#key_file = "worker.key"
#key_password_env = "KAFKA_KEY_PASSWORD"

[topics]
# What every name begins with.
prefix = {prefix}
# For `streamgp run --create-topics`. More partitions let more workers share the load; their
# number cannot be changed later. replication = -1: as many copies as the broker is set to.
partitions = {partitions}
replication = {replication}
events = {events}
answers = {answers}
predictions = {predictions}
requests = {requests}
consensus = {consensus}
state = {state_topic}
dead_letters = {dead_letters}

[worker]
# Workers of one group share the partitions.
group = {group}
# Its own name within the group, the same after every restart. Without it: the name of the
# machine and a number.
#instance = "worker-1"
# true: every key (a user, a device) has a learner of its own. false: one learner for all, which
# needs topics with one partition.
keyed = {keyed}
# Where to keep snapshots, so that a restart need not read the topics from the start.
state = {state}
save_every_s = {save_every_s}
# How many records are worked off together at most.
batch = {batch}
# Stop when more than this share of the last 1000 inputs could not be used.
max_bad_share = {max_bad_share}
# What a worker does with its place in the group when it is stopped (SIGTERM). false: the group
# keeps its partitions for ten seconds, so that a quick restart disturbs nobody. true: others take
# them at once, as when workers become fewer.
leave = {leave}
"""

_WORKER_LOOP = """\
[loop]
# Seconds after which an unanswered request ends.
expires_after_s = 3600.0
# Seconds after which an event can no longer be answered, and is forgotten; without it, every
# event is remembered for ever.
answer_horizon_s = 86400.0
# How many learners each partition holds in memory. The others are put away, and come back
# unchanged with their next event.
#max_keys = 10000
"""

REPLAY = _REPLAY_HEAD + _TOP + _RULES + _ANNOTATOR + _LOG + _REPLAY_LOOP
"""For `streamgp replay`."""
WORKER = (
    _WORKER_HEAD
    + _TOP
    + _BROKER
    + "\n"
    + _RULES
    + _WORKER_LOOP
    + "\n"
    + _LOG.replace("[log]\n", "[log]\n# How `streamgp send` reads a log.\n").rstrip("\n")
    + "\n"
)
"""For `streamgp run`."""

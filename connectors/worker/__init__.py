"""The worker: passes records to loops and writes the results, in atomic batches.

- `worker`: reads, runs the loops, commits; `batch`: one batch of records and its outputs.
- `partition`: the loops of one partition; `recovery`: restores partitions from disk and topics.
- `early_answers`: answers that arrive before their event.
- `compatibility`, `losses`: checks that topics fit the configuration and each other.
- `settings`: settings; `logging`: log lines, reports of what hinders it, and the heartbeat file;
  `metrics`: counts.

"""

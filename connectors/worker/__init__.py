"""The worker: from records to loops and back, in batches of which all counts or nothing.

- `worker`: reads, runs the loops, commits; `batch`: one batch of records and its outputs.
- `partition`: the loops of one partition; `recovery`: restores partitions from disk and topics.
- `early_answers`: answers that come before their event.
- `compatibility`, `losses`: checks that topics fit the configuration and each other.
- `settings`, `logging`: settings; log lines and the heartbeat file.

"""

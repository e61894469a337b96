"""Workers on a real Kafka broker under chaos, end to end: `python -m tests.chaos --help`.

`traffic` and `senders` write into the topics, `processes` and `scene` run everything and do harm;
`ledger`, with `conversations` and `checks`, and `learners` check what the topics hold at the end.
`test_chaos.py` shows that they find every fault; the run itself takes minutes.

"""

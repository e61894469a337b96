"""The conversation on Apache Flink, for those who outgrow a group of workers.

Only this package imports PyFlink, which has an environment of its own (`docs/flink.md`).
"""

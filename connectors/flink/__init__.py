"""The conversation on Apache Flink, for deployments that outgrow a group of workers.

PyFlink, which has an environment of its own (`docs/flink.md`), is imported only by `function`,
`job` and `streamgp.apps.flink.cluster`.
"""

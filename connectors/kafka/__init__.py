"""Apache Kafka: topics shared by workers, exactly once; only `client` knows the client library."""

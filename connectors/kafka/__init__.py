"""Apache Kafka: topics shared by workers, exactly once; only `library` knows the client library."""

"""Apache Kafka: topics shared by workers, exactly once; `client_import` alone knows the client."""

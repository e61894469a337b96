"""Topics on Apache Kafka; `client_import` alone knows the client library."""

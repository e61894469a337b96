"""A worker on a Kafka broker: throughput, restore and latency."""

"""What k6 and the stack sent to Prometheus: queries, counters and windows."""

"""Turn k6's samples in Prometheus into windows, a break point, a verdict and a typed result."""

"""From k6's samples in Prometheus to windows, a break point, a verdict and one typed result."""

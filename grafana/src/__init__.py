"""Grafana's dashboards, generated: `make dashboards` writes grafana/dashboards/*.json."""

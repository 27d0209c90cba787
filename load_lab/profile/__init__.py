"""`lab profile`: where a server's time goes under load, by py-spy and pg_stat_statements."""

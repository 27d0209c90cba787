"""`lab profile`: where the backend's time goes under load, by py-spy."""

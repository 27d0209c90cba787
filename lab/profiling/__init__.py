"""Where the backend's time goes under load: py-spy, and its flame graph read back."""

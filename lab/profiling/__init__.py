"""Where the backend's time goes under load: py-spy, and the data of its flame graph."""

"""The services of the native engine, one file for each that needs more than a command line."""

"""The settings of the lab, without Django: the lab and the backend import them from here."""

"""The lab's settings, without Django: the lab and the backend import them from here."""

"""Compose's health check of `backend-beside`: python -m config.server.beside_check

It is well when its server answers, and when the settings want none.
"""

from urllib.request import urlopen

from lab_settings.kinds import AsgiBeside

from config import env

if env.lab_settings().LAB_ASGI_BESIDE is not AsgiBeside.OFF:
    # Raises on any status from 400 on.
    urlopen("http://127.0.0.1:8000/readyz", timeout=10)

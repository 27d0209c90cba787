"""Compose's health check of `backend-worker`: python -m config.server.worker_check URL

It is well when the backend has an answer of it at URL, and when the settings want none.
"""

import sys
from urllib.request import urlopen

from lab_settings.kinds import Switch

from config import env

# Longer than the backend waits for the worker (workbench/layer.py).
SECONDS = 8

if env.lab_settings().LAB_WORKBENCH is Switch.ON:
    # Raises on any status from 400 on.
    urlopen(sys.argv[1], timeout=SECONDS)  # noqa: S310

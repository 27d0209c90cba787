"""Start the app with a database server of its own: start.py PORT PORT_OF_POSTGRES."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.postgres_server import running_postgres

port, database_port = sys.argv[1:]
with running_postgres(int(database_port)):
    url = f"postgresql://postgres@127.0.0.1:{database_port}/postgres"
    argv = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "app"]
    app = subprocess.Popen(argv, cwd=Path(__file__).parent, env={**os.environ, "DATABASE": url})
    signal.signal(signal.SIGTERM, lambda *_: app.terminate())
    app.wait()

"""Write every dashboard as grafana/dashboards/<uid>.json.

python -m grafana.src [DIRECTORY]
"""

import json
import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.src import (
    backend_database,
    bottleneck,
    break_point,
    cache_layers,
    compare,
    guide,
    load_test,
    resources,
)
from load_lab.paths import ROOT

FOLDER = ROOT / "grafana/dashboards"
# The last version of this format: older ones are converted when Grafana loads them.
SCHEMA_VERSION = 42
PAGES = (
    *(load_test, break_point, bottleneck, cache_layers, resources, backend_database, compare),
    guide,
)


def write(folder: Path) -> None:
    """Write one JSON file per dashboard."""
    for page in PAGES:
        dashboard = page.build().build()
        dashboard.schema_version = SCHEMA_VERSION
        text = json.dumps(dashboard, cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False)
        (folder / f"{dashboard.uid}.json").write_text(text + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)

"""One run of `lab calibrate` in which everything is right."""

from lab.suites.calibration import checks
from lab.suites.calibration.cells import CELLS
from lab.suites.calibration.checks import Seen
from lab.suites.calibration.reference_values import Truth

BY_NAME = {cell.name: cell for cell in CELLS}
TRUTH = Truth([0.02] * 1000, [0.0] * 1000, 5.0, [0.0], 0, best_rate=171.0)
FIGURES = {
    **{f"p{share}_ms": 20.1 for share in checks.SHARES},
    **{"rps": 200.0, "goodput": 171.5, "requests": 1000, "failed": 0, "limited_by": "none"},
    "break_point": {"rate": 201.0, "goodput": 199.0},
}
SEEN = Seen(FIGURES, TRUTH, 0.1, dict.fromkeys(checks.SHARES, 21.0), 1000.0)

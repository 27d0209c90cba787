"""One run of `lab calibrate` that passes every check."""

from lab.analysis.breakpoint import BreakPoint
from lab.analysis.result import Result
from lab.suites.calibration import checks
from lab.suites.calibration.cells import CELLS
from lab.suites.calibration.checks import Measurement
from lab.suites.calibration.reference import ReferenceValues

BY_NAME = {cell.name: cell for cell in CELLS}
REFERENCE = ReferenceValues([0.02] * 1000, [0.0] * 1000, 5.0, [0.0], 0, best_rate=171.0)
RESULT = Result(
    **{f"p{share}_ms": 20.1 for share in checks.SHARES},
    rps=200.0,
    goodput=171.5,
    requests=1000,
    limited_by="none",
    break_point=BreakPoint(
        rate=201.0, offered=201.0, goodput=199.0, seconds_into_test=9, reasons=()
    ),
)
SAMPLE = Measurement(RESULT, REFERENCE, 0.1, dict.fromkeys(checks.SHARES, 21.0), 1000.0)

"""One run of `lab calibrate` that passes every check."""

from load_lab.calibrate import checks
from load_lab.calibrate.cells import CELLS
from load_lab.calibrate.checks import Measurement
from load_lab.calibrate.known_server import ReferenceValues
from load_lab.results.breakpoint import BreakPoint
from load_lab.results.result import Result

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

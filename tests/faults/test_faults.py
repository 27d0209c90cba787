"""k6 books and reads at a constant rate during one fault: no booking is lost or duplicated, no page
is older than promised, and errors end soon after the repair.
"""

import pytest

from tests.faults.catalogue import FAULTS
from tests.faults.load import run_fault


def _marked(fault):
    marks = [pytest.mark.core] if fault.is_core else []
    return pytest.param(fault, marks=marks, id=fault.name.replace(" ", "-"))


@pytest.mark.parametrize("fault", list(map(_marked, FAULTS)))
def test_fault(fault, injector, fault_results, folder):
    result = run_fault(fault, injector, folder)
    fault_results.append(result)
    assert result.violations() == []

"""k6 books and reads at a constant rate during one fault: no booking is lost or duplicated, no page
is older than promised, and errors end soon after the repair.
"""

import pytest

from tests.faults.catalogue import FAULTS
from tests.faults.load import figures_of


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name.replace(" ", "-") for fault in FAULTS])
def test_fault(fault, hand, figures, folder):
    found = figures_of(fault, hand, folder)
    figures.append(found)
    assert found.complaints() == []

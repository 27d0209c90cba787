"""Which services a picture names, and that no two of them look alike."""

from lab.report.services import COLOURS, OTHERS, merged


def test_what_is_idle_in_every_cell_becomes_one():
    cells = [
        {"backend": 0.8, "redis": 0.01, "mtail": 0.01, "node-exporter": 0.02},
        {"backend": 0.1, "redis": 0.3},
    ]
    idle, busy = merged(cells)
    assert idle == {"backend": 0.8, "redis": 0.01, OTHERS: 0.03}
    assert busy == {"backend": 0.1, "redis": 0.3}


def test_workers_of_an_old_stack_are_one_service():
    (cell,) = merged([{"legacy-web": 0.5, "legacy-worker-1": 0.04, "legacy-worker-2": 0.04}])
    assert cell == {"legacy-web": 0.5, "legacy-workers": 0.08}


def test_every_service_has_a_colour_of_its_own():
    assert len(set(COLOURS.values())) == len(COLOURS)

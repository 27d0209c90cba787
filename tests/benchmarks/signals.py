"""What looking at a target costs it: the CPU time per request with and without the sampler.

`make bench-signals` runs it: a comparison of the code with itself, in which B alone is watched.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from unittest.mock import patch

from lab_settings.types import cpu_numbers

from load_lab.compare import comparison, cost
from load_lab.compare.blocks import CompareOptions
from load_lab.compare.cost import BlockLoad, Order, Side
from load_lab.compare.trials import Trials
from load_lab.console import out
from load_lab.machine.cpus import choose_cpus
from load_lab.machine.observer import SignalSampler
from load_lab.metrics.push import push
from load_lab.paths import current_state
from load_lab.settings import load_settings, update_settings
from load_lab.stack.native import NativeEngine
from load_lab.targets.reference.subject import ReferenceSubject
from load_lab.targets.subject import Running, Variant

_MEASURE = "load_lab.compare.trials.measure"
_LIMITS = "limits: at most 3 % more CPU time per request (upper end), 0.1 cores"


class _WatchedTrials(Trials):
    """Trials whose second variant is watched."""

    def block(
        self, variants: tuple[Variant, Variant], load: BlockLoad, folder: Path, order: Order
    ) -> tuple[Side, Side]:
        watched = 0 if order.b_first else 1
        with patch(_MEASURE, partial(_measure, position=watched)):
            return super().block(variants, load, folder, order)


_costs: list[float] = []


def _measure(
    parties: Sequence[Running], load: BlockLoad, folders: Sequence[Path], position: int
) -> list[Side]:
    party = parties[position]
    cpus = cpu_numbers(choose_cpus(party.settings).load)
    publish = partial(push, party.settings.push_url, "bench-signals")
    with SignalSampler(party.target.watched(), cpus, publish) as sampler:
        sides = cost.measure(parties, load, folders)
    _costs.append(sampler.cost)
    return sides


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="list")
    parser.add_argument("--budget", type=float, default=600)
    parser.add_argument("settings", nargs="*", help="such as LAB_SERVER=gunicorn-gthread")
    arguments = parser.parse_args()
    base = update_settings(load_settings(), ["LAB_DETAIL=fast", *arguments.settings])
    # B is not the same: it is watched.
    variants = (Variant("not watched"), Variant("watched"))
    options = CompareOptions(*variants, arguments.scenario, arguments.budget, threshold=0.03)
    subject = ReferenceSubject(NativeEngine(current_state()), arguments.scenario, base=base)
    with patch("load_lab.compare.comparison.Trials", _WatchedTrials):
        document = comparison.run(subject, options, at_once=True)
    ratio = document["ratios"]["cpu_ms"]
    out.print(
        f"{arguments.scenario}: watched ÷ not watched: {ratio['ratio']} ({ratio['low']} to "
        f"{ratio['high']}) × the CPU time per request, {document['sides']['a']['cpu_ms']} ms, "
        f"{len(document['blocks'])} restarts"
    )
    out.print(f"the sampler: {mean(_costs):.3f} cores at most {max(_costs):.3f}; {_LIMITS}")


if __name__ == "__main__":
    main()

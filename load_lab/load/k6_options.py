"""Extra options of `k6 run`: all except those that would make the run invalid."""

from load_lab.errors import UsageError

_PLAN_REASON = "the profile plans the load; write --rate, --duration or --vus before the --"
_TAG_REASON = "the lab reads the run back by them"
_REFUSED = {
    "--vus": _PLAN_REASON,
    "--duration": _PLAN_REASON,
    "--iterations": _PLAN_REASON,
    "--stage": _PLAN_REASON,
    "--execution-segment": "a part of the plan would be judged as the whole",
    "--execution-segment-sequence": "a part of the plan would be judged as the whole",
    "--tag": f"the run's metrics are found by their tags; {_TAG_REASON}",
    "--system-tags": f"the run's metrics are found by their tags; {_TAG_REASON}",
    "--out": f"k6's metrics go to Prometheus; {_TAG_REASON}",
    "--address": "k6's REST API stays closed, or any user of this machine could stop the run",
    "--no-setup": "setup checks the target's settings and reads its data",
    "--env": "set the variable in the shell, where the lab reads it too: MAX_VUS=300 lab k6 …",
    "--summary-mode": "the result is read from the summary",
    "--new-machine-readable-summary": "the result is read from the summary",
    "--features": f"it replaces the feature native-histograms; {_TAG_REASON}",
}
_SHORT = {
    "-u": "--vus",
    "-d": "--duration",
    "-i": "--iterations",
    "-s": "--stage",
    "-o": "--out",
    "-a": "--address",
    "-e": "--env",
}


def validate_options(options: list[str]) -> tuple[str, ...]:
    """Return the options unchanged.

    Raises:
        UsageError: one is not an option, or would make the run's result invalid.
    """
    if options and not options[0].startswith("-"):
        raise UsageError(
            f"'{options[0]}' is not an option of k6. Write them after --: -- --http-debug"
        )
    for option in options:
        name = option.partition("=")[0]
        # k6 accepts -u5 as -u 5.
        long = name if name.startswith("--") else _SHORT.get(name[:2], name)
        if long in _REFUSED:
            raise UsageError(f"{name} can't be passed to k6: {_REFUSED[long]}.")
    return tuple(options)

"""Resources: how much of its limits does each service use?"""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from grafana.src import variables
from grafana.src.annotations import run_annotations
from grafana.src.page import Page
from grafana.src.panels import Query, draw_dashed, place_legend_right, series
from grafana.src.queries import resources, selection

TESTS = selection.variable_matcher()
_LIMITS = ".* limit$"


def build() -> Dashboard:
    page = Page(
        "lab-resources",
        "Resources",
        "How much CPU, memory, network and disk does each service use, and what is its limit?",
        variables.tests(),
        annotations=run_annotations(TESTS),
    )
    _usage(page)
    _traffic(page)
    _saturation(page)
    return page.dashboard


def _usage(page: Page) -> None:
    cpu = series(
        Query(resources.of_services(resources.CPU), "{{service}}"),
        Query(resources.SIDE_CPUS, "{{side}} limit"),
        Query(resources.cpu_quotas(), "{{service}} limit"),
    )
    page.add(
        draw_dashed(place_legend_right(cpu), _LIMITS),
        "CPU",
        "Cores in use, by service; `load` is k6, `measuring` the exporters and Prometheus. The "
        "dashed lines are limits: the CPUs that the services of a side share, and the quotas of "
        "containers below that.",
        "cores",
        (12, 12),
    )
    memory = series(
        Query(resources.of_services(resources.MEMORY), "{{service}}"),
        Query(resources.MEMORY_LIMIT, "{{service}} limit"),
    )
    page.add(
        draw_dashed(place_legend_right(memory), _LIMITS),
        "Memory",
        "Working set of each container. On the native engine proportional set size of its "
        "processes. Dashed: the containers' limits; processes have none.",
        "bytes",
        (12, 12),
    )


def _traffic(page: Page) -> None:
    page.add(
        place_legend_right(
            series(
                Query(resources.select_direction(resources.NETWORK, "receive"), "{{service}} in"),
                Query(resources.select_direction(resources.NETWORK, "transmit"), "{{service}} out"),
            )
        ),
        "Network",
        "Bytes per second in and out. On the native engine services share one network, so the "
        "panel shows only those that count their own traffic: Nginx, Redis and k6.",
        "Bps",
        (12, 11),
    )
    page.add(
        place_legend_right(
            series(
                Query(resources.disk("read"), "{{service}} read"),
                Query(resources.disk("write"), "{{service}} written"),
            )
        ),
        "Disk",
        "Bytes per second from and to storage, without reads from the page cache.",
        "Bps",
        (12, 11),
    )


def _saturation(page: Page) -> None:
    page.add(
        series(Query(resources.cpu_per_request(TESTS), "{{service}}"), stacked=True),
        "CPU seconds per request",
        "CPU time per response, by service of the target. Rises when work is repeated, and falls "
        "when a cache answers.",
        "s",
        (6, 10),
    )
    page.add(
        series(
            Query(resources.THROTTLED, "{{service}}"),
            Query(resources.without_quota(), "no CPU quota"),
        ).max(1),
        "Throttling",
        "Share of a container's CPU periods in which its quota throttled it. The native engine has "
        "no quotas.",
        "percentunit",
        (6, 10),
    )
    page.add(
        place_legend_right(
            series(
                Query(resources.host_cpu(), "{{mode}}"),
                Query(resources.pressure("cpu"), "waited for CPU"),
                Query(resources.pressure("memory"), "waited for memory"),
                Query(resources.pressure("io"), "waited for disk"),
            )
        ),
        "Host CPU and pressure",
        "CPU time by mode from 0.5 % on, as a share of all CPUs; `steal` is time that the "
        "hypervisor gave to others. Where the kernel reports pressure: the share of time in "
        "which a process waited.",
        "percentunit",
        (12, 10),
    )

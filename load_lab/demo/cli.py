"""`lab demo`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from load_lab.options import Json, print_result


def demo(as_json: Json = False) -> None:
    """Start the stack and break it three ways (4 minutes).

    One page with nested serializers, with quick code, and behind the Nginx cache: each is loaded
    until it breaks. Ends with a table and a chart; the stack keeps running.
    """
    from load_lab.demo import wording
    from load_lab.demo.demo import run as run_demo
    from load_lab.settings import load_settings
    from load_lab.stack.choice import choose_engine
    from load_lab.stack.locks import require_no_measurement

    require_no_measurement()
    settings = load_settings()
    print_result(run_demo(choose_engine(settings), settings), as_json, wording.demo)

"""Whatever schemathesis makes of the schema: no 5xx, and no answer that it does not name."""

import os

from tests.support.schema_cases import OPERATIONS, try_cases

# For each operation; `make test-input` has enough for 16,000 cases.
EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "40"))


def test_every_answer_is_one_that_the_schema_names(stack, tmp_path, capsys):
    tried = try_cases(stack.settings().target_url, EXAMPLES, tmp_path)
    with capsys.disabled():
        print(f"\n{tried.table()}")
    assert tried.code == 0, tried.said
    assert tried.cases >= 2 * EXAMPLES
    # They have found what there is, too.
    for operation in OPERATIONS:
        assert any(f"{operation} 20{n}" in tried.seen for n in (0, 1)), tried.table()

"""Where settings come from."""

import pytest
from config import env


def test_a_settings_file_is_read_again_after_it_changed(tmp_path, monkeypatch):
    """A reload keeps Gunicorn's master, and with it this module, alive."""
    file = tmp_path / "settings.env"
    monkeypatch.setenv("BACKEND_SETTINGS_FILE", str(file))
    for workers in (3, 5):
        file.write_text(f"LAB_WORKERS={workers}\n")
        assert workers == env.lab_settings().LAB_WORKERS


def test_a_variable_that_is_not_set_is_named():
    with pytest.raises(env.EnvError, match="LAB_NONSENSE is not set"):
        env.text("LAB_NONSENSE")

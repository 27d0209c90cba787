"""Sources of the settings."""

import pytest
from config import env


def test_settings_file_is_read_again_after_a_change(tmp_path, monkeypatch):
    """Gunicorn's master process, and with it this module, survives a reload."""
    file = tmp_path / "settings.env"
    monkeypatch.setenv("BACKEND_SETTINGS_FILE", str(file))
    for workers in (3, 5):
        file.write_text(f"LAB_WORKERS={workers}\n")
        assert workers == env.lab_settings().LAB_WORKERS


def test_unset_variable_is_named_in_the_error():
    with pytest.raises(env.EnvError, match="LAB_NONSENSE is not set"):
        env.text("LAB_NONSENSE")

from __future__ import annotations

import pytest

HEAVY = ["ruamel.yaml", "pydantic", "platformdirs", "jsonschema_rs", "filelock"]

IMPORT = "import sys; import handrail.config.store"
LOAD = """import sys
from handrail.config.store import load_config
load_config(sys.argv[1], environ={'HANDRAIL_HOME': '/proc/nowhere'})"""


@pytest.mark.parametrize("code", [IMPORT, LOAD], ids=["importing", "loading without a file"])
def test_nothing_heavy_is_imported(start_python, path, code):
    process = start_python(f"{code}; print(sorted(set({HEAVY}) & set(sys.modules)))", path)
    output, errors = process.communicate(timeout=30)
    assert output.strip() == "[]", errors

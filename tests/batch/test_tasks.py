"""Files of tasks: what can be written, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.batch.tasks import read_tasks
from handrail.errors import InvalidArguments


def test_a_task_needs_only_a_prompt(tmp_path: Path) -> None:
    (path := tmp_path / "tasks").write_text('\n{"prompt": "go", "cwd": "/w", "environment": {"env": {"A": "1"}}}\n')
    (task,) = read_tasks(path)
    assert (task.id, task.prompt, task.environment) == ("2", "go", {"env": {"A": "1"}, "cwd": "/w"})
    assert task.limits.model_calls == 90


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"prompt": "go"}\n{"prompt": "go", "id": "1"}', "line 2: there is a task '1' already"),
        ('{"id": "a"}', "prompt: "),
        ('{"prompt": " "}', "prompt: "),
        ('{"prompt": "go", "id": "../x"}', "id: "),
        ('{"prompt": "go", "id": ".."}', "id: "),
        ('{"prompt": "go", "id": "."}', "id: "),
        ('{"prompt": "go", "keep": ["../x"]}', "keep.0: "),
        ('{"prompt": "go", "keep": ["/etc"]}', "keep.0: "),
        ('{"prompt": "go", "toolset": ["web"]}', "did you mean 'toolsets'"),
        ('{"prompt": "go", "limits": {"token": 5}}', "did you mean 'limits.tokens'"),
        ('{"prompt": "go", "limits": {"tokens": 0}}', "limits.tokens: "),
        ('{"prompt": "go", "files": {"a": 1.5, "b": []}}', "files.b: "),
        ('{"prompt": "go", "environment": "docker"}', "environment: "),
        ("[1]", "line 1"),
        ("{", "line 1"),
        ("", "has no tasks"),
    ],
)
def test_a_line_that_is_no_task_is_named(tmp_path: Path, line: str, what: str) -> None:
    (path := tmp_path / "tasks").write_text(line)
    with pytest.raises(InvalidArguments) as raised:
        list(read_tasks(path))
    assert what in str(raised.value)
    assert "\n" not in str(raised.value)

"""Files of tasks: what can be written, and what is said about the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handrail.batch.tasks import Task, read_tasks
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
        ('{"id": "a"}', "missing argument 'prompt'"),
        ('{"prompt": " "}', "'prompt': "),
        ('{"prompt": "go", "id": "../x"}', "'id': "),
        ('{"prompt": "go", "id": ".."}', "'id': "),
        ('{"prompt": "go", "id": "."}', "'id': "),
        ('{"prompt": "go", "keep": ["../x"]}', "'keep': "),
        ('{"prompt": "go", "keep": ["/etc"]}', "'keep': "),
        ('{"prompt": "go", "toolset": ["web"]}', "did you mean 'toolsets'"),
        ('{"prompt": "go", "limits": {"token": 5}}', "'limits.token'; did you mean 'tokens'"),
        ('{"prompt": "go", "limits": {"tokens": 0}}', "'limits.tokens': "),
        ('{"prompt": "go", "files": {"a": 1.5, "b": []}}', "'files.b': "),
        ('{"prompt": "go", "environment": "docker"}', "'environment': "),
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


def test_a_task_comes_back_from_the_ledger_as_it_was(tmp_path: Path) -> None:
    written = {"prompt": "go", "id": 7, "cwd": "/w", "toolsets": ["web"], "limits": {"cost": 0.5}, "files": {"a": "é"}}
    (path := tmp_path / "tasks").write_text(json.dumps({**written, "keep": ["a"], "data": [1, None]}))
    (task,) = read_tasks(path)
    assert (task.id, task.limits.cost, task.keep, task.data) == ("7", 0.5, ("a",), [1, None])
    assert Task.from_json(task.to_json()) == task

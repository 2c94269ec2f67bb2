"""Whatever the settings and however they are written, a change gives exactly what was asked for."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.config.config_file import ConfigFile, entry, inline, rewritten, same
from handrail.config.validation import checked, parse
from handrail.errors import ConfigError

quick = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

# What YAML could take for something else, beside any text that a file can hold.
TRICKY = [
    "null",
    "off",
    "12",
    "1e3",
    "~",
    "a: b",
    "a #b",
    "# a",
    "- a",
    "*a",
    "it's",
    '"',
    "\\",
    "a\nb",
    "\u2028",
    "😀",
    "<<",
    "",
]
texts = st.sampled_from(TRICKY) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = texts.filter(bool)
lists = st.lists(names, max_size=4)


def some_of(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


configurations = some_of(
    toolsets=st.dictionaries(names, some_of(description=texts, tools=lists, includes=lists), max_size=2),
    tools=some_of(enabled_toolsets=st.none() | lists, on_collision=st.sampled_from(["refuse", "replace"])),
    files=some_of(roots=lists, max_read_bytes=st.integers(1, 2**53)),
    calls=some_of(batch_timeout=st.floats(1e-9, 1e6) | st.integers(1, 1000), max_threads=st.integers(1, 9)),
    plugins=st.dictionaries(names, some_of(allow_override=st.booleans()), max_size=2),
    command_allowlist=lists,
)


@quick
@given(st.data())
def test_set_then_get_gives_the_value_back(data):
    key, values = data.draw(
        st.sampled_from(
            [
                ("files.roots", lists),
                ("toolsets.x.description", texts),
                ("calls.batch_timeout", st.floats(1e-9, 1e6)),
                ("plugins.p.allow_override", st.booleans()),
                ("tools.enabled_toolsets", st.none() | lists),
            ]
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        file = ConfigFile(Path(folder) / "config.yaml")
        for value in (data.draw(values), data.draw(values)):
            file.set(key, value)
            assert file.get(key) == value


@settings(quick, max_examples=150)
@given(configurations, configurations, st.booleans())
def test_any_settings_can_be_changed_into_any_others(old, new, in_brackets):
    text = inline(old) if in_brackets else "".join(entry(key, value, indent=0) for key, value in old.items())
    document = parse(text)
    assert same(checked(document), old)
    assert same(checked(parse(rewritten(document, old, new))), new)


def merged(old: Any, added: Any) -> Any:
    if isinstance(old, dict) and isinstance(added, dict):
        return {**old, **{key: merged(old.get(key), value) for key, value in added.items()}}
    return old + added if isinstance(old, list) and isinstance(added, list) else added


@quick
@given(configurations, configurations)
def test_a_change_that_removes_no_key_loses_no_comment(old, added):
    lines = "".join(entry(key, value, indent=0) for key, value in old.items()).splitlines()
    comments = [f"# comment {number}" for number in range(len(lines) + 1)]
    text = "\n".join([line for pair in zip(comments, [*lines, ""], strict=True) for line in pair])
    new = merged(old, added)
    changed = rewritten(parse(text), old, new)
    assert same(checked(parse(changed)), new)
    assert [line for line in changed.split("\n") if line in comments] == comments


PIECES = [*" \n\t:-?[]{},#&*!|>'\"%@`~a1", "files", ": ", "\n  ", "- ", "---\n", "!!int ", "\x00"]


@settings(quick, max_examples=300)
@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_text_of_any_kind_is_understood_or_refused_as_a_configuration_error(text):
    with contextlib.suppress(ConfigError):
        checked(parse(text, path="config.yaml"))

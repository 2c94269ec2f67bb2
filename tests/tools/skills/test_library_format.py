"""The SKILL.md format, as others write it and as they get it wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import SkillError
from handrail.tools.skills.library import parse

from .conftest import skill


def test_a_header_and_the_instructions_below_it() -> None:
    header, body = parse(
        "\ufeff---\r\nname: pdf-forms\r\ndescription: >\r\n  Fill in forms.\r\n  Use for PDFs.\r\nlicense: MIT\r\n"
        "compatibility: needs poppler\r\nallowed-tools: Read Bash(pdftk:*)\r\nmetadata:\r\n  version: 1.2\r\n---\r\n"
        "# Forms\r\nDo it.\r\n"
    )
    assert header.name == "pdf-forms"
    assert header.description == "Fill in forms. Use for PDFs."
    assert (header.compatibility, header.allowed_tools) == ("needs poppler", "Read Bash(pdftk:*)")
    assert body == "# Forms\nDo it."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must start with a header"),
        ("# A title\n", "must start with a header"),
        ("---\nname: a\ndescription: b\n", "does not end"),
        ("---\nname: a\n---\n", "needs a description"),
        ("---\nname: a\ndescription: ''\n---\n", "needs a description"),
        ("---\ndescription: b\n---\n", "not a name for a skill"),
        ("---\nname: a: b: c\ndescription: x\n---\n", "put quotes"),
        ("---\n- a\n---\n", "names with values"),
        ("---\nname: &a [*a]\ndescription: x\n---\n", "not a name for a skill"),
        (skill("a", description="x" * 1025), "1,025 characters"),
        (skill("a", "x" * 300_000), "move the details"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(SkillError, match=said):
        parse(text)


@pytest.mark.parametrize(
    "name", ["../evil", "a/b", "..", ".", "A", "a b", "-a", "a-", "a--b", "a_b", "x" * 65, "ä", "a\n", "a\\b"]
)
def test_a_name_that_could_be_a_path_or_is_not_of_the_format_is_refused(name: str) -> None:
    with pytest.raises(SkillError, match="not a name for a skill"):
        parse(f"---\nname: {json.dumps(name)}\ndescription: x\n---\n")


def test_a_header_made_to_grow_when_it_is_read_stays_small() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    header, _ = parse("---\nname: bomb\ndescription: x\n" + "\n".join(lines) + "\ncompatibility: *a11\n---\n")
    assert len(header.compatibility) <= 500


@given(st.one_of(st.text(max_size=200), st.text("-nameiption: \n|>&*[]{}'\"#!", max_size=80)))
def test_any_header_is_read_or_refused_and_nothing_else(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\n", f"---\nname: a\ndescription: b\n{text}\n---\n"):
        try:
            header, _ = parse(whole)
        except SkillError:
            continue
        assert header.name
        assert header.description


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("required_environment_variables: [A_KEY, {name: B_KEY, prompt: The key}]", ("A_KEY", "B_KEY")),
        ("prerequisites: {env_vars: [C_KEY]}", ("C_KEY",)),
        ("required_environment_variables: D_KEY", ("D_KEY",)),
        ("required_environment_variables: ['not a name', 7]", ()),
        ("license: MIT", ()),
    ],
)
def test_a_skill_declares_the_variables_that_it_needs(header: str, expected: tuple[str, ...]) -> None:
    assert parse(f"---\nname: a\ndescription: b\n{header}\n---\n")[0].variables == expected

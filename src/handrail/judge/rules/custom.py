"""Rules that users write in config.yaml, checked as strictly as the built-in ones.

A user's rule can only add a question or a refusal; it cannot replace a built-in rule. So a project's file, which may come
from anywhere, can be read by the same function: it can only tighten.
"""

import contextlib
import dataclasses
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ...base.suggest import nearest
from ...errors import ConfigError, RuleError
from ..values.assessment import Assessment, Severity
from ..values.word_values import Arg
from .command import Command
from .rulebook import Rule, Rulebook, builtin
from .usage import PatternError, Usage, compiled, programs

_FIELDS = ("severity", "why", "uses", "pattern", "match", "not_match", "spare")
_MAX_RULES = 500
_PLAIN = (
    "ls -la|git status|echo hello world|python3 -m pytest -q|make build|cat README.md|docker ps|npm run test".split("|")
)
_TOO_MANY = 3


class Assess(Protocol):
    """`handrail.judge.assess`, which judges each example whole. It is passed in, because it is built on the rules."""

    def __call__(self, command: str, /, *, rulebook: Rulebook) -> Assessment: ...


def configured(rules: Mapping[str, Any], more: Sequence[Rule] = (), *, assess: Assess) -> Rulebook:
    """The built-in rules with those of a configuration's `approval_rules`, and with `more` from plugins.

    Raises ConfigError, with the key of the rule that is to blame.
    """
    if not rules and not more:
        return builtin()
    try:
        return rulebook({rule_id: dataclasses.asdict(rule) for rule_id, rule in rules.items()}, more, assess=assess)
    except RuleError as error:
        raise ConfigError(str(error), key=f"approval_rules.{error.rule}".rstrip(".")) from None


def checked(rule: object, *, assess: Assess) -> Rule:
    """A plugin's rule, checked as strictly as a user's; raises RuleError."""
    if not isinstance(rule, Rule):
        raise RuleError(f"{rule!r} is not a rule; make a handrail.judge.Rule")
    _check(rule)
    _check_examples(rule, Rulebook((*builtin().rules.values(), rule)), assess)
    return rule


def rulebook(entries: Mapping[str, Mapping[str, Any]], more: Sequence[Rule] = (), *, assess: Assess) -> Rulebook:
    """The built-in rules and these; raises RuleError, which names the rule and says what to change.

    An entry's key is the rule's id. It has a `severity` (`ask` if not given), `why`, `uses` (usage patterns) or `pattern` (a
    regular expression for the words of the command line), and examples that it must `match` and must `not_match` (`spare` is
    an older name for that). `more` are rules that have been checked.
    """
    if len(entries) > _MAX_RULES:
        raise RuleError(f"{len(entries)} rules are too many; at most {_MAX_RULES}")
    rules = []
    for rule_id, entry in entries.items():
        with _about(rule_id):
            rules.append(_rule(rule_id, entry))
    taken = {rule.id for rule in rules}
    combined = Rulebook((*builtin().rules.values(), *rules, *(rule for rule in more if rule.id not in taken)))
    for rule in rules:
        with _about(rule.id):
            _check_examples(rule, combined, assess)
    return combined


@contextlib.contextmanager
def _about(rule_id: str) -> Iterator[None]:
    try:
        yield
    except RuleError as error:
        error.rule = rule_id
        raise


def _rule(rule_id: str, entry: Mapping[str, Any]) -> Rule:
    unknown = [field for field in entry if field not in _FIELDS]
    if unknown:
        hint = nearest(unknown[0], _FIELDS)
        raise RuleError(f"rule {rule_id!r}: unknown field {unknown[0]!r}{f'; did you mean {hint!r}?' if hint else ''}")
    severity = _severity(rule_id, entry.get("severity", Severity.ASK))
    why, pattern = str(entry.get("why", "")), str(entry.get("pattern", ""))
    uses, match, not_match, spare = (_texts(rule_id, name, entry) for name in ("uses", "match", "not_match", "spare"))
    rule = Rule(rule_id, severity, why, uses, match, not_match + spare, regex=pattern)
    _check(rule)
    return rule


def _check(rule: Rule) -> None:
    if rule.id in builtin().rules:
        raise RuleError(f"rule {rule.id!r}: this is the id of a built-in rule; choose another")
    if not rule.uses and not rule.regex:
        raise RuleError(f"rule {rule.id!r}: give it 'uses' or a 'pattern'")
    for use in rule.uses:
        try:
            Usage(use)
        except PatternError as error:
            raise RuleError(f"rule {rule.id!r}: {error}") from None
        if any(not program.strip("*?") for program in programs(use)):
            raise RuleError(f"rule {rule.id!r}: {use!r} is about every program; name one")
    if rule.regex:
        compiled(rule.id, rule.regex)
    alone = Rulebook((rule,))
    met = [text for text in _PLAIN if alone.findings(_command(text))]
    if len(met) >= _TOO_MANY:
        raise RuleError(f"rule {rule.id!r} would match nearly everything, such as {met[0]!r}")


def _severity(rule_id: str, text: object) -> Severity:
    try:
        return Severity(str(text))
    except ValueError:
        known = ", ".join(severity.value for severity in Severity)
        raise RuleError(f"rule {rule_id!r}: unknown severity {text!r}; known: {known}") from None


def _texts(rule_id: str, field: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    value = entry.get(field, ())
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else ()
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise RuleError(f"rule {rule_id!r}: '{field}' is a list of texts")
    return texts


def _command(text: str) -> Command:
    name, *args = shlex.split(text)
    return Command(name, [Arg(arg) for arg in args])


def _check_examples(rule: Rule, rulebook: Rulebook, assess: Assess) -> None:
    """Each example is judged whole, as a command would be."""
    for example in (*rule.match, *rule.not_match):
        found = any(finding.rule == rule.id for finding in assess(example, rulebook=rulebook).findings)
        if not found and example in rule.match:
            raise RuleError(f"rule {rule.id!r}: the example {example!r} is not matched by it")
        if found and example in rule.not_match:
            raise RuleError(f"rule {rule.id!r}: the example {example!r} is matched, and must not be")

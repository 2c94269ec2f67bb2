"""Recognise a destructive use of a program that nobody wrote rules for, by the words in sub-command position."""

from __future__ import annotations

import re

from .command import Command
from .data_programs import DATA_PROGRAMS

_STRONG = (
    "delete|destroy|purge|wipe|terminate|erase|nuke|drop|unpublish|obliterate|factory-?reset|"
    "deprovision|teardown|tear-down|decommission|"
    "shutdown|poweroff|power-off|reboot|halt|force-stop|force-delete|hard-reset|shred|trash|eradicate|"
    "annihilate|dropdb|drop-db|undeploy|"
    "terminate-all|unmount-all|umount-all|clean-all|rmi|rmtree|rmdir|remove-all|delete-all|kill-all|"
    "killall|wipe-all|stop-all|reset-all|"
    "publish|yank|formatdisk|mkfs|flushall|flush-all|truncate|uninstall|unregister|deregister|remove|"
    "rm|del|kill|stop|restart|reset|revoke|prune|flush|"
    "disable|evict|drain|suspend|abort|cancel|expunge|empty|discard|rollback|revert|force-push|unlink|"
    "unset|unload|undefine|deactivate|forget|clear|format|zap|eject|rmv|rem"
)
# What these words mean as the very first operand is clear; further in only the unmistakable ones count.
_FIRST = re.compile(rf"(?:{_STRONG})")
_LATER = re.compile(
    r"delete|destroy|purge|wipe|terminate|erase|nuke|drop|unpublish|obliterate|factory-?reset|teardown|"
    r"remove|rm|uninstall|unregister|"
    r"deregister|kill|stop|revoke|prune|reset|disable|del|shutdown|reboot|restart|flush|forget|clear|"
    r"undeploy|delete-all|remove-all|publish|poweroff|rollback|truncate"
)
_COMPOUND = re.compile(
    r"(?:delete|destroy|terminate|purge|wipe|erase|remove|drop|kill|uninstall|unregister|revoke|rm|del|"
    r"reset|clear|flush|stop)[-_:.][a-z0-9_.-]+|"
    r"[a-z0-9_.-]+[-_:.](?:delete|destroy|terminate|purge|wipe|erase|remove|drop|kill|uninstall|rm|del|"
    r"reset|flush|shutdown|reboot|stop|clear|prune)|"
    r"(?:remove|delete|destroy|uninstall|purge|wipe|erase)[a-z]{2,}(?<![drs])|[a-z]{2,}(?:delete|"
    r"remove|destroy|uninstall|(?<!p)reset|(?<!on)stop|kill)"
)
_OPTIONS = (
    "--delete --destroy --purge --wipe --erase --uninstall --kill --shutdown --reboot --poweroff "
    "--halt --factory-reset --nuke --terminate "
    "--remove --unregister --delete-all --remove-all --kill-all --stop --reset --reset-all "
    "--revoke --restart --clean-all "
    "--force-delete --overwrite-all --del --disable --format-disk --unpublish --publish --rollback --zap --unmount"
).split()
_OPTION_SET = frozenset((*_OPTIONS, *(option[1:] for option in _OPTIONS)))
_COMPOUND_OPTION = re.compile(
    r"--del(?!i|a|t|e|u)[a-z]+|--[a-z]+-and-(?:delete|purge|wipe)|--unpair|--?(?:delete|destroy|wipe|erase|purge|uninstall|terminate|kill|"
    r"drop)-(?!on|when|after|if|time|delay|timeout|policy|filter|level)[a-z-]+"
)
_NOUN = re.compile(r"[a-z][a-z0-9_.:/-]{0,30}|[0-9]{1,6}")
_NAME = re.compile(
    r".*[-_.](?:remove|delete|purge|uninstall)\w+|(?:.*[-_.])?(?:delete|destroy|purge|wipe|erase|"
    r"uninstall|shutdown|reboot|poweroff|killall|nuke|remove|rm|stop|kill|reset|umount|unmount|drop|"
    r"rmdir|restart|disable|disconnect|poweroff)(?:[-_.](?:all|force|sh|py|data|db|disk|fs))*"
)
_CMDLET = re.compile(
    r"(?:Remove|Stop|Clear|Disable|Uninstall|Reset|Restart|Format|Revoke|Suspend|Unregister|Unpublish)-[A-Z]\w+"
)
# After one of these words comes what it is about, not what is to be done.
_HARMLESS = frozenset(
    "info show list ls search find help view get describe status install add inspect explain display print query read create "
    "new run exec test build start edit cat log logs version check validate why what watch open import export upgrade update "
    "fetch".split()
)
_NEVER_BY_NAME = frozenset("rm rmdir stop kill unmount umount remove drop reset systemd-umount".split())


def destructive(command: Command, *, has_rules: bool) -> bool:
    """Whether its words say that something will be destroyed, removed or stopped: the first operands, an option, or the
    very name of a program that has no rules."""
    name = command.name
    if name in DATA_PROGRAMS or name.startswith("-"):
        return False
    operands = command.operands
    if not command.words.isdisjoint(_OPTION_SET):
        return True
    if operands and _by_words(command):
        return True
    if any(_COMPOUND_OPTION.fullmatch(word) for word in command.words if len(word) > 8):
        return True
    if has_rules or "/" in command.argv0:
        return False
    named = name not in _NEVER_BY_NAME and len(name) > 4 and _NAME.fullmatch(name) is not None
    return named or _CMDLET.fullmatch(name) is not None


def _by_words(command: Command) -> bool:
    operands, maybe = command.operands, command.maybe
    seen = 0
    for place, operand in enumerate(operands[:6]):
        if len(operand) > 40:
            return False
        if (_FIRST if seen == 0 else _LATER).fullmatch(operand) or (seen < 3 and _COMPOUND.fullmatch(operand)):
            return not (
                seen == 0
                and place in maybe
                and len(operands) == place + 1
                and operand in ("clear", "reset", "format", "empty")
            )
        if operand in _HARMLESS:
            return False
        if not _NOUN.fullmatch(operand) or "." in operand:
            if place in maybe:
                continue
            return False
        if place not in maybe:
            seen += 1
        if seen >= 3:
            return False
    return False

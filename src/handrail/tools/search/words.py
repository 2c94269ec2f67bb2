"""Turn text into words that can be compared: the parts of names, without endings, and with what means the same."""

from __future__ import annotations

import re
from functools import lru_cache

_WORDS = re.compile(r"[^\W_]+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_STOP = frozenset(
    "a about all an and any anything are as at be by can could did do does for from has have how i if in into is it "
    "its like me my of on or our should so some something that the their them then there these this to up us use used using "
    "want was we what when where which will with would you your tool tools please need".split()
)

# Words for the same thing. A word may be in several groups; a related word counts less than the word itself.
_GROUPS = """
delete remove erase destroy drop trash purge
create make add new insert generate
list show enumerate browse
get fetch read retrieve view load obtain lookup
update edit change modify patch set alter adjust
find search query locate lookup discover grep
send post deliver notify message
message chat dm text
run execute launch start invoke trigger
code script program python
background process daemon service
stop kill end terminate abort halt
cancel abort revoke
image picture photo screenshot drawing
draw paint sketch illustrate generate
press click tap button
form field input fill type
previous back before
mail email inbox
folder directory
file document attachment
issue ticket bug defect
repo repository project
calendar event meeting appointment schedule
weather forecast temperature
user person member account contact people
payment pay charge invoice bill billing money
price cost
refund reimburse
website site page web url link
web internet online google
command shell bash terminal console
speech voice audio speak say aloud loud tts sound
conversation session talk discuss discussion chat
light lamp bulb
database db sql table
log logs history
chart graph plot diagram
task todo reminder
remind reminder schedule
schedule cron recurring periodic
cron morning evening night noon
remember memory note forget
secret password credential token key
download save export
upload import
copy duplicate clone
move rename transfer
summary summarize digest
translate translation language
container docker pod
server machine host instance vm
error exception failure crash
metric metrics monitoring statistics stats
compare diff difference
comment reply answer respond
merge combine join
approve accept confirm
permission access role grant
ship shipment delivery package parcel
order purchase buy
customer client
deploy release rollout
branch fork
map route direction navigation
book reserve reservation
question ask clarify
model llm ai
agent helper child assistant delegate
skill know how howto instruction guide
device entity appliance
save store keep write disk
result output
train training rl reinforcement
"""


def words(text: str) -> list[str]:
    """The words of a text or a name, in order: `listOpenIssues` is list, open, issue."""
    found = (part for word in _WORDS.findall(text) for part in (_PARTS.findall(word) if word.isascii() else [word]))
    return [stem(part) for part in map(str.lower, found) if part not in _STOP]


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word without its ending: coarse, but the same for all forms of most words."""
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


_ENDINGS = (
    ("ations", "at"),
    ("ation", "at"),
    ("ments", "ment"),
    ("iness", "y"),
    ("ingly", ""),
    ("ies", "y"),
    ("ing", ""),
    ("ied", "y"),
    ("sses", "ss"),
    ("shes", "sh"),
    ("ches", "ch"),
    ("xes", "x"),
    ("ed", ""),
    ("ly", ""),
    ("ss", "ss"),
    ("us", "us"),
    ("is", "is"),
    ("s", ""),
)


def related(word: str) -> frozenset[str]:
    """Other words for the same thing."""
    return _related().get(word, frozenset())


@lru_cache(maxsize=1)
def _related() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _GROUPS.strip().splitlines():
        group = {stem(word) for word in line.split()}
        for word in group:
            found.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in found.items()}

"""Watch a scripted model use real tools on a small project.

No model and no key are needed. It works in a folder of its own, which is gone afterwards. At a terminal it shows
three scenes and waits for a key after each.

Examples:
  handrail demo
  handrail demo --all
"""

from typing import Annotated

from ..demo.show import play
from ..options import option

Everything = Annotated[bool, option("--all", "All scenes; without a terminal that is the default.")]


def demo(everything: Everything = False) -> None:
    play(everything=everything)

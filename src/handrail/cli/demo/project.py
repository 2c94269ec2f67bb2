"""The project that the demonstration works on: a shop whose discount has a bug."""

from __future__ import annotations

from pathlib import Path

ORDERS = 4000

_README = """\
# Shop

Prices and discounts of a small shop.
From 10 pieces on, an order is 10 % cheaper.

    python check.py             prints every order and its total
    python check.py --summary   only says how many are wrong
"""

_PRICES = """\
\"\"\"What things cost, in cents.\"\"\"

PRICES = {"apple": 40, "bread": 320, "cheese": 990}


def price_of(article: str) -> int:
    return PRICES[article]
"""

_ORDERS = """\
\"\"\"What an order costs.\"\"\"

from shop.prices import price_of

DISCOUNT_FROM = 10


def total(article: str, pieces: int) -> int:
    full = price_of(article) * pieces
    if pieces > DISCOUNT_FROM:
        return full * 90 // 100
    return full
"""

_CHECK = f"""\
import sys

from shop.orders import total
from shop.prices import PRICES

wrong = 0
for number in range(1, {ORDERS} + 1):
    article, pieces = list(PRICES)[number % 3], number % 17 + 1
    expected = PRICES[article] * pieces * (90 if pieces >= 10 else 100) // 100
    found = total(article, pieces)
    wrong += found != expected
    if "--summary" not in sys.argv:
        verdict = "ok" if found == expected else f"WRONG, expected {{expected}}"
        print(f"order {{number:04}}: {{pieces:2}} x {{article:6}} = {{found:5}} {{verdict}}")
print(f"{ORDERS} orders checked, {{wrong}} wrong")
sys.exit(wrong > 0)
"""

FILES = {"README.md": _README, "shop/prices.py": _PRICES, "shop/orders.py": _ORDERS, "check.py": _CHECK}


def create(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")

"""What is behind the tools for Home Assistant."""

from __future__ import annotations

HOW_TO = "make a long-lived access token in your Home Assistant profile and set it in the environment"

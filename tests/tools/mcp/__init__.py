"""Tests of handrail.tools.mcp."""

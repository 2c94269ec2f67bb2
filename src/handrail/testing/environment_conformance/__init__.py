"""One suite for every environment: what a backend promises, as checks that it passes or fails.

    from handrail.testing.environment_conformance import check_environment

    report = check_environment(lambda: MyEnvironment("box"))
    print(report)
    assert report.passed

With pytest each check is a test, and one environment is shared by those that leave it as it was:

    @pytest.fixture(scope="module")
    def subject():
        with Conformance(lambda: MyEnvironment("box")) as subject:
            yield subject

    @pytest.mark.parametrize("check", environment_checks(), ids=str)
    def test_my_environment(check, subject):
        subject.check(check)

What the checks run needs bash, coreutils, grep and /proc in the environment. A check that asks for more than a backend says it
can do is skipped: for pytest and unittest it raises `unittest.SkipTest`.
"""

from __future__ import annotations

from .check import Check, ConformanceFailure, NotApplicable
from .place import Place
from .suite import Conformance, Outcome, Report, Verdict, check_environment, environment_checks

__all__ = [
    "Check",
    "Conformance",
    "ConformanceFailure",
    "NotApplicable",
    "Outcome",
    "Place",
    "Report",
    "Verdict",
    "check_environment",
    "environment_checks",
]

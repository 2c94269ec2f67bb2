"""The conformance kit: what every environment promises, as checks that a backend passes or fails.

    from handrail.testing import check_environment

    report = check_environment(lambda: MyEnvironment("box"))
    print(report)
    assert report.passed

With pytest each check is a test, and those that leave the environment as it was share one:

    @pytest.fixture(scope="module")
    def subject():
        with Conformance(lambda: MyEnvironment("box")) as subject:
            yield subject

    @pytest.mark.parametrize("check", environment_checks(), ids=str)
    def test_my_environment(check, subject):
        subject.check(check)

The checks need bash, coreutils, grep and /proc in the environment. A check that needs more than a backend claims is skipped: for
pytest and unittest it raises `unittest.SkipTest`.
"""

from ...base.lazy_module import lazy_face

__getattr__, __dir__ = lazy_face(__name__, __file__)

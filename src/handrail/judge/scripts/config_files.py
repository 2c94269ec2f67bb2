"""Tools that run a file of the project as a program: which file, and in which language. A new tool is one line."""

from __future__ import annotations

_JS = "{js,cjs,mjs,ts}"

CONFIG_FILES: dict[str, tuple[str, str]] = {
    "ava": ("javascript", f"ava.config.{_JS}"),
    "babel": ("javascript", f"babel.config.{_JS} .babelrc.js"),
    "cypress": ("javascript", f"cypress.config.{_JS}"),
    "eslint": ("javascript", f"eslint.config.{_JS} .eslintrc.js .eslintrc.cjs"),
    "esbuild": ("javascript", ""),
    "fab": ("python", "fabfile.py"),
    "fastlane": ("ruby", "fastlane/Fastfile"),
    "gradle": ("groovy", "settings.gradle build.gradle settings.gradle.kts build.gradle.kts"),
    "gradlew": ("groovy", "settings.gradle build.gradle settings.gradle.kts build.gradle.kts"),
    "grunt": ("javascript", f"Gruntfile.{_JS}"),
    "guard": ("ruby", "Guardfile"),
    "gulp": ("javascript", f"gulpfile.{_JS}"),
    "invoke": ("python", "tasks.py tasks/__init__.py"),
    "inv": ("python", "tasks.py tasks/__init__.py"),
    "jake": ("javascript", f"Jakefile Jakefile.{_JS}"),
    "jest": ("javascript", f"jest.config.{_JS} jest.setup.{_JS}"),
    "karma": ("javascript", f"karma.conf.{_JS}"),
    "locust": ("python", "locustfile.py"),
    "mix": ("elixir", "mix.exs"),
    "mocha": ("javascript", f".mocharc.{_JS}"),
    "next": ("javascript", f"next.config.{_JS}"),
    "nox": ("python", "noxfile.py"),
    "playwright": ("javascript", f"playwright.config.{_JS}"),
    "rake": ("ruby", "Rakefile rakefile Rakefile.rb"),
    "rollup": ("javascript", f"rollup.config.{_JS}"),
    "rspec": ("ruby", "spec/spec_helper.rb"),
    "sbt": ("scala", "build.sbt"),
    "scons": ("python", "SConstruct SConscript"),
    "sphinx-build": ("python", "conf.py docs/conf.py doc/conf.py docs/source/conf.py"),
    "tsup": ("javascript", f"tsup.config.{_JS}"),
    "vagrant": ("ruby", "Vagrantfile"),
    "vite": ("javascript", f"vite.config.{_JS}"),
    "vitest": ("javascript", f"vitest.config.{_JS} vite.config.{_JS}"),
    "waf": ("python", "wscript"),
    "webpack": ("javascript", f"webpack.config.{_JS}"),
}
"""By program: the language, and the names of the files. Braces stand for one of several endings."""

TESTS: dict[str, tuple[str, str, str]] = {
    "jest": (
        "javascript",
        r".+\.(?:test|spec)\.[cm]?[jt]sx?|.*__tests__/.+\.[cm]?[jt]sx?",
        ". src test tests __tests__",
    ),
    "vitest": ("javascript", r".+\.(?:test|spec)\.[cm]?[jt]sx?", ". src test tests"),
    "mocha": ("javascript", r".+\.[cm]?[jt]s", "test spec"),
    "ava": ("javascript", r".+\.[cm]?[jt]s", "test tests"),
    "tape": ("javascript", r".+\.[cm]?[jt]s", "test tests"),
    "rspec": ("ruby", r".+_spec\.rb", "spec"),
    "phpunit": ("php", r".+Test\.php", "tests test"),
    "prove": ("perl", r".+\.t", "t"),
    "go": ("c", r".+\.go", "."),
    "cargo": ("c", r".+\.rs", ". src tests"),
}
"""Test runners: the language, which names are tests, and the folders that hold them."""


def spellings(names: str) -> list[str]:
    """The names, with one for each ending in braces."""
    found: list[str] = []
    for name in names.split():
        before, brace, rest = name.partition("{")
        endings, _, after = rest.partition("}")
        found += [f"{before}{end}{after}" for end in endings.split(",")] if brace else [name]
    return found

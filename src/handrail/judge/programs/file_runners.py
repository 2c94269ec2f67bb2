"""Programs that run what the project's files hold, apart from shells and interpreters. How each does it is known to the walk."""

from __future__ import annotations

FILE_RUNNERS = frozenset(
    "make gmake bmake npm yarn pnpm bun just task go-task tox poe pdm hatch rye poetry cmake ccmake meson composer mvn mvnw "
    "ant pre-commit pytest py.test pytest-3 unittest pip pip3 pipx uv build flit pyproject-build coverage kernprof scalene "
    "cargo go git ava babel cypress eslint esbuild fab fastlane gradle gradlew grunt guard gulp invoke inv jake jest karma "
    "locust mix mocha next nox playwright rake rollup rspec sbt scons sphinx-build tsup vagrant vite vitest waf webpack "
    "tape phpunit prove npm-run-all "
    "run-s run-p direnv".split()
)

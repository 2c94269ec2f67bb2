"""Each task has an environment of its own, made as was said, and closed when nobody needs it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail.environments.backend_table import Backends, EnvironmentSettings, resolve
from handrail.environments.errors import EnvironmentClosed, UnknownEnvironment
from handrail.environments.tasks import TaskEnvironments
from handrail.errors import Denied, InvalidArguments, ToolFailed
from handrail.settings.schema import Config
from handrail.settings.sections import FilesConfig, TerminalConfig
from handrail.types import Unavailable

from ..support import in_threads, wait_until
from .conftest import FramedEnvironment


class Elsewhere(FramedEnvironment):
    """A backend of another machine, as far as anyone can tell."""

    name = "elsewhere"
    shorthand = "host"
    made: list[tuple[dict[str, Any], str, str | None, dict[str, str]]] = []  # noqa: RUF012  emptied by the fixture

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], *, task_id: str, cwd: str | None, env: Mapping[str, str]
    ) -> Elsewhere:
        cls.made.append((dict(settings), task_id, cwd, dict(env)))
        return cls(cwd or "/", "")

    @staticmethod
    def check(settings: Mapping[str, Any]) -> Unavailable | None:
        return None

    @staticmethod
    def prune(dry_run: bool) -> list[str]:
        return []


@pytest.fixture
def backends() -> Backends:
    Elsewhere.made.clear()
    table = Backends()
    table.add(Elsewhere)  # type: ignore[arg-type]  the class is the backend
    return table


@pytest.fixture
def environments(work: Path, backends: Backends) -> Iterator[TaskEnvironments]:
    with TaskEnvironments(Config(terminal=TerminalConfig(cwd=str(work))), backends=backends) as made:
        yield made


def run(environments: TaskEnvironments, command: str, task_id: str | None = None) -> str:
    with environments.use(task_id) as environment:
        return environment.execute(command, timeout=30).output.head.decode()


class TestOpening:
    def test_tasks_do_not_share_their_state(self, environments: TaskEnvironments) -> None:
        run(environments, "x=1; cd /", "a")
        assert run(environments, "echo [$x]", "b") == "[]\n"
        assert run(environments, "echo [$x] $PWD", "a") == "[1] /\n"

    def test_no_task_is_a_task_of_its_own(self, environments: TaskEnvironments) -> None:
        run(environments, "x=1")
        assert run(environments, "echo $x", "default") == "1\n"
        assert environments.of(None) is environments.of("default")

    def test_threads_open_one_environment(self, environments: TaskEnvironments, restless_threads: None) -> None:
        opened = in_threads(16, lambda _: environments.of("t"))
        assert len({id(environment) for environment in opened}) == 1

    def test_one_task_that_opens_slowly_does_not_hold_up_the_others(
        self, environments: TaskEnvironments, backends: Backends, held: threading.Event
    ) -> None:
        class Slow(Elsewhere):
            name = "slow"

            @classmethod
            def from_settings(cls, settings: Any, **more: Any) -> Elsewhere:
                entered.set()
                held.wait(60)
                return super().from_settings(settings, **more)

        entered = threading.Event()
        backends.add(Slow)  # type: ignore[arg-type]
        environments.override("slow", {"backend": "slow"})
        opening = threading.Thread(target=lambda: environments.of("slow"))
        opening.start()
        assert entered.wait(60)
        assert run(environments, "echo here", "quick") == "here\n"
        held.set()
        opening.join(60)

    def test_nothing_is_opened_by_asking_about_it(self, environments: TaskEnvironments, work: Path) -> None:
        assert environments.peek("t") is None
        assert environments.cwd("t") == str(work)
        assert environments.settings("t").backend == "local"
        assert environments.has_host_paths("t")
        assert environments.peek("t") is None

    def test_an_unknown_backend_is_an_error_that_helps(self, backends: Backends) -> None:
        with (
            TaskEnvironments(Config(terminal=TerminalConfig(backend="elswhere")), backends=backends) as environments,
            pytest.raises(UnknownEnvironment, match="did you mean 'elsewhere'"),
        ):
            environments.of("t")

    def test_a_directory_of_the_process_that_is_gone_is_said(
        self, backends: Backends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gone = tmp_path / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        with TaskEnvironments(backends=backends) as environments, pytest.raises(ToolFailed, match=r"terminal\.cwd"):
            environments.of("t")


class TestSettings:
    def test_what_is_said_for_a_task_holds_for_that_task(self, environments: TaskEnvironments, tmp_path: Path) -> None:
        environments.override("t", {"cwd": str(tmp_path), "env": {"COLOUR": "red"}})
        assert run(environments, "echo $PWD $COLOUR", "t") == f"{tmp_path} red\n"
        assert run(environments, "echo [$COLOUR]", "other") == "[]\n"

    def test_another_backend_gets_its_settings_and_its_own_directory(self, environments: TaskEnvironments) -> None:
        environments.override("t", {"backend": "elsewhere", "image": "python:3.12", "memory": "2g"})
        environments.of("t")
        assert Elsewhere.made == [({"image": "python:3.12", "memory": "2g"}, "t", None, {})]
        assert environments.cwd("t") == ""

    def test_the_configuration_has_settings_for_each_backend(self, backends: Backends) -> None:
        config = Config(
            terminal=TerminalConfig(
                backend="elsewhere",
                cwd="/work",
                env={"A": "1", "B": "1"},
                backends={"elsewhere": {"image": "x", "memory": "1g"}, "local": {"sandbox": True}},
            )
        )
        with TaskEnvironments(config, backends=backends) as environments:
            environments.override("t", {"memory": "2g", "env": {"B": "2"}})
            settings = environments.settings("t")
        assert settings == EnvironmentSettings(
            "t", "elsewhere", "/work", {"A": "1", "B": "2"}, (), {"image": "x", "memory": "2g"}, settings.effects
        )

    def test_effects_can_be_switched_off_for_a_task(self, backends: Backends) -> None:
        with TaskEnvironments(Config(), backends=backends) as environments:
            usual = environments.settings("t").effects
            assert usual is not None
            assert usual["on_crash"] == "undo"
            environments.override("t", {"effects": False})
            assert environments.settings("t").effects is None

    def test_the_original_names_are_understood(self, environments: TaskEnvironments) -> None:
        environments.override("t", {"env_type": "elsewhere", "elsewhere_image": "x", "local_login": True})
        assert environments.settings("t").options == {"image": "x"}

    def test_a_name_after_a_colon_is_the_backends_most_important_setting(self, environments: TaskEnvironments) -> None:
        environments.override("t", {"backend": "elsewhere:user@host:22"})
        assert environments.settings("t").options == {"host": "user@host:22"}

    @pytest.mark.parametrize(("backend", "option"), [("ssh", "host"), ("docker", "image"), ("apptainer", "image")])
    def test_what_that_is_of_the_built_in_ones(self, backend: str, option: str) -> None:
        config = Config(terminal=TerminalConfig(backend=f"{backend}:some.name"))
        assert resolve("t", config, {}, Backends()).options == {option: "some.name"}

    def test_settings_make_the_same_environment_again_after_a_restart(
        self, environments: TaskEnvironments, tmp_path: Path
    ) -> None:
        environments.override("t", {"cwd": str(tmp_path), "env": {"A": "1"}, "login": False})
        kept = json.dumps(environments.settings("t")._asdict())
        again = environments.open(EnvironmentSettings(**json.loads(kept)))
        try:
            assert again.execute("echo $PWD $A").output.head.decode() == f"{tmp_path} 1\n"
        finally:
            again.close()

    def test_a_secret_that_is_allowed_is_given_by_name(
        self, environments: TaskEnvironments, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DEPLOY_TOKEN", "t0ken-of-the-test")
        assert run(environments, "echo [$DEPLOY_TOKEN]", "a") == "[]\n"
        environments.override("b", {"allowed_secrets": ["DEPLOY_TOKEN"]})
        assert run(environments, "echo [$DEPLOY_TOKEN]", "b") == "[t0ken-of-the-test]\n"
        assert "t0ken" not in json.dumps(environments.settings("b")._asdict())

    @pytest.mark.parametrize("env", [{"PORT": 8080}, {"PORT": None}, {"A B": "1"}, {"A": "\0"}])
    def test_variables_that_cannot_be_are_refused_and_trouble_no_task(
        self, environments: TaskEnvironments, env: dict[str, object]
    ) -> None:
        with pytest.raises(InvalidArguments):
            environments.override("t", {"env": env})
        assert environments.masker("text") == "text"
        assert run(environments, "echo fine", "t") == "fine\n"

    def test_other_settings_close_what_was_made_otherwise(self, environments: TaskEnvironments, tmp_path: Path) -> None:
        run(environments, "x=1", "t")
        before = environments.of("t")
        environments.override("t", {"cwd": str(tmp_path)})
        assert run(environments, "echo [$x] $PWD", "t") == f"[] {tmp_path}\n"
        with pytest.raises(EnvironmentClosed):
            before.execute("true")

    def test_the_same_settings_close_nothing(self, environments: TaskEnvironments, work: Path) -> None:
        run(environments, "x=1", "t")
        environments.override("t", {"cwd": str(work)})
        assert run(environments, "echo $x", "t") == "1\n"

    def test_clearing_lets_the_configuration_hold_again(self, environments: TaskEnvironments, work: Path) -> None:
        environments.override("t", {"cwd": "/"})
        environments.clear_overrides("t")
        assert environments.settings("t").cwd == str(work)

    @pytest.mark.parametrize(
        "overrides",
        [{"cwd": 1}, {"env": ["A=1"]}, {"backend": None}, {"mount": object()}, {"allowed_secrets": "TOKEN"}],
        ids=["cwd", "env", "backend", "mount", "allowed_secrets"],
    )
    def test_what_cannot_be_kept_is_refused(self, environments: TaskEnvironments, overrides: dict[str, Any]) -> None:
        with pytest.raises(InvalidArguments):
            environments.override("t", overrides)
        assert (
            environments.settings("t").options == resolve("t", environments.config, {}, environments.backends).options
        )

    def test_a_backend_that_is_not_known_changes_nothing(self, environments: TaskEnvironments) -> None:
        environments.override("t", {"cwd": "/"})
        with pytest.raises(UnknownEnvironment):
            environments.override("t", {"backend": "nowhere"})
        assert environments.settings("t").cwd == "/"

    def test_a_sandbox_can_be_had_for_one_task(self, environments: TaskEnvironments) -> None:
        environments.override("t", {"sandbox": True})
        assert environments.of("t").isolated
        assert not environments.of("u").isolated


class TestEnding:
    def test_closing_a_task_ends_its_shell_alone(self, environments: TaskEnvironments) -> None:
        run(environments, "x=1", "a")
        run(environments, "x=1", "b")
        environments.close("a")
        environments.close("never opened")
        assert run(environments, "echo [$x]", "a") == "[]\n"
        assert run(environments, "echo [$x]", "b") == "[1]\n"

    def test_closing_all_ends_all(self, environments: TaskEnvironments) -> None:
        opened = [environments.of(str(number)) for number in range(20)]
        for environment in opened:
            environment.start()
        environments.close_all()
        for environment in opened:
            with pytest.raises(EnvironmentClosed):
                environment.execute("true")

    def test_one_that_cannot_be_closed_does_not_keep_the_others_open(
        self, environments: TaskEnvironments, backends: Backends, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Stuck(Elsewhere):
            name = "stuck"

            def close(self) -> None:
                raise RuntimeError("the door is jammed")

        backends.add(Stuck)  # type: ignore[arg-type]
        environments.override("a", {"backend": "stuck"})
        environments.of("a")
        other = environments.of("b")
        other.start()
        environments.close_all()
        assert "the door is jammed" in caplog.text
        with pytest.raises(EnvironmentClosed):
            other.execute("true")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class TestIdle:
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def environments(self, work: Path, backends: Backends, clock: Clock) -> Iterator[TaskEnvironments]:
        config = Config(terminal=TerminalConfig(cwd=str(work), idle_seconds=600))
        with TaskEnvironments(config, backends=backends, clock=clock) as made:
            yield made

    def test_one_that_nobody_uses_is_closed_and_the_next_use_opens_another(
        self, environments: TaskEnvironments, clock: Clock
    ) -> None:
        run(environments, "x=1", "a")
        clock.now += 500
        run(environments, "x=1", "b")
        clock.now += 500
        environments.close_idle()
        assert environments.peek("a") is None
        assert environments.peek("b") is not None
        assert environments.idled("a")
        assert not environments.idled("a")
        assert run(environments, "echo [$x]", "a") == "[]\n"

    def test_not_while_a_command_runs(self, environments: TaskEnvironments, clock: Clock) -> None:
        with environments.use("t") as environment:
            clock.now += 5000
            environments.close_idle()
            assert environment.execute("echo still here").output.head == b"still here\n"
        environments.close_idle()
        assert environments.peek("t") is environment

    @pytest.mark.parametrize("command", ["sleep 4711 &", "{ sleep 4712; } & disown"])
    def test_not_while_a_command_has_left_something_running(
        self, environments: TaskEnvironments, clock: Clock, command: str
    ) -> None:
        run(environments, command, "t")
        clock.now += 5000
        environments.close_idle()
        assert environments.peek("t") is not None
        environment = environments.of("t")
        for left in environment.left_running():
            environment.adopt(left).kill()
        clock.now += 5000
        environments.close_idle()
        assert environments.peek("t") is None

    def test_not_while_a_background_process_runs(self, environments: TaskEnvironments, clock: Clock) -> None:
        with environments.use("t") as environment:
            process = environment.background("sleep 4713")
        clock.now += 5000
        environments.close_idle()
        assert environments.peek("t") is environment
        process.forget()
        clock.now += 5000
        environments.close_idle()
        assert environments.peek("t") is None

    def test_a_process_that_was_started_to_live_on_holds_nothing_open(
        self, environments: TaskEnvironments, clock: Clock
    ) -> None:
        with environments.use("t") as environment:
            environment.background("sleep 4714", survives=True)
        clock.now += 5000
        environments.close_idle()
        assert environments.peek("t") is None
        for process in environments.of("t").processes():
            process.forget()

    def test_a_timer_does_it(self, work: Path, backends: Backends) -> None:
        config = Config(terminal=TerminalConfig(cwd=str(work), idle_seconds=0.01))
        with TaskEnvironments(config, backends=backends) as environments:
            run(environments, "true", "t")
            wait_until(lambda: environments.peek("t") is None)
            wait_until(lambda: not [thread for thread in threading.enumerate() if thread.name == "handrail-idle"])


class TestFiles:
    def test_a_fresh_task_reads_files_without_a_shell(self, environments: TaskEnvironments, work: Path) -> None:
        (work / "a.txt").write_text("hello")
        before = len(os.listdir("/proc/self/fd"))
        files = environments.files("t")
        assert files.read("a.txt", max_bytes=100) == b"hello"
        assert files.host_path("a.txt") == str(work / "a.txt")
        assert len(os.listdir("/proc/self/fd")) <= before

    def test_relative_paths_begin_where_the_shell_is(self, environments: TaskEnvironments, work: Path) -> None:
        (work / "sub").mkdir()
        files = environments.files("t")
        run(environments, "cd sub", "t")
        files.write("b.txt", b"there")
        assert (work / "sub" / "b.txt").read_bytes() == b"there"

    def test_the_files_of_another_machine_are_its_own(self, environments: TaskEnvironments, work: Path) -> None:
        environments.override("t", {"backend": "elsewhere", "cwd": str(work)})
        files = environments.files("t")
        assert files.write("c.txt", b"data").size == 4
        assert files.host_path("c.txt") is None
        assert [entry.name for entry in files.entries(".")] == ["c.txt"]
        assert files.stat("c.txt") is not None
        assert files.resolve("c.txt") == str(work / "c.txt")
        assert files.max_read_bytes > 0
        files.remove("c.txt")
        assert list(work.iterdir()) == []

    @pytest.mark.parametrize("sandbox", [False, True])
    def test_the_roots_hold_the_file_tools_with_and_without_a_sandbox(
        self, work: Path, backends: Backends, sandbox: bool
    ) -> None:
        config = Config(
            files=FilesConfig(roots=(str(work),), max_read_bytes=5),
            terminal=TerminalConfig(cwd=str(work), backends={"local": {"sandbox": sandbox}}),
        )
        (work / "a.txt").write_text("inside and long")
        with TaskEnvironments(config, backends=backends) as environments:
            files = environments.files("t")
            assert files.read("a.txt", max_bytes=100) == b"insid"
            for outside in ("/etc/passwd", "../x"):
                with pytest.raises(Denied, match="outside of the allowed folders"):
                    files.stat(outside)


# What tools keep beside it


class Kept:
    def __init__(self) -> None:
        self.told: list[str] = []

    def close_task(self, task_id: str) -> None:
        self.told.append(task_id)

    def close(self) -> None:
        self.told.append("everything")


def test_what_a_tool_keeps_is_made_once_and_closed_with_its_task(environments: TaskEnvironments) -> None:
    kept = environments.companion(Kept, Kept)
    assert environments.companion(Kept, Kept) is kept
    environments.override("one", {"backend": "elsewhere"})
    environments.of("one")
    environments.override("one", {"backend": "elsewhere", "cwd": "/tmp"})  # another shell, but still the same task
    assert kept.told == []
    environments.close("one")
    environments.close(None)
    environments.close_all()
    assert kept.told == ["one", "default", "everything"]
    assert environments.companion(Kept, Kept) is not kept

"""Programs that run a command somewhere else, behind a sub-command: containers, clusters, environments of languages."""

from __future__ import annotations

from .wrapper_options import Container

_DOCKER = (
    "env user workdir name volume publish network entrypoint label mount platform file host "
    "hostname memory cpus env-file add-host device restart project-name gpus ulimit log-"
    "driver log-opt cap-add cap-drop security-opt context config pull dns ip link net pid "
    "uts ipc userns shm-size tmpfs volumes-from expose cidfile annotation runtime stop-"
    "signal stop-timeout sysctl group-add cgroupns profile index detach-keys log-level "
    "cpuset-cpus cpu-shares"
)
_DOCKER_LETTERS = "euwlvpfHmcha"
_KUBERNETES = (
    "container namespace context kubeconfig image target filename selector cluster user "
    "server token overrides env labels restart profile port pod-running-timeout"
)

CONTAINERS: dict[str, Container] = {
    "adb": Container("shell exec-out", "stHPL", operands=0),
    "apptainer": Container("exec run", "BHWS", "bind home pwd env overlay scratch workdir env-file", remote=False),
    "asdf": Container("exec", operands=0, remote=False),
    "aws": Container(
        "ecs/execute-command", words="command cluster task container region profile", operands=0, text="--command"
    ),
    "az": Container("container/exec", "gn", "exec-command name resource-group", 0, text="--exec-command"),
    "bolt": Container("command/run", "tnio", "targets run-as inventoryfile", 0),
    "buildah": Container("run unshare=0", "v", "volume mount env user workingdir network"),
    "bundle": Container("exec", words="gemfile", operands=0, remote=False),
    "cabal": Container("exec", operands=0, remote=False),
    "cargo": Container("watch", "xswi", "exec shell watch ignore", 99, text="-s --shell", remote=False),
    "colima": Container("ssh", "p", "profile", 0),
    "conda": Container("run", "np", "name prefix cwd", 0, remote=False),
    "crictl": Container("exec", "r", "runtime-endpoint"),
    "devbox": Container("run", "c", "config", 0, remote=False),
    "direnv": Container("exec", remote=False),
    "distrobox": Container("enter", "na", "name additional-flags", 0, remote=False),
    "docker": Container(
        "exec run create compose/exec compose/run container/exec container/run container/create",
        _DOCKER_LETTERS,
        _DOCKER,
    ),
    "docker-compose": Container("exec run", _DOCKER_LETTERS, _DOCKER),
    "doppler": Container("run", "pc", "project config command", 0, text="--command", remote=False),
    "finch": Container("exec run", _DOCKER_LETTERS, _DOCKER),
    "flatpak": Container("run", words="command cwd branch filesystem env", remote=False),
    "flatpak-spawn": Container("", words="env directory", operands=0, remote=False),
    "fly": Container("ssh/console machine/exec", "aCgr", "app command group region", 0, text="-C --command"),
    "flyctl": Container("ssh/console machine/exec", "aCgr", "app command group region", 0, text="-C --command"),
    "foreman": Container("run", "efp", "env", 0, remote=False),
    "gcloud": Container("compute/ssh", words="command zone project account configuration", text="--command"),
    "git": Container("submodule/foreach bisect/run", "Cc", "git-dir work-tree namespace exec-path", 0, remote=False),
    "hatch": Container("run", "ep", "env project", 0, remote=False),
    "heroku": Container("run run:detached", "aers", "app remote size env", 0),
    "honcho": Container("run", "ef", "env", 0, remote=False),
    "incus": Container("exec", words="env mode cwd user group"),
    "infisical": Container("run", words="env path projectId command", operands=0, text="--command", remote=False),
    "ip": Container("netns/exec vrf/exec", "n", "netns", remote=False),
    "k": Container("exec run debug", "cnfls", _KUBERNETES),
    "k3s": Container("kubectl/exec kubectl/run", "cnfls", _KUBERNETES),
    "knife": Container(
        "ssh", "xPiaAgGpmC", "ssh-user ssh-password identity-file attribute concurrency ssh-port manual-list"
    ),
    "kubecolor": Container("exec run debug", "cnfls", _KUBERNETES),
    "kubectl": Container("exec run debug", "cnfls", _KUBERNETES),
    "lerna": Container("exec", words="scope ignore concurrency", operands=0, remote=False),
    "lima": Container("", operands=0),
    "limactl": Container("shell", words="workdir shell"),
    "lxc": Container("exec", words="env mode cwd user group"),
    "lxc-attach": Container("", "nPsfguLvol", "name lxcpath namespaces", 0),
    "lxc-execute": Container("", "nfPs", "name", 0),
    "machinectl": Container("shell", "EM", "uid setenv machine"),
    "mamba": Container("run", "np", "name prefix", 0, remote=False),
    "microk8s": Container("kubectl/exec", "cnfls", _KUBERNETES),
    "micromamba": Container("run", "np", "name prefix root-prefix", 0, remote=False),
    "mise": Container("exec x", "CjE", "cd env", 0, text="-c --command", remote=False),
    "mpiexec": Container("", "nf", "np host hosts", 0, remote=False),
    "mpirun": Container("", "nxH", "np host hostfile wdir bind-to map-by", 0, remote=False),
    "multipass": Container("exec", "nd", "working-directory name"),
    "nerdctl": Container("exec run compose/exec compose/run", _DOCKER_LETTERS, _DOCKER),
    "nix-shell": Container("", "pIA", "run command", 99, text="--run --command", remote=False),
    "nomad": Container("alloc/exec exec", "i", "task job namespace region address"),
    "npm": Container("exec x", "wcp", "workspace call package", 0, text="-c --call", remote=False),
    "nvm": Container("exec", remote=False),
    "nx": Container("exec", words="project projects", operands=0, remote=False),
    "oc": Container("exec rsh run debug", "cnfls", _KUBERNETES),
    "op": Container("run", words="env-file account", operands=0, remote=False),
    "opam": Container("exec", words="switch", operands=0, remote=False),
    "pdm": Container("run", "p", "project", 0, remote=False),
    "pipenv": Container("run", words="python", operands=0, remote=False),
    "pnpm": Container("exec dlx", "C", "dir filter package", 0, remote=False),
    "pct": Container("exec"),
    "podman": Container(
        "unshare=0 exec run create compose/exec compose/run container/exec container/run container/create",
        _DOCKER_LETTERS,
        _DOCKER,
    ),
    "poetry": Container("run", "CP", "directory project", 0, remote=False),
    "prlctl": Container("exec", words="user password"),
    "pyenv": Container("exec", operands=0, remote=False),
    "qm": Container("guest/exec", words="timeout synchronous"),
    "railway": Container("run", "se", "service environment", 0, remote=False),
    "rbenv": Container("exec", operands=0, remote=False),
    "render": Container("ssh"),
    "rye": Container("run", operands=0, remote=False),
    "salloc": Container("", "NncpAtGJ", "nodes ntasks partition account time", 0, remote=False),
    "singularity": Container("exec run", "BHWS", "bind home pwd env overlay scratch workdir env-file", remote=False),
    "sops": Container("exec-env", remote=False),
    "spack": Container("build-env", remote=False),
    "srun": Container(
        "",
        "NncpAtGJDoew",
        ("nodes ntasks cpus-per-task partition account time gres job-name chdir output mem nodelist"),
        0,
        remote=False,
    ),
    "stack": Container("exec", operands=0, remote=False),
    "teller": Container("run", "c", "config", 0, remote=False),
    "toolbox": Container("run", "cdr", "container distro release", 0, remote=False),
    "torchrun": Container("", words="nproc_per_node nnodes master_port", operands=99, remote=False),
    "uv": Container(
        "run tool/run",
        "p",
        "python with with-requirements project directory env-file extra group package index-url",
        0,
        remote=False,
    ),
    "vagrant": Container("ssh", "c", "command", text="-c --command"),
    "vzctl": Container("exec exec2"),
    "wsl": Container("", "du", "distribution user cd", 0, remote=False),
    "yarn": Container("exec dlx", "p", "package cwd", 0, remote=False),
    "perf": Container("stat record trace", "eorxCptIGFcmN", "event output repeat", 0, remote=False),
    "aws-vault": Container("exec", "d", "duration", 1, remote=False),
    "chamber": Container("exec", "", "", 1, remote=False),
}

REMOTE: dict[str, tuple[str, int]] = {
    "autossh": ("BbcDEeFIiJLlmMOopQRSWw", 1),
    "clush": ("wxgofl", 0),
    "dsh": ("mgrMFf", 0),
    "et": ("pcj", 1),
    "mosh": ("pP", 1),
    "parallel-ssh": ("hHlptoexAO", 0),
    "pdsh": ("wxluft", 0),
    "pssh": ("hHlptoexAO", 0),
    "rsh": ("l", 1),
    "slogin": ("BbcDEeFIiJLlmOopQRSWw", 1),
    "ssh": ("BbcDEeFIiJLlmOopQRSWw", 1),
    "tsh": ("", 1),
}
"""Programs that pass their words to a shell on another machine: options with a value, operands before the words."""

PACKAGE_RUNNERS = frozenset(("npx", "bunx", "pnpx", "uvx", "pipx"))
"""They run a package by its name."""

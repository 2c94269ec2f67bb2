"""Programs whose output is made to be evaluated: `eval "$(ssh-agent -s)"`, `source <(kubectl completion bash)`."""

from __future__ import annotations

import re
from collections.abc import Sequence

_COMPLETING = frozenset(
    "poetry pip pip3 gh kubectl helm npm rustup uv vault hub minikube kind k3d kustomize flux argocd istioctl oc doctl stern "
    "glab docker podman cosign talosctl op ng deno pnpm yarn just task chezmoi eksctl velero tilt skaffold".split()
)
_INITIALISING = "pyenv rbenv nodenv goenv jenv plenv tfenv zoxide starship mcfly atuin oh-my-posh thefuck navi fasd"
# A name alone would be a hole: the arguments have to be those that print shell text.
_ARGUMENTS = {
    "ssh-agent": r"|-[sc]\b.*",
    "direnv": r"(hook|export)\b.*",
    "brew": r"shellenv\b.*",
    "conda": r"shell[. ].*",
    "mamba": r"shell[. ].*",
    "micromamba": r"shell[. ].*",
    "dircolors": r".*",
    "lesspipe": r".*",
    "fnm": r"env\b.*",
    "mise": r"(activate|env|hook-env)\b.*",
    "rtx": r"(activate|env|hook-env)\b.*",
    "opam": r"(config )?env\b.*",
    "luarocks": r"path\b.*",
    "docker-machine": r"env\b.*",
    "minikube": r"(-p \S+ )?(docker-env|podman-env|completion)\b.*",
    "keychain": r".*--eval.*",
    "fzf": r"--(bash|zsh)",
    "register-python-argcomplete": r".*",
    "resize": r".*",
    "tset": r".*",
    "xdg-user-dir": r".*",
    "gpg-agent": r".*--daemon.*",
    "gnome-keyring-daemon": r".*--start.*",
    "aws": r"configure export-credentials\b.*",
    "guix": r"(package|shell) --search-paths\b.*",
    "getopt": r".*",
    **dict.fromkeys(_INITIALISING.split(), r"|init\b.*|--alias.*"),
}
_COMPLETION = r"(.* )?completions?\b.*"
ENV_SCRIPT_PRINTERS = frozenset((*_ARGUMENTS, *_COMPLETING))


def prints_env_script(name: str, args: Sequence[str]) -> bool:
    pattern = _ARGUMENTS.get(name)
    if pattern is not None and re.fullmatch(pattern, " ".join(args)):
        return True
    return name in _COMPLETING and re.fullmatch(_COMPLETION, " ".join(args)) is not None

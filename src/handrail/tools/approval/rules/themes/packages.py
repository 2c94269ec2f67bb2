"""Packages: removing them from the system; a project's own dependencies are only noted."""

from __future__ import annotations

from ..model import ASK, NOTE, Rule

RULES = (
    Rule(
        "pkg.remove",
        ASK,
        "removes packages from the system, or replaces the whole system",
        uses=(
            "apt-get|aptitude|nala|apt-fast remove|purge|autoremove|autopurge|dist-upgrade|full-upgrade|"
            "full-remove|downgrade !-s|--simulate|--dry-run|--just-print|--no-act|--recon",
            "apt-mark hold|unhold|auto|manual",
            "apt-key add|del|adv",
            "add-apt-repository|apt-add-repository|add-repo|ppa-purge|dnf-config-manager +",
            "dnf remove|erase|autoremove|downgrade|distro-sync|system-upgrade|swap|offline-upgrade|rm",
            "zypper remove|rm|dup|dist-upgrade|removerepo|rr|purge-kernels|addlock|al|addrepo|ar !-D|--dry-run",
            "pacman {pacman-removes} !-p|--print",
            "yay -Yc|-Ycc",
            "eclean-kernel|vkpurge|purge-old-kernels|package-cleanup",
            "yaourt|yay|paru|pamac|trizen|pikaur|aura|pacaur {pacman-removes}",
            "pamac remove|clean",
            "dpkg -P|-r|--purge|--remove|--force-*|--clear-selections",
            "rpm -e|--erase|--rebuilddb|--nodeps|--force|--import",
            "snap remove|disable|revert",
            "flatpak uninstall|remove|remote-delete",
            "apk del",
            "emerge -C|--unmerge|-c|--depclean|--prune|-P !-p|--pretend",
            "equo|sbopkg|slackpkg|removepkg|slapt-get|upgradepkg|installpkg|swupd|eopkg|cards|prt-get|cave|"
            "urpme|rpm-ostree remove|rm|erase|uninstall|unmerge|bundle-remove|rmf|autoremove|clean-system",
            "removepkg|urpme|pkg_delete|pkgrm|pkg_deinstall|xbps-remove|opkg-remove",
            "xbps-remove -R|-o|-O|-F",
            "dnf history undo|rollback|redo",
            "dnf module|group|groups remove|disable|reset|erase",
            "pkg|pkgin|opkg|tlmgr|port|fink|pkgutil|xbps|nix-env|guix|ipkg|slackpkg|sorcery remove|delete|"
            "autoremove|uninstall|rm|unlink|--forget|--remove|-e|--uninstall|--delete-generations|--rollback|"
            "rar|clean",
            "nix-env -e|--uninstall|--delete-generations|--rollback",
            "nix-collect-garbage -d|--delete-old|--delete-older-than",
            "nix store|profile|registry gc|delete|remove|wipe-history|rollback",
            "nix-store --gc|--delete",
            "guix remove|gc|pull|package|delete-generations -d|-D|--delete-generations|--roll-back|-r",
            "guix remove",
            "brew uninstall|remove|rm|untap|autoremove|cleanup|zap !-n|--dry-run",
            "brew bundle cleanup --force|-f",
            "port uninstall|reclaim|deactivate",
            "mas uninstall|purchase",
            "winget|choco|scoop|cinst|cuninst uninstall|remove|rm|reset|unhold|cleanup",
            "dism|pkgmgr|wusa {any:/remove*|/uninstall|/disable-feature|/cleanup*|/up:*}",
            "Uninstall-Package|Uninstall-Module|Remove-AppxPackage|Uninstall-WindowsFeature|Remove-WindowsFeature +",
            "softwareupdate --clear-catalog|--set-catalog|--schedule",
            "opkg|entware|synopkg remove|uninstall|stop",
            "dpkg-divert|dpkg-statoverride --remove|--add",
            "alien|rpm2cpio|checkinstall -i|--install",
            "uninstall|uninstall.sh|deinstall",
            "toolforge|spack|easybuild|eb|lmod|module uninstall|purge|gc|restore|unload",
            "spack uninstall|gc|remove|clean -a|--all|-y",
            "spack uninstall|gc",
            "juliaup|rustup|ghcup|sdk|sdkman|asdf|mise|rtx|nvm|fnm|volta|pyenv|rbenv|nodenv|goenv|jenv|tfenv|"
            "tgenv|phpenv|phpbrew|rvm|g|n|nodebrew|conda|mamba|micromamba|pixi|uv|pipx|rye|proto|vfox|gvm|"
            "swiftenv|kerl|evm|opam|stack|cabal|"
            "elan|luaver|dvm|fvm|jabba|coursier|cs|krew|arkade|bin|eget|ubi|zvm|zigup|xcodes|xcversion "
            "uninstall|remove|rm|implode|purge|nuke|prune|gc|delete",
            "rustup self uninstall",
            "rustup toolchain|target|component|override uninstall|remove|unset",
            "conda|mamba|micromamba remove|uninstall|clean !-d|--dry-run",
            "conda|mamba|micromamba env remove",
            "opam switch|remove|pin|repository remove|set-base",
            "opam remove|uninstall",
        ),
        match=(
            "apt-get purge -y x",
            "pacman -Rns x",
            "apt remove nginx",
            "dnf -y remove httpd",
            "rpm -e x",
            "dpkg -P x",
            "brew uninstall node",
            "conda env remove -n x",
            "snap remove x",
            "xbps-remove -R x",
        ),
        spare=(
            "apt list",
            "dpkg -l",
            "apt-get install -y jq",
            "apt-get -s remove nginx",
            "pacman -Q",
            "brew install jq",
            "dnf list installed",
            "rpm -qa",
            "brew cleanup -n",
            "conda env list",
            "rustup show",
            "snap list",
            "dnf history list",
        ),
    ),
    Rule(
        "pkg.project",
        NOTE,
        "removes dependencies of the project",
        uses=(
            "pip|npm|pnpm|yarn|bun|gem|cargo|go|composer|poetry|pdm|pipenv uninstall|remove|rm|un",
            "uv pip uninstall",
            "uv remove",
        ),
        match=("pip uninstall -y requests", "npm uninstall lodash"),
        spare=("pip install requests", "npm install"),
    ),
)

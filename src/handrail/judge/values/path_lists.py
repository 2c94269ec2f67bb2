"""Lists of paths that matter: system directories, key files, files that run by themselves, devices."""

from __future__ import annotations

import re

SYSTEM_TOP = frozenset(
    "bin boot dev etc lib lib32 lib64 libx32 opt proc root run sbin srv sys usr var home mnt media nix snap "
    "System Library Applications Users Volumes private selinux".split()
)
# Below the top level, and as bad to lose as a top-level directory.
SYSTEM_ROOTS = frozenset(
    "/usr/bin /usr/sbin /usr/lib /usr/lib32 /usr/lib64 /usr/libexec /usr/share /usr/local /usr/include "
    "/var/lib /var/spool "
    "/var/backups /lib/modules /boot/efi /boot/grub /etc/systemd /lib/systemd /usr/lib/systemd /System/Library "
    "/private/etc /private/var /var/lib/dpkg /etc/ssh /etc/pam.d".split()
)
TEMP = ("/tmp", "/var/tmp", "/dev/shm", "/private/tmp")
CONFIG = re.compile(r"/(?:etc|boot|bin|sbin|lib\w*|usr(?!/local(?:/|$)|/src(?:/|$))|System|Library|private/etc)(?:/|$)")
# A program of this name, put before the system's own in PATH, runs instead of it.
SHADOWING = re.compile(
    r"/usr/local/s?bin/(?:sudo|su|doas|ssh|scp|sshd|login|passwd|ls|cat|ps|top|rm|cp|mv|sh|bash|zsh|env|grep|find|sed|awk|"
    r"curl|wget|git|gpg|systemctl|service|mount|chmod|chown|kill|id|who|w|netstat|ss|apt|apt-get|dnf|yum|crontab|python3?)"
    r"|.*/s?bin/handrail"
)
STARTUP_DIRS = tuple(
    (
        "/etc/profile /etc/bash.bashrc /etc/bashrc /etc/zsh /etc/environment /etc/cron /etc/anacrontab "
        "/etc/at. /etc/rc /etc/init /etc/systemd "
        "/lib/systemd /usr/lib/systemd /run/systemd/system /usr/local/lib/systemd /var/spool/cron "
        "/var/spool/at /etc/ld.so.preload /etc/pam.d "
        "/etc/xdg/autostart /etc/X11/Xsession /etc/update-motd.d /etc/udev/rules.d /etc/NetworkManager/dispatcher.d "
        "/etc/network/if- /etc/modules /etc/ld.so.conf /etc/sudoers /etc/doas.conf /Library/LaunchAgents "
        "/Library/LaunchDaemons "
        "/Library/StartupItems /etc/apt/apt.conf.d /etc/logrotate.d /etc/inittab /etc/local.d"
    ).split()
)
CREDENTIALS = tuple(
    (
        "/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d/* "
        "/etc/master.passwd /etc/security/opasswd "
        "/etc/ssh/ssh_host_*_key /etc/krb5.keytab /etc/ppp/*-secrets /etc/wireguard/*.conf "
        "/etc/NetworkManager/system-connections/* "
        "/etc/ssl/private/* /etc/letsencrypt/live/*/privkey.pem /etc/kubernetes/admin.conf /etc/rancher/k3s/k3s.yaml "
        "/var/lib/kubelet/config.yaml /var/lib/kubelet/kubeconfig /var/lib/kubelet/pki/* /etc/kubernetes/pki/* /proc/*/environ "
        "/proc/*/mem /var/run/secrets/* /run/secrets/* /etc/shadow.bak /var/backups/shadow* "
        "/var/lib/sss/db/* /etc/pki/tls/private/* ~/.ssh ~/.ssh/id_* ~/.ssh/*.pem ~/.ssh/*_rsa "
        "~/.ssh/*_ed25519 ~/.ssh/*.key ~/.ssh/identity "
        "~/.aws ~/.aws/credentials ~/.aws/cli/cache/* ~/.aws/sso/cache/* ~/.config/gcloud "
        "~/.config/gcloud/* ~/.azure ~/.azure/* ~/.kube ~/.kube/config "
        "~/.docker ~/.docker/config.json ~/.netrc ~/_netrc ~/.pgpass ~/.my.cnf ~/.mylogin.cnf ~/.git-credentials "
        "~/.config/git/credentials ~/.npmrc "
        "~/.yarnrc.yml ~/.pypirc ~/.gnupg ~/.gnupg/* ~/.config/gh ~/.config/gh/hosts.yml "
        "~/.config/glab-cli/config.yml ~/.config/hub ~/.password-store ~/.password-store/* "
        "~/.vault-token ~/.config/rclone/rclone.conf ~/.rclone.conf ~/.cargo/credentials* "
        "~/.gem/credentials ~/.terraformrc ~/.terraform.d/credentials* "
        "~/.mozilla/firefox/*/logins.json ~/.mozilla/firefox/*/key4.db ~/.mozilla/firefox/*/cookies.sqlite "
        "~/.thunderbird/*/logins.json "
        "~/.config/*/*/Login?Data ~/.config/*/*/Cookies ~/.config/*/*/*/Login?Data ~/.config/*/*/*/Cookies "
        "/etc/wpa_supplicant/*.conf /etc/mysql/debian.cnf /etc/postfix/sasl_passwd* /etc/exim4/passwd.client "
        "/etc/gitlab/gitlab-secrets.json /var/lib/jenkins/secrets/* /etc/openvpn/*.key /etc/ipsec.secrets "
        "/var/lib/tor/*/*secret* /etc/cups/ssl/*.key "
        "~/.msmtprc ~/.fetchmailrc ~/.purple/accounts.xml ~/.config/filezilla/*.xml ~/.composer/auth.json "
        "~/.config/composer/auth.json ~/.config/stripe/config.toml ~/.config/ngrok/ngrok.yml ~/.config/netlify/config.json "
        "~/.local/share/com.vercel.cli/auth.json ~/.config/github-copilot/* ~/.claude/.credentials.json ~/.codex/auth.json "
        "~/.gemini/oauth_creds.json ~/.pulumi/credentials.json ~/.config/scw/config.yaml ~/.config/linode-cli "
        "~/.vultr-cli.yaml ~/.wakatime.cfg ~/.config/op/config ~/.config/rbw/* ~/.local/share/kwalletd/* "
        "~/Library/Keychains ~/Library/Keychains/* ~/.local/share/keyrings ~/.local/share/keyrings/* "
        "~/.config/op/* ~/.config/Bitwarden*/* "
        "~/.config/doctl/config.yaml ~/.config/hcloud/cli.toml ~/.config/heroku/* ~/.fly/config.yml "
        "~/.databrickscfg ~/.snowsql/config ~/.oci/config ~/.oci/*.pem "
        "~/.config/configstore/*.json ~/.m2/settings.xml ~/.gradle/gradle.properties "
        "~/.nuget/NuGet/NuGet.Config ~/.config/sops/age/keys.txt "
        "~/.config/age/* ~/.age/* ~/.bitcoin/wallet.dat ~/.ethereum/keystore/* ~/.electrum/wallets/* "
        "~/.config/solana/id.json ~/.s3cfg ~/.boto ~/.passwd-s3fs "
        "~/.Xauthority ~/.ICEauthority ~/.config/anthropic/* ~/.config/openai/* ~/.huggingface/token "
        "~/.cache/huggingface/token ~/.kaggle/kaggle.json ~/.smbcredentials ~/.authinfo* ~/.config/gopass/* "
        "/vault/file/* /vault/keys* /var/lib/vault/* /opt/vault/data/* /etc/vault*/*.key /etc/openvpn/*auth* /etc/openvpn/*pass* "
        "/dev/input/event* /dev/mem /dev/kmem /proc/kcore"
    ).split()
)
CREDENTIAL_NAMES = tuple(
    (
        "id_rsa id_dsa id_ecdsa id_ed25519 .env .env.* *.env *.pem *.keytab *.kdbx *.p12 *.pfx *.jks "
        "credentials.json service-account*.json "
        "serviceaccount*.json .netrc .pgpass .git-credentials .htpasswd secrets.yml secrets.yaml "
        "secrets.json master.key kubeconfig *.key *.keys unseal*"
    ).split()
)
HARMLESS_NAMES = re.compile(
    r"\.env\.(example|sample|template|dist|test|ci)|cacert\.pem|cert\.pem|.*\bpub(lic)?\b.*\.pem|"
    r"fullchain\.pem|chain\.pem"
)
STARTUP = tuple(
    (
        "~/.local/bin/handrail ~/bin/handrail "
        "~/.bashrc ~/.bash_profile ~/.bash_login ~/.bash_logout ~/.bash_aliases ~/.profile ~/.zshrc "
        "~/.zshenv ~/.zprofile ~/.zlogin ~/.zlogout ~/.kshrc "
        "~/.cshrc ~/.tcshrc ~/.login ~/.config/fish/* ~/.xinitrc ~/.xprofile ~/.xsession ~/.xsessionrc "
        "~/.config/autostart/* ~/.config/systemd/* "
        "~/.local/share/systemd/* ~/Library/LaunchAgents/* ~/.ssh/authorized_keys* ~/.ssh/rc ~/.ssh/config "
        "~/.ssh/environment ~/.gitconfig "
        "~/.config/git/config ~/.vimrc ~/.vim/plugin/* ~/.config/nvim/* ~/.emacs ~/.emacs.d/init.el "
        "~/.pam_environment ~/.inputrc ~/.forward ~/.procmailrc "
        "~/.pythonrc* ~/.npmrc ~/.config/pip/pip.conf ~/.pip/pip.conf ~/.pypirc ~/.curlrc ~/.wgetrc "
        "~/.gdbinit ~/.lldbinit ~/.tmux.conf ~/.screenrc ~/.config/environment.d/* "
        "~/.config/plasma-workspace/* ~/.config/hypr/* ~/.config/sway/* ~/.config/i3/* ~/.irbrc "
        "~/.Rprofile ~/.local/bin/sudo ~/.local/lib/python*/site-packages/*customize.py ~/.local/lib/python*/site-packages/*.pth"
    ).split()
)
HISTORY = tuple(
    (
        "~/.bash_history ~/.zsh_history ~/.zhistory ~/.history ~/.sh_history ~/.ash_history ~/.ksh_history "
        "~/.local/share/fish/fish_history ~/.python_history ~/.node_repl_history "
        "~/.mysql_history ~/.psql_history ~/.sqlite_history ~/.rediscli_history ~/.dbshell ~/.irb_history "
        "~/.lesshst ~/.viminfo ~/.mongosh/mongosh_repl_history"
    ).split()
)
OWN = tuple(
    (
        "~/.config/handrail ~/.config/handrail/* ~/.local/state/handrail ~/.local/state/handrail/* "
        "~/.local/share/handrail ~/.local/share/handrail/* ~/Library/Application?Support/handrail "
        "~/Library/Application?Support/handrail/* */.handrail/config.yaml"
    ).split()
)
DATA_NAMES = tuple(
    (
        "*.db *.sqlite *.sqlite3 *.db3 *.mdb *.accdb *.duckdb *.rdb *.dbf *.ibd ibdata1 *.myd *.frm *.kdbx *.mdf *.ldf "
        "*.qcow2 *.vmdk *.vdi *.vhd *.vhdx"
    ).split()
)
# A terminal of its own that a program asks for (`/dev/tty`, `/dev/ptmx`) is not among them, nor is a serial port.
TERMINAL = re.compile(r"/dev/(?:pts/.+|tty\d+|console|vcs[au]?\d*|tty[p-za-e][0-9a-f])")
BLOCK_DEVICE = re.compile(
    r"/dev/(?:fd\d|[shv]d[a-zX*?\[{]|xvd|nvme|mmcblk|dm-|md\d|md/|loop|r?disk\d|disk/|mapper/|vg\w*/|sr\d|"
    r"nbd|zd|zvol/|bcache|drbd|pmem|mtd|"
    r"mem$|kmem|port$|ada\d|da\d|root$|[*?]|s[*?]|sg\d|cciss/|rbd|\ue000)"
)
HARMLESS_DEVICE = re.compile(
    r"/dev/(?:null|zero|full|tty|stdout|stderr|stdin|fd|u?random|pts|ptmx|shm|console|tcp|udp|dsp|"
    r"audio|usb|input|video|snd|serial|ttyS|kvm|net)"
)

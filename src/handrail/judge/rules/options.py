"""How programs read their options: which take a value, which are written with one dash, and other names of a program."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

# Other names of a program, and programs that take the same commands.
_SAME = {
    "docker": "podman nerdctl docker.exe finch",
    "kubectl": "oc k kubectl.exe microk8s.kubectl",
    "terraform": "tofu opentofu",
    "mysql": "mariadb mycli",
    "psql": "pgcli",
    "redis-cli": "valkey-cli keydb-cli iredis",
    "mongosh": "mongo",
    "python": "python3 python2 pypy pypy3 ipython",
    "pip": "pip3 pip2",
    "node": "nodejs",
    "iptables": "ip6tables iptables-nft iptables-legacy ip6tables-nft ip6tables-legacy",
    "iptables-restore": "ip6tables-restore",
    "find": "gfind",
    "sed": "gsed",
    "rm": "grm",
    "mv": "gmv",
    "cp": "gcp",
    "chmod": "gchmod",
    "chown": "gchown",
    "dd": "gdd dcfldd dc3dd",
    "shred": "gshred",
    "tar": "gtar bsdtar",
    "awk": "gawk mawk nawk",
    "grep": "egrep fgrep zgrep ggrep",
    "make": "gmake",
    "vim": "vi nvim view gvim ex vimx",
    "apt-get": "apt",
    "dnf": "yum dnf5 microdnf tdnf",
    "fd": "fdfind",
    "bat": "batcat",
    "netcat": "nc ncat nc.openbsd nc.traditional",
    "flyctl": "fly",
    "serverless": "sls",
    "VBoxManage": "vboxmanage",
    "incus": "lxc",
    "gpg": "gpg2",
    "http": "https xh xhs",
    "gradle": "gradlew",
    "mvn": "mvnw",
    "kafka-topics": "kafka-topics.sh",
    "clickhouse-client": "clickhouse",
    "trino": "presto",
    "shutdown": "shutdown.exe",
    "borg": "borgmatic",
    "powershell": "pwsh powershell.exe",
}
_CANONICAL = {name: family for family, names in _SAME.items() for name in names.split()}
_VERSIONED = re.compile(
    r"(python|pip|pypy|ruby|perl|php|lua|node|psql|pg_ctl|clang|gcc|kubectl|go|java|gem)-?\d+(?:\.\d+)*"
)

# Options that take a value as their next argument: letters and long names. A leading `=` says that long options are
# never abbreviated; `-` that options have one dash (`-delete`) and letters are never combined; `!` that the list is
# complete, so that no other option takes a value.
_VALUES = {
    "adb": "s t H P L",
    "ansible": "i m a u l f e t inventory module-name args user limit forks extra-vars become-user private-key",
    "apachectl": "!k f D c C d e E",
    "apt-get": "o c t a option config-file target-release host-architecture",
    "awk": "!F v f",
    "aws": "=profile region output endpoint-url query sql method desired-count desired-capacity max-size "
    "min-size min-capacity",
    "az": "subscription output resource-group name n g o query ids vault-name",
    "bq": "project_id location dataset_id format",
    "cargo": "Z manifest-path target-dir registry token version vers index color config",
    "cat": "!",
    "chage": "d E I m M R W lastday expiredate inactive mindays maxdays root warndays",
    "chgrp": "!reference",
    "chmod": "!reference",
    "chown": "!reference from",
    "chsh": "!s R shell root",
    "clickhouse-client": "=h u d q host port user password database query queries-file",
    "cp": "!t S target-directory suffix",
    "cpio": "D F I O H E R directory file format owner",
    "crontab": "!u",
    "csplit": "f b n prefix suffix-format digits",
    "cryptsetup": "c h s l d S type cipher key-size hash key-file keyfile-size key-slot header uuid label iter-time "
    "pbkdf",
    "curl": "X d H F T o u A e b w x m K E c D r t z C y Y U Q request data header form upload-file output "
    "user data-binary "
    "data-raw data-urlencode data-ascii url url-query json cookie cookie-jar referer user-agent proxy "
    "max-time connect-timeout "
    "retry retry-delay cert key cacert capath resolve interface limit-rate range config form-string "
    "netrc-file output-dir "
    "write-out unix-socket continue-at stderr trace",
    "dd": "!",
    "pv": "!o L B s D d i w H N F S A R P output",
    "dnf": "c x enablerepo disablerepo repo setopt releasever installroot config exclude",
    "docker": "=H l host context config log-level tlscacert tlscert tlskey file project-name project-directory "
    "profile env-file "
    "filter name network volume env publish user workdir entrypoint mount label hostname device "
    "platform format tag signal pid "
    "ipc userns cap-add security-opt",
    "dpkg": "root admindir instdir",
    "efibootmgr": "!o c d l L p n t w e E i x bootorder disk loader label part bootnext timeout",
    "etcdctl": "=endpoints cacert cert key user",
    "find": "-!",
    "firebase": "P project token config only",
    "flyctl": "a c o r app config org region",
    "fuser": "!n namespace",
    "gcloud": "=project account configuration zone region format filter impersonate-service-account verbosity",
    "gh": "=R X F H q f repo field header method jq template raw-field hostname input body title notes "
    "target visibility label",
    "git": "!C c git-dir work-tree namespace exec-path super-prefix config-env",
    "glab": "R F X f repo field method group",
    "gpasswd": "a d A M Q add delete administrators members root",
    "gpg": "=u r o homedir default-key recipient local-user output passphrase passphrase-file keyring "
    "keyserver pinentry-mode",
    "grep": "!e f m A B C d D regexp file max-count after-context before-context context include exclude "
    "exclude-dir exclude-from",
    "gsutil": "!o h i u",
    "hcloud": "=context config",
    "helm": "=n f namespace kube-context kubeconfig values set version timeout repo set-string",
    "heroku": "a r app remote confirm team",
    "hg": "R m r repository message rev cwd config",
    "http": "a o auth output session verify cert cert-key timeout proxy auth-type print style pretty",
    "install": "!m o g t S mode owner group target-directory suffix",
    "ip": "!f n B family netns batch rcvbuf",
    "iptables": "!t s d j p i o m w table source destination jump protocol in-interface out-interface match dport "
    "sport",
    "java": "-!cp classpath jar",
    "jj": "R r m repository revision message at-operation config",
    "journalctl": "!u t p S U o b n D M g c unit lines since until output vacuum-size vacuum-time vacuum-files boot "
    "directory file "
    "machine identifier priority grep cursor user-unit",
    "kafka-topics": "=bootstrap-server zookeeper topic command-config partitions replication-factor config",
    "kill": "!s n signal timeout q",
    "killall": "!s u n o y Z signal user older-than younger-than ns context",
    "kubectl": "=n f l c o s k context kubeconfig namespace cluster user server token filename selector output as "
    "as-group "
    "field-selector container replicas grace-period timeout kustomize type patch",
    "ln": "!t S target-directory suffix",
    "ls": "!I w T ignore width",
    "lvresize": "!L l n size extents name",
    "make": "!C f I j l o W directory file makefile jobs include-dir old-file what-if",
    "mkdir": "!m Z mode context",
    "mke2fs": "!b C d E g G i I J L m M N o O r t T U e",
    "mkfs": "!t type",
    "mongorestore": "=h d c u p uri host port db collection archive username password nsInclude nsFrom nsTo",
    "mongosh": "=u p host port username password authenticationDatabase eval file",
    "mount": "!o t L U O options types",
    "nsenter": "t S G target",
    "mv": "!t S target-directory suffix",
    "mvn": "f P s D pl file activate-profiles settings projects",
    "mysql": "!u h P D e S user host port database execute socket defaults-file defaults-extra-file "
    "default-character-set ssl-ca "
    "protocol login-path",
    "mysqladmin": "u h P S user host port socket defaults-file defaults-extra-file",
    "mysqldump": "u h P S r user host port socket result-file",
    "nginx": "!s c g p e",
    "nmcli": "f m g c w fields mode get-values colors wait",
    "npm": "prefix registry tag otp access loglevel workspace w cache userconfig globalconfig scope before",
    "nvme": "=n s l namespace-id ses lbaf",
    "openssl": "-!in out pass passin passout key cert CAfile connect inkey k kfile iv K S md days subj config "
    "extensions",
    "pacman": "b r dbpath root config cachedir arch ignore",
    "parted": "!a align",
    "passwd": "n x w i R r mindays maxdays warndays inactive root repository",
    "pg_ctl": "!D m o l p t U N P pgdata mode log timeout options",
    "pip": "i f r c e t d w cache-dir index-url extra-index-url find-links",
    "pkill": "!s g G P t u U F O signal pgroup group parent terminal euid uid pidfile older ns nslist session",
    "pnpm": "C F filter dir registry tag otp",
    "psql": "c d f h p U v o L P F R T command dbname file host port username set variable output pset "
    "log-file field-separator",
    "pulumi": "=s C stack cwd config-file color",
    "rabbitmqctl": "n p t node vhost timeout",
    "redis-cli": "=h p s a n u i r t d D user pass uri host socket cert key cacert",
    "restic": "=r p H repo password-file password-command cache-dir tag host keep-last keep-daily keep-weekly "
    "keep-monthly path",
    "rg": "e f g t T m A B C j M regexp file glob type type-not max-count after-context before-context context",
    "rm": "!",
    "rmdir": "!",
    "rpm": "root dbpath define",
    "rsync": "=!e f B M T rsh exclude include exclude-from include-from filter rsync-path files-from backup-dir "
    "suffix password-file "
    "port log-file bwlimit max-size min-size timeout chmod chown temp-dir partial-dir compare-dest "
    "link-dest out-format max-delete",
    "scp": "!i F P o c l S J D",
    "screen": "!S p c h e T t",
    "script": "c I O B E m T o command",
    "sed": "!e f l s expression file line-length",
    "sftp": "!i F P o c l S J B b D",
    "shred": "!n s iterations size random-source",
    "split": "!a b C l n t",
    "sqlcmd": "!S U P d Q q i o s h v",
    "sqlite3": "-cmd separator init newline nullvalue vfs",
    "ssh-keygen": "!a b C c D E F f I i J j K m N n O P R r s t V w Y Z z",
    "ssh": "!i F p l o c b e m D I J L O Q R S W w E B",
    "su": "!c s g G w command shell group supp-group whitelist-environment",
    "supabase": "project-ref db-url workdir",
    "supervisorctl": "!c s u p configuration serverurl username password",
    "systemctl": "=!H M t p s n o P host machine type property signal lines output root state job-mode kill-whom "
    "kill-who what when",
    "tar": "!C f X T I b g H K L N V directory file exclude exclude-from files-from use-compress-program transform "
    "strip-components owner group mode mtime level listed-incremental newer checkpoint-action to-command",
    "tee": "!",
    "terraform": "-chdir target var var-file state replace lock-timeout parallelism out backup",
    "tmux": "!L S f c t n s x y",
    "touch": "!d r t date reference time",
    "truncate": "!s r o size reference",
    "ufw": "!",
    "umount": "!t O types test-opts",
    "unzip": "!d P x",
    "useradd": "b c d e f g G k K p s u R groups gid home-dir shell comment password uid expiredate inactive",
    "usermod": "c d e f g G l p s u R groups gid home shell login comment password uid expiredate",
    "uv": "=project directory index-url token t publish-url",
    "vault": "=-address namespace ns ca-cert client-cert client-key field format mount version versions",
    "VBoxManage": "-!",
    "vercel": "t S A token scope local-config cwd",
    "wget": "O o a U P e B t T w Q i D A R I X l output-document output-file directory-prefix post-file "
    "post-data body-file "
    "body-data method header user-agent tries timeout input-file user password ca-certificate certificate private-key",
    "wrangler": "c e config env command file",
    "xargs": "!",
    "yarn": "cwd registry tag new-version",
    "zfs": "!o t d s",
    "zip": "!b t n i x P s O",
    "zpool": "!o O t R m d c T",
}


class ValueOptions(NamedTuple):
    letters: frozenset[str]
    longs: frozenset[str]
    exact: bool
    """Long options are never abbreviated."""
    wordy: bool
    """Options have one dash and many letters; letters are never combined."""
    flags: bool
    """No other option takes a value."""


class _ShortHelp(NamedTuple):
    always: frozenset[str]
    """Programs whose `-h` prints help in any position."""
    never: frozenset[str]
    """Programs whose `-h` means something else even as the only argument."""


SHORT_HELP = _ShortHelp(
    frozenset(
        "docker docker-compose kubectl helm git gh glab cargo npm pnpm yarn terraform systemctl flyctl "
        "vercel wrangler poetry uv "
        "hatch twine pulumi minikube kind k3d eksctl argocd flux restic borg rclone multipass virsh "
        "vagrant incus ufw firewall-cmd "
        "doctl hcloud conda mamba nomad consul vault etcdctl velero skaffold az gcloud ansible ansible-playbook".split()
    ),
    frozenset("shutdown halt poweroff reboot history".split()),
)
IGNORES_HELP = frozenset("k3s-uninstall.sh k3s-agent-uninstall.sh rke2-uninstall.sh history kexec telinit".split())
_NONE = ValueOptions(frozenset(), frozenset(), exact=False, wordy=False, flags=False)


def canonical(name: str) -> str:
    """The family of a program: `podman` takes `docker`'s commands, `python3.12` is `python`."""
    if name in _CANONICAL:
        return _CANONICAL[name]
    if name[-1:].isdigit() and (match := _VERSIONED.fullmatch(name)):
        return _CANONICAL.get(match[1], match[1])
    if name.endswith(".exe"):
        return canonical(name[:-4])
    return name


@functools.cache
def _table(name: str) -> ValueOptions:
    text = _VALUES[name]
    marks = text[: len(text) - len(text.lstrip("=-!"))]
    options = text[len(marks) :].split()
    return ValueOptions(
        letters=frozenset(option for option in options if len(option) == 1),
        longs=frozenset(option for option in options if len(option) > 1),
        exact="=" in marks or "-" in marks,
        wordy="-" in marks,
        flags="!" in marks,
    )


def value_options(name: str) -> ValueOptions:
    return _table(name) if name in _VALUES else _NONE

"""Commands to be respelled, written for this: each only calls programs that the sandbox replaces."""

from __future__ import annotations

DANGEROUS = (
    "rm -rf /srv/data",
    "rm -r -f ~",
    "sudo rm -rf /var/lib/mysql",
    "dd if=/dev/zero of=/dev/sda bs=1M",
    "mkfs.ext4 -F /dev/sdb1",
    "chgrp -R users /etc",
    "chown -R nobody /usr",
    "git push --force origin main",
    "git reset --hard HEAD~3",
    "git clean -fdx",
    "systemctl stop sshd",
    "shutdown -h now",
    "pkill -9 -u root",
    "iptables -F",
    "userdel -r alice",
    "crontab -r",
    "terraform destroy -auto-approve",
    "kubectl delete namespace production",
    "docker system prune -af --volumes",
    "psql -c 'DROP TABLE users'",
    "npm publish --access public",
    "aws s3 rb s3://bucket --force",
    "shred -u secrets.db",
    "cd /srv && rm -rf ./*",
    "ls; rm -rf /opt/app; pwd",
    'rm -rf "/srv/old data"',
)
HARMLESS = (
    "ls -la src",
    "git status --short",
    "git commit -m 'rm -rf / is bad'",
    "grep -rn 'rm -rf' docs",
    "docker ps -a",
    "npm test",
    "pytest -q tests/unit",
    "kubectl get pods -n dev",
    "terraform plan -out plan.bin",
    "make -j4 all",
    "cargo build --release",
    "systemctl status nginx",
    "rm build/output.o",
    "wc -l README.md; du -sh .",
    'touch "a b.txt" && mv "a b.txt" notes.txt',
)


def program_names() -> list[str]:
    """Every program that may be called."""
    words = {word.strip("\"'();") for row in (*DANGEROUS, *HARMLESS) for word in row.split()}
    return sorted(
        word for word in words if word.replace(".", "").replace("-", "").isalnum() and not word.startswith("-")
    )

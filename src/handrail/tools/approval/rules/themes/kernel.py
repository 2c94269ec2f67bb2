"""The kernel, security modules, boot loader and firmware."""

from __future__ import annotations

from ..model import ASK, Rule

RULES = (
    Rule(
        "kernel.module",
        ASK,
        "loads or removes kernel modules, or changes kernel switches",
        uses=(
            "rmmod|insmod|kldunload|kldload|kextunload|kextload|kmutil +",
            "modprobe -r|--remove",
            "modprobe !-n|--dry-run|--show|-c|--showconfig|-D|--show-depends|-R|-V|--show-modversions +",
            "kmod unload|load|insert|remove|rmmod|insmod",
            "sysctl -w|--write|-p|--load|--system|-f",
            "sysctl {any:*=*}",
            "dkms remove|uninstall|add|install|build|unbuild|autoinstall",
            "akmods|weak-modules|depmod --force|--remove-modules|--add-kernel",
            "kpatch|klp|kcarectl|livepatch unload|uninstall|load|--unload|disable|install",
            "bpftool ... pin|attach|detach|load|delete",
            "bpftrace|stap -c|--unsafe",
            "zramctl|zramswap -r|--reset|stop|-f",
            "wrmsr|setpci|memtester|devmem|devmem2|busybox-devmem|outb|outw|ioport +",
            "i2cset|i2ctransfer|gpioset|spi-config +2",
        ),
        match=("rmmod ext4", "insmod x.ko", "modprobe -r kvm", "sysctl -w a=1", "sysctl kernel.modules_disabled=1"),
        spare=("modprobe -n x", "sysctl -a", "sysctl net.ipv4.ip_forward", "lsmod", "modinfo ext4", "dkms status"),
    ),
    Rule(
        "kernel.security",
        ASK,
        "weakens or changes what protects the system",
        uses=(
            "setenforce 0|Permissive|permissive|1|Enforcing",
            "auditctl -e|-D|-d|-a|-A|-w|-W|-R|-b|-f|-r|--reset-lost|-i",
            "aa-teardown|aa-disable|aa-complain|aa-enforce|aa-audit|aa-remove-unknown|aa-unconfined",
            "apparmor_parser -R|-r|-a|-C|--remove|--replace|--add|--Complain|+",
            "apparmor_parser +",
            "csrutil disable|enable|authenticated-root|clear|netboot",
            "spctl --master-disable|--global-disable|--disable|--add|--remove|--enable|--reset-default|disable|"
            "kext-consent|developer-mode",
            "fdesetup disable|enable|remove|changerecovery|removerecovery|authrestart",
            "tccutil reset",
            "xattr -d|-c|-r|-cr|-dr",
            "manage-bde|Disable-BitLocker -off|-disable|-protectors|-lock|-unlock|-forcerecovery",
            "Set-MpPreference|Add-MpPreference|Remove-MpPreference|Set-ExecutionPolicy|"
            "Disable-WindowsOptionalFeature +",
            "Set-MpPreference -DisableRealtimeMonitoring",
            "mokutil --disable-validation|--delete|--import|--reset|--enable-validation|--password|--set-*|--ignore-db",
            "sbctl remove-*|reset|enroll-keys|rotate-keys|sign|create-keys|import-keys",
            "tpm2_clear|tpm_clear|tpm2_evictcontrol|tpm2_changeauth|tpm2_nvundefine|tpm2_dictionarylockout|"
            "tpm2_nvwrite",
            "clevis luks ... unbind|bind|regen",
            "systemd-cryptenroll --wipe-slot|--password|--recovery-key|--tpm2-device",
            "usbguard allow-device|block-device|reject-device|remove-rule|set-parameter|append-rule",
            "firejail|firecfg --shutdown|--clean",
            "firecfg --clean",
            "semodule -r|-d|-i|-B|-u|--remove|--disable",
            "chkrootkit|rkhunter|aide|tripwire {any:--propupd|--update|-u|--init|--update-policy|-i}",
            "crowdsec|cscli ... delete|remove|flush|disable|purge",
            "falconctl|mdatp|wazuh-control|osqueryctl|auditd|ossec-control|sentinelctl|cbagentd|freshclam "
            "{any:stop|uninstall|-d|unload|disable|exclusion|config|remove|unprotect}",
            "snort|suricatasc {any:shutdown|reload-rules}",
            "grsecurity|gradm -D|-d",
            "update-crypto-policies --set",
            "fips-mode-setup --enable|--disable",
        ),
        match=(
            "setenforce 0",
            "auditctl -e 0",
            "auditctl -D",
            "aa-teardown",
            "csrutil disable",
            "spctl --master-disable",
        ),
        spare=(
            "auditctl -l",
            "auditctl -s",
            "getenforce",
            "aa-status",
            "csrutil status",
            "spctl --status",
            "sestatus",
            "xattr -l a",
        ),
    ),
    Rule(
        "kernel.boot",
        ASK,
        "changes how the machine starts, or its firmware",
        uses=(
            "grub-install|grub2-install|update-grub|update-grub2|grub-set-default|grub2-set-default|"
            "grub-reboot|grub2-reboot|lilo|extlinux|syslinux|refind-install|update-bootloader|zipl",
            "grub-mkconfig|grub2-mkconfig -o|--output",
            "grub-editenv|grub2-editenv * set|unset|create",
            "grubby --remove-kernel|--set-default*|--args|--remove-args|--update-kernel|--add-kernel",
            "efivar -w|--write|-a|--append|-p",
            "bootctl install|update|remove|set-default|set-oneshot|set-timeout|unlink|cleanup|"
            "reboot-to-firmware|random-seed|kernel-*",
            "efibootmgr -b|-B|-o|-c|-n|-O|-N|-D|-a|-A|-t|-T|--delete-bootnum|--bootorder|--create|--bootnext|"
            "--active|--inactive|--remove-dups",
            "dracut|mkinitcpio|mkinitrd|update-initramfs|booster|genkernel|kernel-install|installkernel|"
            "limine-install|limine-update",
            "kexec -l|-p|-u|--load|--unload",
            "fwupdmgr update|install|downgrade|reinstall|clear-*|activate|disable-remote|enable-remote|"
            "modify-*|switch-branch|unlock|local-install|set-bios-setting|block-firmware",
            "fwupdtool install|update|reinstall|detach|install-blob|attach",
            "flashrom -w|--write|-E|--erase|-v",
            "afulnx|afuefi|ifdtool|me_cleaner|nvflash|amdvbflash|mstflint|mlxfwmanager|mlxconfig|bnxtnvm|"
            "ssdutil|isdct|intelmas {any:*write*|*erase*|*flash*|program|burn|load|set|-fw*|--update*|-p|/p}",
            "avrdude -U|-e",
            "esptool|esptool.py|espefuse|espefuse.py|espsecure|st-flash|dfu-util|openocd|nrfjprog|picotool|"
            "bossac|stm32flash|JLinkExe|pyocd|tinyprog|rkdeveloptool|uuu|sunxi-fel {any:*write*|*erase*|"
            "*flash*|program|burn*|load|--program|--eraseall|--recover|-D|-e|-w|*program*|ef|wl|*mass_erase*}",
            "sys-unconfig|systemd-firstboot|systemd-machine-id-setup|cloud-init --reset|clean|--force|init",
            "cloud-init clean",
            "smartctl --set|-s|-t|-X|--abort",
            "hdparm -S|-B|-W|-M|-y|-Y|-Z|-F|-X",
            "nvidia-smi -r|--gpu-reset|-pl|-pm|-mig|-lgc|-e|-c|--reset-*|-rac",
            "rocm-smi --reset*|--set*",
            "nvramtool -w|-C|-i|-r",
            "vbetool|powertop --auto-tune|post",
            "bless --setBoot|--netboot",
            "softwareupdate -i|-ia|--install|--install-rosetta|--fetch-full-installer",
            "startosinstall +",
            "startosinstall --eraseinstall",
            "do-release-upgrade|sysupgrade|syspatch|fw_update",
            "freebsd-update install|upgrade|rollback|-r",
            "fw_setenv +",
        ),
        match=(
            "grub-install /dev/sda",
            "update-grub",
            "efibootmgr -b 0001 -B",
            "dracut -f",
            "update-initramfs -u -k all",
            "fwupdmgr update",
            "flashrom -w bios.rom",
            "esptool.py erase_flash",
        ),
        spare=(
            "efibootmgr",
            "efibootmgr -v",
            "fwupdmgr get-updates",
            "flashrom --version",
            "bootctl status",
            "esptool.py chip_id",
            "smartctl -a /dev/sda",
            "nvidia-smi",
        ),
    ),
)

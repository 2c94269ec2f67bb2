"""Virtual machines: stopping, resetting and destroying them."""

from __future__ import annotations

from ..model import ASK, Rule

RULES = (
    Rule(
        "vm.destroy",
        ASK,
        "stops, resets or destroys virtual machines or their storage",
        uses=(
            "incus network|storage|cluster|project set|edit|unset|rename",
            "ovftool --overwrite|--powerOffTarget",
            "pct|qm unmount|unlink|nbdstop",
            "poudriere jail|ports -d",
            "poudriere pkgclean|logclean|distclean -A|-a|-y",
            "virsh destroy|undefine|shutdown|reboot|reset|delete|vol-delete|vol-wipe|pool-destroy|pool-delete|"
            "pool-undefine|net-destroy|net-undefine|snapshot-delete|snapshot-revert|managedsave-remove|"
            "detach-*|suspend|blockcommit|blockpull|secret-undefine|iface-destroy|iface-undefine|"
            "nwfilter-undefine|save|setmem|setvcpus|send-key|inject-nmi|checkpoint-delete|dompmsuspend|"
            "nodedev-destroy|domrename|qemu-*",
            "vagrant destroy|halt|suspend|reload|package",
            "vagrant box|snapshot|plugin|cloud remove|prune|delete|restore|uninstall|pop|expunge",
            "VBoxManage unregistervm|controlvm|closemedium|discardstate|modifymedium|modifyvm|storagectl|"
            "storageattach|natnetwork|hostonlyif|encryptmedium|extpack|dhcpserver|unattended",
            "VBoxManage snapshot * delete|restore|restorecurrent",
            "VBoxManage hostonlyif|natnetwork|extpack|dhcpserver remove|uninstall|stop|cleanup",
            "multipass delete|purge|stop|suspend|restart|restore|unalias",
            "incus delete|stop|restart|rm|pause|kill|rebuild|restore",
            "incus image|network|storage|profile|project|snapshot|cluster|config|remote|volume ... delete|rm|"
            "remove|unset|detach|evacuate|restore|device",
            "qmrestore|vzrestore --force",
            "qm destroy|stop|shutdown|reset|reboot|suspend|delsnapshot|rollback|unlink|disk|template|migrate|"
            "set|unlock|monitor|des*|delete",
            "pct destroy|stop|shutdown|reboot|suspend|delsnapshot|rollback|restore|unlock|set|delete",
            "pvesm remove|free|set",
            "pvesh create|set {any:*/status/stop|*/status/shutdown|*/status/reset|*/status/reboot|*/status/suspend|"
            "*/rollback}",
            "pveum|pvecm|pveceph|pvesh|pvesr|ha-manager|pvenode delete|remove|delnode|destroy|purge|disable|"
            "set|stop|user|role|acl|stopall",
            "pveum ... delete|remove|del",
            "vzctl|prlctl|prlsrvctl|xl|xm|xe|bhyvectl|vmctl|vm|jail|iocage|bastille|ezjail-admin|cbsd|zoneadm|"
            "vmadm|lxd|smolvm destroy|stop|delete|shutdown|reset|reboot|unregister|halt|kill|uninstall|rm|"
            "remove|poweroff|pause|suspend|restart|vm-destroy|vm-shutdown|vm-reboot|snapshot-destroy|"
            "vdi-destroy|host-shutdown|host-reboot|rename|detach-disk|clean",
            "xe {first:*-destroy|*-uninstall|*-shutdown|*-reboot|*-forget|*-delete|vm-reset-powerstate|sr-*}",
            "bhyvectl --destroy|--force-reset|--force-poweroff",
            "iocage|bastille|jail -r",
            "iocage|bastille|jail destroy",
            "govc {first:*.destroy|*.remove|*.rm|*.unregister|*.delete}",
            "govc vm.power|host.maintenance.enter|host.shutdown|datastore.rm|host.esxcli",
            "esxcli ... remove|set|shutdown|poweroff|reboot|kill|uninstall|delete|unmount|enter",
            "vim-cmd {first:vmsvc/power.*|vmsvc/destroy|vmsvc/unregister|vmsvc/snapshot.remove*|hostsvc/*}",
            "vmkfstools -U|-K|-P|-C|-i|-w",
            "vmrun stop|reset|deleteVM|deleteSnapshot|revertToSnapshot|suspend|pause|deleteFileInGuest|"
            "killProcessInGuest",
            "vmware-cmd|powercli|Remove-VM|Stop-VM|Restart-VM|Remove-VMSnapshot|Restore-VMSnapshot|Suspend-VM +",
            "machinectl remove|poweroff|terminate|reboot|disable|kill|set-limit|clean|stop",
            "limactl|tart|vmtool|orbctl|utmctl|quickemu|quickget|cloud-hypervisor|firecracker|flintlock|krunvm|"
            "kcli|virter|terraform-libvirt|tmt|testcloud|nova|uvt-kvm|uvtool --delete-vm|--kill",
            "limactl|tart|vmtool|orbctl|utmctl|quickemu|quickget|cloud-hypervisor|firecracker|flintlock|krunvm|"
            "kcli|virter|terraform-libvirt|tmt|testcloud|nova|uvt-kvm|uvtool delete|stop|kill|rm|remove|"
            "destroy|factory-reset|prune|unprotect|shutdown|suspend|reset|clean",
            "quickemu --delete-vm|--delete-disk|--kill|--snapshot",
            "qemu-img resize --shrink",
            "qemu-img snapshot -d|-a",
            "qemu-img commit|rebase",
            "qemu-nbd -d|--disconnect",
            "guestfish|virt-sysprep|virt-customize|virt-resize|virt-sparsify|virt-rescue|guestmount|virt-edit "
            "-a|-d|--add|--domain|--format !--ro",
            "onevm|oneimage|onehost|onevnet|onedatastore|onetemplate|oneuser|onegroup|onecluster delete|"
            "terminate|undeploy|poweroff|stop|reboot|disable|flush|offline|suspend|recover|disk-detach|chown",
            "wsl|wsl.exe --unregister|--shutdown|-t|--terminate|--uninstall",
            "docker-desktop|multipassd --factory-reset",
            "docker-desktop|multipassd stop",
            "anka delete|stop|registry|suspend",
            "lxc-destroy|lxc-stop +",
            "gnome-boxes|genymotion|gmtool ... delete|stop|factoryreset",
            "gmtool admin delete|stop|stopall|factoryreset",
            "avdmanager delete",
            "emulator {any:-wipe-data}",
            "xcrun simctl delete|erase|shutdown|uninstall",
            "simctl delete|erase|shutdown",
            "boxes|proot-distro remove|reset",
            "proot-distro remove|reset|clear-cache",
        ),
        match=(
            "virsh destroy vm1",
            "vagrant destroy -f",
            "VBoxManage unregistervm vm --delete",
            "qm destroy 100",
            "pct destroy 101",
            "multipass delete --purge vm",
            "lxc delete -f c1",
            "wsl --unregister Ubuntu",
        ),
        not_match=(
            "virsh list",
            "vagrant status",
            "vagrant up",
            "VBoxManage list vms",
            "qm list",
            "multipass list",
            "lxc list",
            "machinectl list",
            "qemu-img info a.qcow2",
        ),
    ),
)

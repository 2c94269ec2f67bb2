"""Devices: erasing and flashing chips, boards, phones, security keys and the parts of a machine."""

from __future__ import annotations

from ..model import ASK, Rule

RULES = (
    Rule(
        "device.flash",
        ASK,
        "erases or overwrites what a chip, a board or a phone runs",
        uses=(
            "STM32_Programmer_CLI -e|-w|-d|-rdu|-ob|--erase|--write|--download",
            "minipro -E|-w|--erase|--write",
            "dfu-programmer ... erase|flash*|reset|setsecure|launch",
            "edl e|es|w|wf|ws|wl|reset|setactiveslot|peek*|poke*",
            "mtk|mtkclient|mtk.py e|es|w|wf|wl|da|reset|erase|write|flash|brom",
            "upgrade_tool|rkdeveloptool ef|uf|di|rd|lf|wl|wlx|ul|db|gpt",
            "odin4 -b|-a|-c|-s|-u",
            "sunxi-fel {any:*write*|reset*|exec*|spl|uboot}",
            "afulnx*|afuefi*|flashit +",
            "wchisp|wlink|probe-rs|ch55xtool flash|erase|config|unprotect|protect|reset|download",
            "teensy_loader_cli|micronucleus|lpc21isp|bl60x-flash|snagflash|snagrecover|imx_usb +",
            "avrdude|nrfutil|stm32flash -e|-U|-w|-u|-k|-o",
            "nrfutil device erase|program|recover|reset",
            "rfc2217|ampy|mpremote|rshell rm|rmdir|reset|format|soft-reset",
            "mpremote ... rm|rmdir|reset|soft-reset",
            "idevicebackup2 restore|unback|erase",
            "ideviceenterrecovery|ideviceactivation +",
            "pymobiledevice3 restore|diagnostics|apps|mounter|profile|crash erase|update|restart|shutdown|uninstall|remove|"
            "clear|umount-*",
            "tpm2 clear|evictcontrol|changeauth|nvundefine|dictionarylockout|clearcontrol|changeeps|changepps",
            "tpm2_evictcontrol|tpm2_changeauth|tpm2_nvundefine|tpm2_dictionarylockout|tpm2_clearcontrol|tpm2_changeeps",
            "yubico-piv-tool -a=reset,delete*,set-*,change-*|--action=reset,delete*,set-*,change-*",
            "kernelstub -d|-D|-a|--delete-options|--manage-only",
            "refind-mkdefault|refind-mkrlconf",
            "hponcfg -r|-f|--reset|--file",
            "ectool|mosys {any:reboot_ec|flash*|*erase*|*write*}",
            "liquidctl|ratbagctl|openrgb ... reset|factory-reset|update-firmware",
        ),
        match=(
            "STM32_Programmer_CLI -c port=SWD -e all",
            "minipro -p W25Q64 -E",
            "edl e boot",
            "upgrade_tool ef loader.bin",
            "tpm2 evictcontrol -c 0x81000001",
            "ideviceenterrecovery 00008020",
            "mpremote rm :main.py",
        ),
        not_match=(
            "STM32_Programmer_CLI --list",
            "minipro -l",
            "edl printgpt",
            "rkdeveloptool ld",
            "tpm2 getrandom 8",
            "idevicebackup2 backup d",
            "mpremote ls",
        ),
    ),
)

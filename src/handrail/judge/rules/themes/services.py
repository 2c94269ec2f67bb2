"""Services: stopping, restarting, disabling and unmasking what runs in the background."""

from __future__ import annotations

from ..model import ASK, Rule

RULES = (
    Rule(
        "service.systemd",
        ASK,
        "starts, stops, restarts or reconfigures a service",
        uses=(
            "systemctl service-watchdogs|service-log-target|service-log-level|log-target +",
            "systemctl stop|restart|kill|disable|mask|isolate|try-restart|reload-or-restart|"
            "try-reload-or-restart|condrestart|"
            "force-reload|set-default|revert|edit|enable|reenable|unmask|start|reload|daemon-reexec|"
            "set-property|link|preset|preset-all|"
            "freeze|thaw|clean|reset-failed|bind|set-environment|unset-environment|import-environment|"
            "switch-root|cancel|log-level|add-wants|"
            "add-requires|default|condstop",
            "systemctl daemon-reload",
            "dbus-send|busctl|gdbus|qdbus {bus:stopunit|restartunit|killunit|disableunitfiles|maskunitfiles|"
            "tryrestartunit|reloadorrestartunit|startunit|enableunitfiles}",
            "networkctl down|delete|reconfigure|renew|up|forcerenew",
            "portablectl attach|detach|remove",
            "resolvectl reset-statistics|reset-server-features",
            "coredumpctl debug",
            "systemd-tmpfiles|systemd-sysusers --create|--remove|--purge",
            "systemd-sysext|systemd-confext merge|unmerge|refresh",
        ),
        match=(
            "systemctl stop nginx",
            "systemctl -H root@h restart x",
            "systemctl mask firewalld",
            "systemctl --user stop pipewire",
            "systemctl isolate rescue.target",
        ),
        not_match=(
            "systemctl status nginx",
            "systemctl list-units",
            "systemctl is-active x",
            "systemctl cat nginx",
            "systemctl show docker -p MainPID",
            "systemctl --version",
        ),
    ),
    Rule(
        "service.init",
        ASK,
        "starts, stops, restarts or disables a service",
        uses=(
            "gpm|pulseaudio|nscd|postgrey|lircd|dhcpcd -k|-K|--kill|--shutdown",
            "stopServer.sh|stopManager.sh|stopNode.sh|stopWebLogic.sh|adstpall.sh",
            "wsadmin|wsadmin.sh {text:*uninstall*|*stop*|*remove*|*delete*}",
            "endmqm|dltmqm|rmmqinf|endmqlsr +",
            "runmqsc {text:delete?*|clear?*|stop?*|alter?*|purge?*}",
            "couchdb -k|-d",
            "runsvchdir +",
            "varnishadm {text:ban?*|vcl.discard*|param.set*|stop}",
            "stopsap|hastop",
            "phpdismod|phpenmod|lighty-disable-mod|lighty-enable-mod +",
            "service|invoke-rc.d|rc-service|initctl|rcctl|svc|sv|s6-rc|rc.d|daemonctl|finit|initctl * stop|"
            "restart|reload|force-reload|force-stop|*-stop|*-restart|down|kill|disable|condrestart|try-restart|onestop|"
            "onerestart|graceful|zap|shutdown|term|hup|start|once",
            "sv|svc|initctl|rcctl|monit|s6-rc|dinitctl|runsvctrl|sr|66-stop|herd|synoservice|synosystemctl|"
            "cupsd -d|-t|-k|-x",
            "sv|svc|initctl|rcctl|monit|s6-rc|dinitctl|runsvctrl|sr|66-stop|herd|synoservice|synosystemctl|"
            "cupsd stop|restart|down|kill|exit|term|force-stop|force-restart|force-shutdown|shutdown|unmonitor|"
            "disable|d|t|k|x|hup|quit|remove|release",
            "service --full-restart",
            "rcctl set|disable|enable",
            "svc -d|-t|-k|-x|-i|-p",
            "s6-svc -d|-k|-r|-x|-t|-q|-D|-O",
            "s6-rc -d|-D",
            "chkconfig|update-rc.d|rc-update|sysv-rc-conf|insserv|rcconf|ntsysv {any:off|remove|disable|del|"
            "delete|on|defaults|add|enable|reset}",
            "chkconfig --del|--add|--level",
            "insserv -r|-d",
            "launchctl unload|bootout|remove|kill|stop|disable|load|bootstrap|kickstart|submit|enable|reboot|"
            "setenv|unsetenv|asuser|limit|config|start|blame",
            "svcadm disable|restart|clear|milestone|enable|refresh|mark",
            "svccfg -s",
            "svccfg delete|import",
            "supervisorctl stop|restart|shutdown|remove|reload|update|signal|clear|reread|start",
            "monit stop|restart|unmonitor|quit|reload",
            "pm2 delete|stop|kill|restart|del|reload|flush|unstartup|startup|reset|scale|gracefulReload",
            "forever stop|stopall|restart|restartall",
            "circusctl quit|stop|restart|rm|decr|kill",
            "god stop|terminate|restart|unmonitor|remove|quit",
            "brew services stop|restart|start|kill|cleanup|run",
            "net stop|pause",
            "sc|sc.exe stop|delete|config|failure|pause|create|sdset",
            "Stop-Service|Restart-Service|Remove-Service|Set-Service|Suspend-Service|Stop-Computer",
            "nssm stop|remove|restart|set",
            "nginx -s=stop,quit,reload,reopen",
            "openresty|tengine|angie -s",
            "apachectl|apache2ctl|httpd|apache2 {any:stop|restart|graceful|graceful-stop|start}",
            "lighttpd-angel|lighttpd-enable-mod|lighttpd-disable-mod|a2dismod|a2dissite|a2disconf|a2enmod|"
            "a2ensite|a2enconf +",
            "caddy stop|reload|start",
            "traefik stop",
            "haproxy|haproxyctl|varnishadm|varnishd {any:-sf|-st|stop|shutdown|restart|vcl.discard|ban|param.set}",
            "squid -k=shutdown,kill,reconfigure,interrupt,rotate",
            "named|rndc {any:stop|halt|flush*|freeze|reload|delzone|dumpdb|reconfig|restart}",
            "unbound-control stop|reload|flush*|local_zone_remove",
            "pdnsutil|pdns_control {any:delete-*|quit|clear-*|cycle|remove-*}",
            "postfix|postsuper|postqueue|exim|exim4|sendmail {any:stop|abort|reload|flush|-d|-Mrm|-Mg|-f}",
            "dovecot|doveadm stop|reload|kick|expunge|purge",
            "doveadm mailbox|acl|quota delete|rename|update|recalc|remove|set",
            "asterisk|fs_cli -x|-rx",
            "cupsdisable|cupsreject|cancel|lpadmin -x|-a|-c|--cancel",
            "cupsdisable|cupsreject|lprm +",
            "catalina.sh|jboss-cli.sh|zkServer.sh|hbase-daemon.sh|hadoop-daemon.sh|kafka-run-class.sh "
            "{any:stop|restart|shutdown|:shutdown*|--command=shutdown}",
            "shutdown.sh|stop.sh|kafka-server-stop|kafka-server-stop.sh|zookeeper-server-stop|"
            "zookeeper-server-stop.sh|stop-all.sh|stop-dfs.sh|stop-yarn.sh|stop-*.sh",
            "asadmin stop-*|delete-*|undeploy|restart-*|disable",
            "jenkins-cli|java {any:safe-restart|restart|shutdown|safe-shutdown|delete-job|delete-node|"
            "quiet-down|delete-builds}",
            "unicornctl|pumactl|passenger-config|thin|sidekiqctl {any:stop|restart|halt|quiet|phased-restart|"
            "restart-app}",
            "gunicornctl|uwsgi --stop|--reload",
            "celery control|purge|inspect|multi shutdown|stop|restart|pool_restart|revoke",
            "celery ... purge|shutdown|stopwait",
            "clamdscan|freshclam|fail2ban-client {any:stop|unban|--reload-all|set|reload|unbanip|delignoreip}",
            "tailscale down|logout|set|up|lock|serve|funnel",
            "zerotier-cli leave|join|set",
            "warp-cli disconnect|delete|registration",
            "snapctl|snap stop|restart|disable|revert|unset|disconnect",
            "rabbitmqctl {any:stop|stop_app|shutdown|reset|force_reset|delete_queue|purge_queue|delete_vhost|"
            "delete_user|clear_permissions|close_*|forget_cluster_node|rotate_logs|restart_vhost|add_user|"
            "change_password|set_user_tags|set_permissions|clear_*|eval}",
            "pg_ctl {any:stop|restart|kill|promote|reload}",
            "pg_ctlcluster * * stop|restart|promote|reload",
            "pg_dropcluster|pg_renamecluster|pg_upgradecluster +",
            "pcs|crm ... stop|standby|destroy|delete|disable|remove|cleanup|unmanage|maintenance|ban|move|kill",
            "nodetool decommission|removenode|drain|stopdaemon|assassinate|clearsnapshot|disablegossip|"
            "disablebinary|truncatehints|scrub|move|disable*|drain",
            "mysqld_safe|mysqld_multi|mysql.server stop|restart",
            "cockroach quit|node|debug drain|decommission|reset-quorum",
            "vmware-toolbox-cmd|open-vm-tools disk shrink|wipe",
            "resolvconf-admin|anacron -f",
            "bluetoothctl remove|power|disconnect|block|unpair off",
            "mastodon|discourse|tootctl ... remove|delete|purge|reset-password|destroy|suspend|domains",
            "sendxmpp|ejabberdctl|prosodyctl stop|restart|delete_*|unregister|deluser|kick*",
            "stop|restart +",
        ),
        match=(
            "service nginx restart",
            "/etc/init.d/nginx stop",
            "sv stop x",
            "nginx -s stop",
            "rc-service nginx stop",
            "supervisorctl stop all",
            "launchctl unload x.plist",
            "pm2 delete all",
            "chkconfig sshd off",
            "apachectl -k graceful-stop",
            "svc -d /service/x",
        ),
        not_match=(
            "service --status-all",
            "/etc/init.d/nginx status",
            "service nginx status",
            "nginx -t",
            "pm2 list",
            "apachectl configtest",
            "supervisorctl status",
            "launchctl list",
            "brew services list",
            "sv status x",
            "rc-service sshd status",
        ),
    ),
)

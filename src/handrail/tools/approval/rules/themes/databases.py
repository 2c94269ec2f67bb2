"""Databases: statements and tools that drop, empty or change whole tables and stores."""

from __future__ import annotations

from ..model import ASK, Effect, Rule

_REMOTE = Effect.REMOTE
RULES = (
    Rule(
        "sql.destructive",
        ASK,
        "drops, empties or changes whole tables, or administers the server",
        effect=_REMOTE,
        uses=("$sql-clients {sql}",),
        match=(
            "psql -c 'DROP TABLE x'",
            "mysql -e 'DELETE FROM t WHERE 1=1'",
            "sqlite3 a.db 'delete from t'",
            "echo 'TRUNCATE t' | psql",
            "duckdb x.db -c 'DROP TABLE t'",
        ),
        spare=(
            "psql -c 'DELETE FROM t WHERE id=3'",
            "psql -c \"SELECT 'DROP TABLE x'\"",
            "sqlite3 a.db .tables",
            "mysql -e 'show tables'",
            "psql -c 'SELECT 1 -- DROP TABLE x'",
        ),
    ),
    Rule(
        "sql.tools",
        ASK,
        "drops, overwrites or resets a database",
        effect=_REMOTE,
        uses=(
            "dropdb|dropuser|droplang|pg_resetwal|pg_resetxlog|mysql_secure_installation|pg_rewind|initdb|"
            "myisamchk|aria_chk|innochecksum|mysql_install_db|mysql_upgrade|pg_upgrade|mysqlbinlog|clusterdb +",
            "mysqladmin drop|shutdown|password|kill|flush-*|stop-*|refresh|reload|old-password|start-slave",
            "mysqladmin ... drop|shutdown|kill|password",
            "pg_restore -c|--clean|--create|-C",
            "mysqlimport --delete|-D|--replace|-r",
            "mysqlcheck --repair|-r|--auto-repair|--optimize|-o|--fix-*",
            "createuser -s|--superuser|-r|-d|--createrole",
            "pg_archivecleanup +",
            "vacuumdb --full|-f",
            "mongorestore --drop",
            "mongoimport --drop|--mode=delete,upsert",
            "redis-server --flushall",
            "redis-cli {redis}",
            "mongosh {mongo}",
            "memcached-tool|memcflush|memrm|memcrm {memcached}",
            "netcat {any:flush_all}",
            "couchbase-cli bucket-delete|bucket-flush|rebalance|server-remove|failover|user-manage|reset-*|"
            "node-reset|collection-manage|group-manage|*-delete",
            "cbq|n1ql|cbq-shell -s|--script {text:*drop*|*delete*|*flush*}",
            "cypher-shell|neo4j-admin|neo4j {text:*detach*delete*|*drop*|delete|*remove*|stop|restart|"
            "database*load*|set-initial-password|dump}",
            "influx -execute {text:*drop*|*delete*}",
            "influx|influxd ... delete|drop",
            "kafka-topics --delete",
            "kafka-delete-records|kafka-delete-records.sh|kafka-consumer-groups|kafka-consumer-groups.sh|"
            "kafka-configs|kafka-configs.sh|kafka-acls|kafka-acls.sh|kafka-storage|kafka-storage.sh|"
            "kafka-reassign-partitions.sh|kafka-leader-election.sh --delete|--reset-offsets|--delete-offsets|"
            "--offset-json-file|--execute|--alter|--remove",
            "kafka-delete-records|kafka-delete-records.sh|kafka-consumer-groups|kafka-consumer-groups.sh|"
            "kafka-configs|kafka-configs.sh|kafka-acls|kafka-acls.sh|kafka-storage|kafka-storage.sh|"
            "kafka-reassign-partitions.sh|kafka-leader-election.sh format",
            "kcat|rpk|kafkactl|kaf|pulsar-admin|nats|nsc|rabbitmqadmin|amqp-delete-queue|activemq|artemis|"
            "mosquitto_ctrl|stan|emqx|emqx_ctl|nsq_to_file|pulsarctl ... delete|purge|rm|remove|del|terminate|"
            "unload|truncate|skip|clear|clear-backlog|expire-messages|reset-cursor|stop|kick|seal|delete-*|"
            "deregister*|decommission",
            "elasticsearch-reset-password|elasticsearch-users|elasticsearch-keystore|opensearch-cli|"
            "curator_cli|curator|elasticdump +",
            "curator_cli delete_indices|delete_snapshots|close|shrink|rollover|forcemerge",
            "solr delete|stop|restart|auth",
            "solrctl ... --delete|--deletedocs",
            "zkCli.sh|zkcli|zookeeper-shell|zookeeper-shell.sh|zookeepercli ... delete|deleteall|rmr|rm",
            "hbase shell|hbck|clean --cleanAll|--cleanZk|-fix*|-repair",
            "hbase clean",
            "tiup cluster|dm destroy|stop|clean|scale-in|prune|restart|rename|disable",
            "yugabyted|yb-admin|yugatool destroy|stop|delete_*|drop_*",
            "cockroach node|nodelocal|userfile|sql|init decommission|delete|drain",
            "tarantoolctl|tt stop|restart|clean|rm|uninstall",
            "arangosh|arangorestore|arangoinspect {any:--overwrite|--create-database|*_drop*|*truncate*}",
            "dynamodb-admin|dy|dynein del|delete|bwrite|admin",
            "ravendb|eventstore|rethinkdb dump|restore --force",
            "rethinkdb restore",
            "sqlplus|rman|dgmgrl|srvctl|lsnrctl|asmcmd {text:*shutdown*|*drop*|*delete*|stop*|*truncate*|rm?*|"
            "*remove*|*failover*|*switchover*}",
            "db2 drop|force|deactivate|restore|quiesce|terminate|reset",
            "db2stop|db2idrop|db2iupdt|dasdrop",
            "wp db|site|user|post|plugin|theme|option|core|rewrite|term|comment|media|network|super-admin|"
            "cache|transient|role|cap reset|drop|delete|empty|clean|uninstall|flush|spam|deactivate|import|"
            "query|remove|destroy|create|update-password",
            "drush sql-drop|sql:drop|sqd|site-install|site:install|si|pmu|pm:uninstall|pm-uninstall|"
            "entity:delete|user:cancel|ucan|sql-sync|sql:sync|sset|config:delete|cdel|user:password|upwd|"
            "php:eval|ev|sql:query|sqlq|uli",
            "occ|nextcloud.occ {first:*:delete|*:remove|*:reset*|maintenance:*|user:disable|app:disable|"
            "files:cleanup|trashbin:cleanup|versions:cleanup}",
            "magento|n98-magerun|n98-magerun2|bin/magento {first:setup:uninstall|*:delete|*:drop|*:remove|"
            "*:flush|*:reset|indexer:reset|maintenance:enable|db:drop}",
            "discourse {any:destroy|remap|reset}",
            "sql-migrate|goose|migrate|tern|atlas|rambler|geni|soda|golang-migrate ... down|reset|drop|down-to|"
            "redo|force|clean",
            "goose ... down|reset|down-to|redo|version-down",
            "migrate ... drop|down|force",
            "atlas schema|migrate clean|apply|down",
            "dbmate drop|rollback|down|load",
            "diesel database|migration reset|drop|revert|redo",
            "sqlx database|migrate drop|reset|revert",
            "sea-orm-cli migrate fresh|reset|down|refresh",
            "flyway clean|undo|repair|baseline",
            "flyway ... clean|undo",
            "liquibase dropAll|drop-all|rollback*|rollback-*|update-testing-rollback|clear-checksums|drop*",
            "liquibase ... dropAll|drop-all|rollback*",
            "alembic downgrade|stamp",
            "aerich downgrade",
            "yoyo rollback|reapply",
            "phinx rollback",
            "doctrine|bin/console|console {first:doctrine:database:drop|doctrine:schema:drop|"
            "doctrine:fixtures:load|doctrine:migrations:rollup|doctrine:query:sql|doctrine:migrations:execute}",
            "knex {first:migrate:rollback|migrate:down|migrate:unlock}",
            "knex migrate:rollback|migrate:down",
            "sequelize|sequelize-cli {first:db:drop|db:migrate:undo*|db:seed:undo*}",
            "typeorm {first:schema:drop|migration:revert}",
            "typeorm-ts-node-commonjs {first:schema:drop|migration:revert}",
            "prisma migrate reset",
            "prisma db push|execute --force-reset|--accept-data-loss|--stdin|--file",
            "drizzle-kit drop|push",
            "mikro-orm {first:schema:drop|database:drop|migration:down|schema:fresh|migration:fresh}",
            "node-pg-migrate|db-migrate|umzug|marv|postgrator down|reset|redo|db:drop",
            "db-migrate reset|down",
            "db-migrate db:drop",
            "mix {first:ecto.drop|ecto.reset|ecto.rollback|ash.reset|ash_postgres.drop}",
            "rails|rake|bin/rails|bin/rake {framework-db}",
            "php|artisan|sail|spark|craft|please|yii|cake|oil|think {framework-db}",
            "python|django-admin|manage.py|flask|aerich|litestar|inv|invoke {framework-db}",
            "npx|bunx|pnpx|pnpm|yarn|npm|bundle|poetry|uv|pipenv|make|dotnet {framework-db}",
            "dotnet ef database drop|update",
            "dotnet-ef database drop|update 0",
            "supabase db reset|push --linked|--db-url",
            "hasura metadata|migrate|seed|database clear|apply|delete|reset|drop|squash --down|--goto",
            "hasura metadata clear",
            "sqitch revert|rebase|checkout|rework",
            "mydumper|myloader -o|--overwrite-tables|--purge-mode",
            "xtrabackup|mariabackup|innobackupex --copy-back|--move-back",
            "galera_recovery|garbd|mysqlrpladmin|orchestrator-client|orchestrator -c",
            "galera_recovery|garbd|mysqlrpladmin|orchestrator-client|orchestrator failover|switchover",
            "patronictl failover|switchover|restart|reinit|remove|pause|reload|edit-config",
            "repmgr ... failover|switchover|unregister|promote|cleanup",
            "pgbackrest restore|expire|stop|stanza-delete|stanza-upgrade",
            "stolonctl|kubectl-cnpg init|failkeeper|removekeeper|destroy|promote|fencing",
            "dbt run-operation|run --full-refresh|-f",
            "great_expectations|feast ... delete|teardown",
            "feast teardown",
            "sqlite-utils drop-table|drop-view|transform|query|delete",
        ),
        match=(
            "dropdb prod",
            "mysqladmin drop x",
            "redis-cli FLUSHALL",
            "mongosh x --eval 'db.dropDatabase()'",
            "rails db:drop",
            "php artisan migrate:fresh",
            "npx prisma migrate reset",
            "python manage.py flush --no-input",
            "alembic downgrade base",
            "kafka-topics.sh --bootstrap-server b --delete --topic t",
            "pg_restore --clean -d prod dump",
            "printf 'FLUSHALL\\n' | redis-cli",
        ),
        spare=(
            "pg_restore -l x",
            "mysqladmin status",
            "redis-cli get a",
            "mongosh --eval 'db.stats()'",
            "rails db:migrate",
            "php artisan route:list",
            "python manage.py showmigrations",
            "alembic upgrade head",
            "redis-cli info memory",
            "npx prisma generate",
            "python manage.py migrate",
            "php artisan migrate",
            "kafka-topics.sh --list --bootstrap-server b",
        ),
    ),
)

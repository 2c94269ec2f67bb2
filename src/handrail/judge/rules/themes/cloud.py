"""Cloud accounts and infrastructure as code: deleting, stopping and opening resources."""

from __future__ import annotations

from ..model import ASK, Effect, Rule

_REMOTE = Effect.REMOTE
_VERBS = (
    "delete|destroy|remove|rm|purge|terminate|drop|wipe|erase|nuke|deprovision|decommission|teardown|"
    "undeploy|uninstall|unpublish|deregister|"
    "revoke|reset|stop|shutdown|poweroff|power-off|halt|kill|disable|detach|suspend|deactivate|restart|"
    "reboot|cancel|del|rb|unset|unlink|"
    "deallocate|failover|rollback|scale-down|power-cycle|rebuild|restore|evict|empty|truncate|"
    "unregister|disassociate|discard|down|clear|flush|"
    "delete-*|remove-*|terminate-*|destroy-*|purge-*|*-delete|*-destroy|*-remove|*-terminate|*-reset|"
    "*-drop|*-purge|rotate|expire|release|unassign"
)
_COLON = (
    "*:destroy|*:delete|*:reset|*:remove|*:disable|*:stop|*:unset|*:rm|*:drop|*:kill|*:restart|*:clear|"
    "*:revoke|*:detach|*:rotate|*:rollback|*:cancel|*:purge|*:undeploy"
)
RULES = (
    Rule(
        "cloud.delete",
        ASK,
        "deletes, stops or resets resources in the cloud",
        effect=_REMOTE,
        uses=(
            "cli4 --delete|--post|--put|--patch",
            "dnscontrol push",
            "octodns-sync --doit|--force",
            "nsupdate {text:update?del*|zone?del*|prereq*del*|delete?*}",
            "lncli closechannel|closeallchannels|abandonchannel|forgetallchannels|deletepayments|wallet",
            "bitcoin-cli|litecoin-cli|dogecoin-cli invalidateblock|pruneblockchain|abandontransaction|"
            "removeprunedfunds|unloadwallet|stop",
            "solana program|stake|vote-account close|deactivate-stake|set-*|withdraw-*",
            "meteor deploy -D|--delete",
            "kops rolling-update|update|upgrade cluster --yes|-y",
            "ibmcloud ks|oc worker|workers replace|reload|reboot|update",
            "metal device reinstall|stop|reboot",
            "doctl databases sql-mode set",
            "doctl databases sql-mode|user|config|maintenance-window|firewalls set|reset|update|replace",
            "maas * machine|machines release|delete|abort|mark-broken|power-off|commission|deploy",
            "particle flash|keys",
            "kompose down|delete",
            "koji untag-build|block-pkg|cancel|free-task|disable-host|prune-signed-copies",
            "aws s3 rm|rb",
            "flyctl scale|autoscale {any:0|count=0}",
            "aliyun|tccli|hcloud-cli|volc ... Delete*|"
            "Stop*|Release*|Terminate*|Reboot*|Remove*|Destroy*|Reset*|Detach*|Disable*|Purge*",
            "aws s3 sync|mv --delete|--recursive",
            "aws * delete-*|terminate-*|remove-*|deregister-*|stop-*|reboot-*|disable-*|detach-*|revoke-*|"
            "reset-*|release-*|purge-*|cancel-*|disassociate-*|"
            "destroy-*|unassign-*|schedule-key-deletion|batch-delete-*|force-*|failover-*|rollback-*|restore-*|"
            "suspend-*|"
            "deactivate-*|unsubscribe|untag-*|batch-remove-*|shutdown-*|abort-*|reject-*|"
            "start-instance-refresh|restart-*|admin-delete-*|admin-disable-*|global-sign-out|"
            "delete|leave-organization|close-account|expire-session|evict-*|shred-*|empty-*|replace-*|"
            "unarchive-*|archive-*",
            "aws * * --desired-count=0|--desired-capacity=0|--max-size=0|--min-size=0|--min-capacity=0",
            f"gcloud ... {_VERBS}|simulate-maintenance-event|abandon|add-iam-policy-binding|"
            f"remove-iam-policy-binding|set-iam-policy|resize",
            "gsutil rm|rb|rsync|mv -d",
            "gsutil rm|rb",
            "gsutil ... rm|rb",
            "gsutil rsync -d",
            f"az ... {_VERBS}|regenerate|wipe-*|swap",
            "az deployment ... create --mode=complete",
            "oci ... action --action=stop,softstop,reset,softreset,terminate,senddiagnosticinterrupt",
            f"oci|ibmcloud|aliyun|tccli|openstack|nova|neutron|glance|cinder|ovhcloud|ovh|yc|sbercloud|hwcloud|"
            f"qingcloud|jdc|volc|exo|upctl|civo|scw|vultr-cli|vultr|linode-cli|linode|doctl|hcloud|metal|"
            f"equinix|packet|gridscale|ionosctl|ntnx|"
            f"brev|lambda|runpodctl|vastai|sky|modal|replicate|paperspace|gradient|coreweave|crusoe|latitude|"
            f"katapult|cherryctl|stackit ... {_VERBS}",
            f"heroku|firebase|netlify|vercel|now|railway|render|flyctl|wrangler|supabase|neonctl|neon|pscale|"
            f"turso|atlas|mongocli|upstash|xata|fauna|convex|nhost|appwrite|amplify|copilot|eb|ecs-cli|sam|"
            f"serverless|cdk|cdktf|sst|chalice|zappa|up|arc|"
            f"architect|begin|surge|gigalixir|scalingo|clever|platform|upsun|cf|okteto|qovery|porter|koyeb|"
            f"zeabur|northflank|deta|deno-deploy|deployctl|cloudflared|cfcli|flarectl|ngrok|tailscale-api|"
            f"shopify|ecctl|confluent|ccloud|aiven|avn|cloudsmith|jf|"
            f"jfrog|stripe|twilio|sentry-cli|datadog-ci|pagerduty|launchdarkly|ldcli|algolia|contentful|sanity|"
            f"prismic|auth0|okta|clerk|workos|expo|eas|appcenter|bitrise|circleci|travis|buildkite-agent|drone|"
            f"woodpecker-cli|tkn|spin|fermyon|"
            f"elastic-beanstalk|pantheon|terminus|acli|wp-engine|kinsta|ploi|forge|vapor|envoyer|encore|hasura|"
            f"dbt-cloud|databricks|snow|fivetran|census|airbyte|abctl|astro|coder|gitpod|codespaces|cloudquery|"
            f"steampipe|turbot ... {_VERBS}|{_COLON}",
            f"heroku|firebase|netlify|ember|sfdx|sf "
            f"{{first:{_COLON}|pg:copy|pg:promote|pg:killall|ps:scale|maintenance:on|"
            "config:unset|rollback|restart|force:org:delete|pg:upgrade}",
            "vercel|now rm|remove|rollback|promote",
            "wrangler delete|rollback",
            "railway down|unlink|delete|redeploy",
            "eb terminate|abort|restore|deregister|swap",
            "copilot ... delete",
            "amplify delete|remove|purge",
            "firebase ... *:delete|*:disable|*:clear|*:destroy",
            "cf delete|delete-*|d|stop|sp|restart|rs|restage|unbind-*|unmap-*|purge-*|disable-*|unset-*|"
            "cancel-*|unshare-*|remove-*|rollback",
            "mc|mcli|minio rm|rb|mirror|replicate|admin|ilm|event|anonymous|tag|undo ",
            "mc rm|rb|undo",
            "mc mirror --remove|--overwrite",
            "mc admin ... stop|restart|remove|rm|disable|delete|unfreeze|freeze",
            "s3cmd del|rm|rb|expire|delpolicy|dellifecycle|delcors|abortmp|setacl|mv",
            "s3cmd sync --delete-removed",
            "s5cmd ... rm|rb|mv",
            "s5cmd sync --delete",
            "s4cmd|s3api|s3-cli|s3p del|rm|delete|rb",
            "azcopy rm|remove",
            "azcopy sync --delete-destination=true,prompt",
            "b2 delete-*|rm|hide-file|cancel-*|clear-account",
            "b2 bucket|file|key delete|hide|rm",
            "b2 sync --delete|--replace-newer",
            "bq rm|cancel|truncate",
            "bq ... rm",
            "vault delete|destroy|revoke|seal|operator",
            "vault secrets|auth|audit|lease|token|policy|kv|namespace|plugin|operator|ssh disable|revoke|"
            "delete|destroy|move|deregister|seal|step-down|rekey|rotate|metadata|raft|tidy",
            "vault kv metadata delete",
            "vault operator|secrets ... seal|disable|step-down|raft",
            "cloudflared tunnel|access delete|cleanup|revoke",
            "terraform-cloud|tfe ... delete",
            "ansible-galaxy|awx|tower-cli ... delete|remove",
            "influx bucket|org|delete|user|task|auth|secret|dbrp|v1 delete",
            "influx delete",
            "newrelic|datadog|dog|grafana-cli|promtool|mimirtool|lokitool|logcli|amtool|grafana ... delete|"
            "remove|uninstall|reset-admin-password|expire|load|reset",
            "temporal|tctl ... delete|terminate|reset",
            "stripe ... delete|cancel|trigger",
            "sfdx|sf ... delete|destroy|destructive",
            "coder|gitpod delete|stop|rm",
            "cog|dvc|wandb|mlflow|comet ... remove|delete|gc|destroy|rm",
            "dvc gc|destroy|remove",
            "ipfs repo|pin|key|files|bootstrap gc|rm",
        ),
        match=(
            "aws s3 rm --recursive s3://b",
            "aws ec2 terminate-instances --instance-ids i-1",
            "heroku apps:destroy -a x",
            "az group delete -n x",
            "gcloud compute instances delete vm-1",
            "gsutil -m rm -r gs://b",
            "doctl compute droplet delete 1 -f",
            "aws --region eu-west-1 rds stop-db-instance --db-instance-identifier x",
            "fly apps destroy web",
            "vercel rm my-site --yes",
        ),
        not_match=(
            "aws s3 ls",
            "az vm list",
            "gcloud config list",
            "aws ec2 terminate-instances help",
            "aws s3 cp s3://b/x .",
            "gcloud compute instances list",
            "aws s3 sync a s3://b",
            "doctl compute droplet list",
            "heroku logs --tail",
            "firebase emulators:start",
        ),
    ),
    Rule(
        "cloud.access",
        ASK,
        "changes who may do what in a cloud account, or opens it to the world",
        effect=_REMOTE,
        uses=(
            "aws iam create-*|attach-*|put-*|add-*|update-*|set-*|upload-*|enable-*|deactivate-*",
            "aws s3api put-bucket-policy|put-bucket-acl|put-object-acl|put-public-access-block|"
            "put-bucket-versioning|put-bucket-lifecycle*|put-bucket-encryption|put-bucket-logging",
            "aws ec2 authorize-security-group-*|modify-*|create-key-pair|import-key-pair|"
            "associate-iam-instance-profile|replace-iam-instance-profile-association",
            "aws kms put-key-policy|create-grant|disable-*|cancel-*",
            "aws organizations|sso-admin|cognito-idp|ram|lakeformation create-*|attach-*|invite-*|enable-*|"
            "admin-*|move-*|grant-*|put-*|update-*|close-*",
            "aws route53 change-resource-record-sets",
            "aws cloudtrail|guardduty|config|securityhub|logs stop-*|update-*|put-event-selectors|disable-*|"
            "put-retention-policy",
            "aws lambda add-permission|update-function-code|update-function-configuration|put-*",
            "aws rds modify-*",
            "aws ssm send-command|start-session|put-parameter",
            "aws sts assume-role",
            "gcloud ... add-iam-policy-binding|set-iam-policy|add-access-config|set-service-account|add-metadata",
            "gcloud compute firewall-rules create|update|delete",
            "gcloud iam service-accounts keys|enable create",
            "gsutil iam|acl|defacl|lifecycle|versioning|retention|web|cors ch|set|clear",
            "az storage container set-permission",
            "az role assignment|definition create|update",
            "az ad user|group|sp|app|member ... create|create-for-rbac|update|add|reset|credential",
            "az network nsg rule create|update",
            "az vm run-command|user invoke|update|reset-ssh",
            "mc anonymous|policy set|public",
            "heroku access:add|access:update|members:add|transfer|apps:transfer",
        ),
        match=(
            "aws iam create-access-key --user-name root",
            "gcloud projects add-iam-policy-binding p --member=user:e@x --role=roles/owner",
            "aws s3api put-bucket-acl --bucket b --acl public-read",
            "az role assignment create --role Owner --assignee x",
        ),
        not_match=(
            "aws iam list-users",
            "aws iam get-user",
            "gcloud projects get-iam-policy p",
            "az role assignment list",
        ),
    ),
    Rule(
        "iac.destroy",
        ASK,
        "destroys or forgets infrastructure, or changes it without asking",
        effect=_REMOTE,
        uses=(
            "terraform|terragrunt|terramate|atlantis destroy|taint|untaint|force-unlock|import|refresh",
            "terraform|terragrunt state rm|push|mv|replace-provider",
            "terraform|terragrunt workspace delete",
            "terraform|terragrunt apply -destroy|-auto-approve|-replace",
            "terragrunt run-all|run|stack|destroy-all|apply-all destroy|apply",
            "terragrunt destroy-all|apply-all|destroy",
            "terragrunt run -- destroy",
            "pulumi destroy|down|cancel|refresh|import",
            "pulumi stack|state|config rm|delete|unprotect|rename|move|edit",
            "pulumi up|update --yes|-y|--skip-preview|-f",
            "cdk|cdktf|sst|cdk8s destroy|remove|rollback|gc",
            "cdk deploy --force|--require-approval=never",
            "serverless remove|rollback",
            "serverless ... remove",
            "sam delete",
            "ansible-playbook {any:*destroy*|*teardown*|*delete*|*wipe*|*decommission*|*reboot*|*shutdown*|"
            "*uninstall*} !--check|-C|--syntax-check|--list-tasks|--list-hosts",
            "packer build -force",
            "crossplane|kcl|winglang|wing destroy|delete",
            "bosh delete-*|delete|stop|recreate|cleanup|clean-up|cck|restart|del|hard-stop|cancel-task|"
            "delete-deployment|delete-vm|delete-release|delete-stemcell|delete-env|delete-disk",
            "knife ... delete|bulk|remove",
            "puppet node|cert|ssl|resource|module|ca clean|purge|deactivate|uninstall|revoke|destroy",
            "puppet apply -e|--execute",
            "chef-server-ctl|chef cleanse|reconfigure|uninstall|user-delete|org-delete|clean-policy-*|delete-policy*",
            "chef-apply|chef-run -e",
            "salt-key -d|-D|-r|-R|--delete|--delete-all",
            "stack|heat ... delete",
        ),
        match=(
            "terraform destroy",
            "terraform apply -destroy",
            "terraform -chdir=infra apply -auto-approve",
            "pulumi destroy -y",
            "terraform state rm x.y",
            "cdk destroy --all",
            "terragrunt run-all destroy",
        ),
        not_match=(
            "terraform plan",
            "terraform plan -destroy",
            "terraform graph",
            "terraform state list",
            "pulumi preview",
            "cdk diff",
            "terraform destroy -help",
            "terragrunt plan",
        ),
    ),
    Rule(
        "cloud.deploy",
        ASK,
        "puts a new version into production",
        effect=_REMOTE,
        uses=(
            "vercel|now --prod|--production|-p",
            "netlify deploy --prod|--prod-if-unlocked|-p",
            "firebase hosting:channel:deploy live",
            "firebase hosting:clone",
            "surge|gh-pages +",
            "gh-pages -d|--dist",
            "aws ecr put-image",
        ),
        match=("vercel --prod", "netlify deploy --prod --dir=dist", "gh-pages -d dist"),
        not_match=("vercel dev", "netlify deploy --dir=dist", "firebase deploy --only hosting", "fly deploy"),
    ),
    Rule(
        "cloud.api_delete",
        ASK,
        "sends a request that deletes",
        effect=_REMOTE,
        uses=(
            "curl|wget|curlie {method:delete}",
            "http DELETE|delete +",
            "http {method:delete}",
            "curl|http|wget {deleting-url}",
            "gh|glab api {method:delete}",
            "gh|glab api {method:patch}",
            "gh|glab api {method:put}",
            "az rest {method:delete}",
            "oci raw-request {method:delete}",
            "Invoke-RestMethod|Invoke-WebRequest|iwr|irm {any:delete}",
        ),
        match=(
            "curl -X DELETE https://api.x.com/v1/a",
            "curl -XDELETE http://es:9200/logs",
            "http DELETE https://x.com/1",
            "gh api -X DELETE repos/a/b",
            "curl --request=DELETE https://x.com/1",
        ),
        not_match=(
            "curl https://x.com",
            "curl -X POST -d a=1 localhost:8080",
            "http GET https://x.com",
            "gh api repos/a/b",
        ),
    ),
)

"""Forges: deleting and exposing what a repository host keeps."""

from __future__ import annotations

from ..model import ASK, Effect, Rule

RULES = (
    Rule(
        "forge.delete",
        ASK,
        "deletes, archives or exposes something at the repository host",
        effect=Effect.REMOTE,
        uses=(
            "gh repo|release|issue|gist|secret|variable|ssh-key|gpg-key|label|cache|run|codespace|project|"
            "extension|alias|ruleset|workflow|environment|org|auth|browse|deploy-key|cs|attestation|agent-task "
            "delete|archive|delete-asset|transfer|remove|rename|disable|cancel|stop|item-delete|"
            "field-delete|rebuild|logout|unlink|refresh|deploy-key|unarchive",
            "gh repo deploy-key delete|add",
            "gh repo edit --visibility|--enable-*|--delete-branch-on-merge|--allow-forking|--default-branch",
            "gh pr close|merge --delete-branch|-d|--admin",
            "gh secret|variable set",
            "gh ssh-key|gpg-key add",
            "gh repo sync --force",
            "gh repo create --public",
            "gh gist create --public|-p",
            "gh api {method:put}",
            "gh api graphql {any:*delete*|*mutation*delete*}",
            "gh workflow|run enable|disable|cancel|delete",
            "glab repo|project|release|issue|mr|variable|ssh-key|label|schedule|deploy-key|cluster|ci|snippet|"
            "milestone|token|user|group|runner|securefile|stack delete|archive|transfer|remove|close|cancel|"
            "revoke|rotate|rm",
            "glab ci delete|cancel",
            "hub delete|release|sync|ci-status|push delete",
            "hub delete",
            "hub release delete",
            "tea ... delete|close|rm|remove|logout|d",
            "gitea admin ... delete|change-password|delete-oauth|create",
            "gitea|forgejo admin|doctor|dump user|auth|regenerate",
            "gitlab-ctl stop|restart|cleanse|uninstall|reconfigure|kill|remove-accounts|term|hup|int|"
            "deploy-page|pg-*|promote*|registry-garbage-collect|prometheus-upgrade",
            "gitlab-rake|gitlab-rails {any:gitlab:cleanup:*|db:*|runner|gitlab:backup:restore|"
            "gitlab:password:reset|console}",
            "gitlab-runner unregister|stop|uninstall|restart|reset-token",
            "gitlab ... delete|remove|unprotect",
            "bb|bitbucket|gerrit|gogs|sourcehut|hut|codeberg|berg|fj ... delete|abandon|remove|close",
            "jira|linear|asana|trello|confluence|acli ... delete|remove|archive",
            "lab|git-lab ... delete|close|rm",
            "travis|circleci|buildkite|drone|woodpecker-cli|jenkins|concourse|fly-ci|tkn ... delete|cancel|"
            "disable|rm|destroy-pipeline|remove|purge|prune-worker|land-worker|abort-build|dp",
            "act|earthly prune|account|secrets rm|remove",
            "earthly prune",
        ),
        match=(
            "gh repo delete a/b --yes",
            "gh secret delete API_KEY",
            "gh release delete v1.0 -y",
            "glab repo delete a/b",
            "gh repo edit --visibility public",
            "gh run cancel 12",
        ),
        not_match=(
            "gh repo view",
            "gh pr view 1",
            "gh pr list",
            "gh release list",
            "gh secret list",
            "glab mr list",
            "gh pr create --title x --body y",
            "gh issue list",
        ),
    ),
)

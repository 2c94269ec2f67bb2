"""Containers: removing them, their images and volumes, and giving them the host."""

from __future__ import annotations

from ..model import ASK, Rule

RULES = (
    Rule(
        "container.remove",
        ASK,
        "stops or removes containers, images, volumes or networks",
        uses=(
            "docker rm|kill|rmi|stop|restart|pause|untag",
            "docker container|image|volume|network|system|builder|stack|service|secret|config|node|buildx|pod|"
            "machine|context|plugin|manifest|trust|swarm|checkpoint|model|sandbox|mcp|farm|artifact|namespace|"
            "scout|extension|offload "
            "prune|rm|remove|kill|reset|stop|restart|demote|leave|disable|revoke|disconnect|rollback|pause|"
            "unlock|renumber|scale|ca|unmount",
            "docker service scale {any:*=0}",
            "docker swarm init --force-new-cluster",
            "docker service|node update --force|--replicas|--availability|--image|--rollback",
            "docker compose rm|kill|stop|restart|pause",
            "docker compose down -v|--volumes|--rmi|-t|--timeout|--remove-orphans",
            "docker-compose|podman-compose rm|kill|stop|restart|pause",
            "docker-compose|podman-compose down -v|--volumes|--rmi|--remove-orphans",
            "docker buildx|builder prune|rm|stop",
            "docker-machine|docker-slim|boot2docker rm|kill|stop|restart|delete|regenerate-certs|destroy|down",
            "podman-remote|lazydocker rm|kill|rmi",
            "ctr ... delete|rm|remove|kill|del",
            "crictl rm|rmi|rmp|stop|stopp",
            "buildah rm|rmi|prune",
            "skopeo|regctl|reg|crane|oras ... delete|rm|remove",
            "runc|crun|youki|kata-runtime|runsc delete|kill|pause",
            "lxc-destroy|lxc-stop|lxc-kill|lxc-freeze|lxc-snapshot|lxc-autostart",
            "singularity|apptainer instance|cache|key stop|clean|remove|delete",
            "singularity|apptainer delete",
            "toolbox|distrobox|distrobox-rm|distrobox-stop rm|rmi|stop|ephemeral",
            "distrobox-rm|distrobox-stop|devbox-rm",
            "colima|lima|limactl|orb|orbctl|rdctl|finch|podman-machine delete|stop|prune|reset|factory-reset|"
            "shutdown|restart|kill|unprotect",
            "ddev|lando delete|destroy|poweroff|clean|stop|rm",
            "docksal|fin|dip|warden|nitro ... rm|remove|destroy|cleanup|down|stop|svc",
            "bocker|systemd-nspawn|machinectl rm|remove|terminate|poweroff|clean",
            "balena|balena-engine ... rm|rmi|kill|stop|prune|delete|reboot|shutdown|purge|deactivate",
            "waydroid|anbox session|container|prop stop|restart|wipe",
            "dokku ... destroy|*:destroy|*:remove|*:unset|*:clear|*:stop|*:disable|*:unlink|*:purge*",
            "dokku {first:*:destroy|*:remove|*:unset|*:clear|*:stop|*:disable|*:unlink|*:delete|cleanup|delete}",
            "caprover|coolify|captain ... delete|destroy|remove|uninstall",
            "portainer|watchtower|dive --cleanup|--run-once",
        ),
        match=(
            "docker rm -f web",
            "docker system prune -af",
            "docker compose down -v",
            "docker volume rm pgdata",
            "docker --context prod rm -fv db",
            "docker compose -f prod.yml -p app down --volumes",
            "podman system reset -f",
            "docker stack rm app",
        ),
        not_match=(
            "docker ps",
            "docker run --rm x",
            "docker compose up",
            "docker volume ls",
            "docker images",
            "docker compose down",
            "docker inspect rm",
            "docker ps --filter name=rm",
        ),
    ),
    Rule(
        "container.escape",
        ASK,
        "gives a container access to its host",
        uses=(
            "docker run|create --privileged",
            "docker container run|create --privileged",
            "docker run|create {mounts-host}",
            "docker container run|create {mounts-host}",
            "docker exec --privileged",
            "docker run|create {host-namespace}",
            "nsenter -t=1",
            "nsenter --target=1",
            "singularity|apptainer {mounts-host}",
            "systemd-nspawn -D|--directory @root",
            "lxc-attach --elevated-privileges|-e",
        ),
        match=(
            "docker run --privileged x",
            "docker run -v /:/h alpine",
            "docker run --pid=host x",
            "docker run -v /var/run/docker.sock:/var/run/docker.sock x",
        ),
        not_match=(
            "docker run -v $PWD:/w x",
            "docker run --rm -it x",
            "docker run -v data:/var/lib/postgresql/data postgres",
            "docker run -v ./src:/src x",
        ),
    ),
)

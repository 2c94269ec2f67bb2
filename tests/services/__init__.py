"""Real services for the tests: container engines, an ssh server, a link that can be cut, doubles of two clouds.

A service is started when the first test asks for it, shared by all workers of the run, and gone when the last of them is:
its caretaker (`caretaker.py`) holds it in namespaces of its own, which the kernel ends. A test asks by fixture:

    docker_service     Docker: `env`, `image`, `run(...)`             own_docker_service, which may be killed
    podman_service     Podman: `env`, `program`, `image`, `run(...)`
    apptainer_service  Apptainer: `env`, `image`, `run(...)`
    ssh_service        Ssh: `config`, `alias`, `impostor`, `jumped`   own_ssh_service, which may be killed
                                                                      far_ssh_service, whose `link` can be cut
    modal_service      Cloud: `env`, `sandboxes()`                    modal_sdk: the real SDK, set up to talk to it
    daytona_service    Cloud: `env`, `sandboxes()`                    daytona_sdk: the same
    services           Services: `join` for one of the test's own, as `Cloud.modal(services, docker, own=True)`
"""

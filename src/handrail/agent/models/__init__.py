"""The models that an agent can ask: one file per provider in `providers/`, their addresses in `settings.services`. `base` is
what a model must offer, and how it is asked until there is a whole answer; `model_selection` chooses and makes one from the
configuration or of a server on this machine; `http_client` is the HTTP below the providers' clients."""

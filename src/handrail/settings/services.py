"""The settings of external services: models and their providers, MCP servers, the services behind tools, and the network."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from .sections import MAX_COUNT, MIB, Section, Texts, count, named, option, seconds, size, text, texts


class ProviderSpec(NamedTuple):
    """How the models of a provider are reached. One with an OpenAI-compatible API is one line of `PROVIDERS`. One with an API of
    its own is a file in `handrail.agent.models.providers`, and a line there only if it has an OpenAI-compatible API too.

    `model` makes a model from its name and settings: a callable, or a reference `"module:name"` to one.
    `base_url` is the provider's own server, `compatible_url` its OpenAI-compatible API where that is elsewhere.
    `names` are the beginnings of the names of its models, by which it is found when only a model is given.
    """

    model: str | Callable[..., Any]
    base_url: str = ""
    key_variable: str = ""
    compatible_url: str = ""
    needs_key: bool = True
    names: Texts = ()

    @property
    def chat_url(self) -> str:
        """Where the OpenAI-compatible API is; empty if there is none that we know of."""
        return self.compatible_url or self.base_url


_MODELS = "handrail.agent.models.providers"


def _compatible(base_url: str, key_variable: str, *names: str) -> ProviderSpec:
    return ProviderSpec(f"{_MODELS}.openai:MODEL", base_url, key_variable, names=names)


PROVIDERS = {
    "openai": _compatible("https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-", "chatgpt-", "o1", "o3", "o4"),
    "anthropic": ProviderSpec(
        f"{_MODELS}.anthropic:MODEL",
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        compatible_url="https://api.anthropic.com/v1",
        names=("claude",),
    ),
    "gemini": _compatible("https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY", "gemini-"),
    "mistral": _compatible("https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-", "codestral-", "devstral-"),
    "deepseek": _compatible("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-"),
    "xai": _compatible("https://api.x.ai/v1", "XAI_API_KEY", "grok-"),
    "groq": _compatible("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "openrouter": _compatible("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
}
# What servers for local models speak, and what `model.provider` is unless it is set.
DEFAULT_PROVIDER = "openai"


class McpServerConfig(Section):
    """An MCP server whose tools are offered. `${NAME}` in a text stands for the environment variable."""

    enabled: bool = option(True, "Connect to the server.")
    command: str = text("The program to start, for a server that speaks over its standard input and output.")
    args: Texts = texts("Arguments of the program.")
    env: Mapping[str, str] = named("Environment variables that the program gets; it gets few others.")
    cwd: str | None = option(None, "Directory that the program starts in.")
    url: str = text("Address of a server that is reached by HTTP.")
    type: Literal["auto", "stdio", "http", "sse"] = option(
        "auto",
        "How to talk to it. auto: stdio for a command, http (streamable) for an address; sse is the older protocol.",
    )
    headers: Mapping[str, str] = named("HTTP headers that every request carries.")
    client_id: str = text("Client id for a server that wants a login (OAuth) and does not let clients register.")
    client_secret: str = text("Client secret for client_id, if there is one. Write it as `${NAME}`.")
    client_metadata_url: str = text(
        "Address of a document that describes this client, for servers that take one in place of a registration."
    )
    login: Literal["browser", "client_credentials"] = option(
        "browser",
        "How to log in (OAuth): you, on a page; or this program by itself, with client_id and its secret or key.",
    )
    client_key: str = text("File with the private key (PEM) that signs the login of client_id, instead of a secret.")
    issuer: str = text("The login server that client_id belongs to: its secret or key is used nowhere else.")
    ca_file: str = text("File with further certificates (PEM) of authorities to trust at the address.")
    tls_cert: str = text("File with this client's certificate (PEM), for a server that wants one.")
    tls_key: str = text("File with the key of tls_cert, if that does not hold it.")
    callback_port: int = option(
        0, "Port of this machine that the login page leads back to. 0 takes any.", minimum=0, maximum=65535
    )
    protocol: Literal["auto", "handshake"] = option(
        "auto",
        "auto asks which revision the server speaks; handshake does not ask, for servers that cannot handle that.",
    )
    include: Texts = texts("Only the tools whose names fit one of these, such as `get_*`.")
    exclude: Texts = texts("Not the tools whose names fit one of these.")
    ask: Literal["destructive", "writes", "always"] = option(
        "destructive",
        "Whose calls ask first: tools that say they destroy, all that do not say they only read, or every tool.",
    )
    timeout: float = seconds(120.0, "Seconds that one call may take.")
    connect_timeout: float = seconds(30.0, "Seconds that connecting may take.")
    idle_seconds: float = seconds(
        0.0, "Seconds without a call after which the program is ended, until the next call. 0 keeps it.", or_zero=True
    )
    max_tools: int = count(1000, "Tools that are taken from the server.")
    max_message_bytes: int = size(32 * MIB, "Size of the largest message that is taken from the server.", minimum=1024)
    elicitation: bool = option(True, "Let the server ask you something, through the approver.")
    sampling: bool = option(False, "Let the server ask the agent's model something while one of its tools runs.")
    roots: Texts = texts("Folders that the server should work in. An empty list names none.")


class ModelConfig(Section):
    """The model that an agent asks. Keys are never kept here: they come from the environment, or the system's keyring."""

    name: str = text("The model's name at its provider. HANDRAIL_MODEL overrides it.")
    provider: str = option(
        DEFAULT_PROVIDER,
        f"The language that the server speaks: {', '.join(PROVIDERS)}, or the name of a plugin's provider.",
    )
    base_url: str = text("Where the server is; the provider's own if empty. OPENAI_BASE_URL is asked next.")
    key_variable: str = text("Environment variable with the key; OPENAI_API_KEY or ANTHROPIC_API_KEY if empty.")
    context_tokens: int = size(128_000, "How many tokens fit into one request.", minimum=1000)
    fallbacks: Texts = texts(
        "Models to ask when the first does not answer: where that is, or `anthropic:NAME`, `openai:NAME`."
    )
    helper: str = text(
        "Model that summarises long conversations, at the same provider; if empty the one that is asked."
    )
    show_reasoning: bool = option(
        True, "Show in `handrail chat` what the model thinks before it answers: shortened, and kept nowhere."
    )
    max_model_calls: int = count(90, "How often the model is asked before a turn ends by itself.")
    max_turn_tokens: int = size(
        0, "Tokens, sent and answered, after which a turn ends by itself. 0 is no limit.", minimum=0
    )
    max_turn_seconds: float = seconds(0.0, "Seconds after which a turn ends by itself. 0 is no limit.", or_zero=True)
    max_turn_cost: float = option(
        0.0,
        "US dollars after which a turn ends by itself, where a cost is known. 0 is no limit.",
        minimum=0,
        maximum=MAX_COUNT,
    )
    input_price: float = option(
        0.0,
        "US dollars per million tokens that are sent, where the server reports no cost.",
        minimum=0,
        maximum=MAX_COUNT,
    )
    output_price: float = option(0.0, "US dollars per million tokens that are answered.", minimum=0, maximum=MAX_COUNT)


class HomeConfig(Section):
    """The Home Assistant behind the tools `ha_*`."""

    url: str = text("Its address. HASS_URL is asked next, then http://homeassistant.local:8123.")
    key_variable: str = option("HASS_TOKEN", "Environment variable with a long-lived access token.")
    timeout: float = seconds(30.0, "Seconds that one request to it may take.")


class TelemetryConfig(Section):
    """OpenTelemetry spans for an agent's turns, model calls and tools."""

    enabled: bool = option(False, "Send spans to where the OTEL_* variables say. Needs the extra `otel`.")
    content: bool = option(False, "Include messages, arguments and results in the spans.")


class GatewayConfig(Section):
    """The chats in which `handrail serve` talks with users."""

    accounts: Mapping[str, Mapping[str, Any]] = named(
        "The agent's accounts, by name: `kind` (matrix, telegram, ...), the settings of that kind, and `home`, the chat for "
        "questions that come from elsewhere."
    )


class MessagesConfig(Section):
    """Where messages can be sent, and where a person is asked."""

    targets: Mapping[str, Mapping[str, Any]] = named(
        "Who or what can be written to, by name: `kind` (email, matrix, slack, ...) and the settings of that kind."
    )
    person: str = text("Target at which `clarify` asks its questions when nobody is at the terminal.")
    answer_timeout: float = seconds(300.0, "Seconds to wait for an answer there.")
    max_attachment_bytes: int = size(20 * MIB, "Size of the largest file that is sent along.", minimum=0)


class ProviderConfig(Section):
    """A server with an OpenAI-compatible API."""

    base_url: str = text("Its address, such as http://127.0.0.1:11434/v1.")
    key_variable: str = text("Environment variable with the key; none is sent if empty.")


class MediaConfig(Section):
    """Models beside the agent's own. `NAME:MODEL` is a model at one of the providers, `MODEL` one where the agent's own is."""

    providers: Mapping[str, ProviderConfig] = named("Servers with an OpenAI-compatible API, by name.")
    vision_model: str = text(
        "The model that looks at images. If empty, the agent's own model is given the image and looks itself."
    )
    image_model: str = text("The model that makes images.")
    speech_model: str = text("The model that speaks. If empty, espeak-ng speaks, on this machine.")
    speech_voice: str = text("The voice; the model's or espeak-ng's own names. If empty, a usual one.")
    mixture_models: Texts = texts("The models that answer for `mixture_of_agents`.")
    mixture_merger: str = text("The model that merges their answers; the first of them if empty.")
    max_image_bytes: int = size(20 * MIB, "Size of the largest image that is looked at.")
    max_image_side: int = count(1568, "Pixels of the longer side; a larger image is made smaller.", minimum=16)
    timeout: float = seconds(180.0, "Seconds that one request to a model may take.")


class WebConfig(Section):
    """How the web is searched and read, and what of the private network may be reached."""

    allow_private: Texts = texts(
        "Private addresses that the web tools and the browser may reach: networks such as 10.0.0.0/8, addresses and names, "
        "alone or with a port such as 127.0.0.1:8080."
    )
    search: str = option(
        "auto",
        "Who searches: searxng, tavily, brave, exa, ddgs. auto: searxng if its address is set, else the one whose key is set "
        "(TAVILY_API_KEY, BRAVE_API_KEY, EXA_API_KEY), else ddgs, which needs none.",
    )
    search_urls: Mapping[str, str] = named(
        "Address of a search service, by its name; searxng has no other. SEARXNG_URL is asked next."
    )
    timeout: float = seconds(20.0, "Seconds that one page or search may take.")
    max_bytes: int = size(10 * MIB, "How much of a page is read; of a longer one the beginning.", minimum=1024)
    user_agent: str = text("What pages are told of who reads them; Handrail's name and version if empty.")


class BrowserConfig(Section):
    """Which browser is driven, and what bounds it."""

    executable: str = text("The browser to start; a Chromium or Chrome of this machine if empty.")
    cdp_url: str = text("Address of a running browser to use instead, such as http://127.0.0.1:9222.")
    headless: bool = option(True, "Show no window.")
    sandbox: Literal["auto", "off"] = option(
        "auto", "auto uses the browser's own sandbox unless we are root, where it cannot; off never does."
    )
    timeout: float = seconds(30.0, "Seconds that a page may take to load, or one action.")
    idle_seconds: float = seconds(
        900.0, "Seconds after which a task's pages are closed when nobody uses them. 0 keeps them open.", or_zero=True
    )
    max_download_bytes: int = size(100 * MIB, "Size of the largest file that a page may download.", minimum=0)


class NetworkConfig(Section):
    """Which hosts commands may reach. A host is a name, `*.domain`, an address or a network, each also with a port."""

    contain: Literal["auto", "off", "on"] = option(
        "auto",
        "on: commands on this machine reach the hosts that are allowed here, and ask about each other one. auto: in the profile "
        "contained, where the kernel can hold a connection.",
    )
    allow: Texts = texts("Hosts that need no asking, such as `*.example.org` or `10.0.0.0/8:8000-8999`.")
    deny: Texts = texts("Hosts that no command reaches. Cloud metadata addresses are among them.")
    lists: Texts = texts("Named lists of hosts that need no asking: package-registries, code-hosts.")
    resolve: Mapping[str, str] = named("Fixed addresses of names, as in /etc/hosts.")
    ca_file: str = text("File with further certificates (PEM) of authorities to trust where a key is put in.")


class SecretConfig(Section):
    """A key that commands use and never see: they get a placeholder, and requests to its hosts get the value."""

    source: str = text(
        "Where the value is: `keyring:NAME` (of the service handrail), `environment:NAME`, `file:PATH`, or `command:...`, "
        "whose output it is."
    )
    hosts: Texts = texts("Hosts that may get the value, by HTTPS: names, or `*.domain`, also with a port.")
    how: Literal["bearer", "basic", "header", "query", "cookie", "sigv4"] = option(
        "bearer",
        "The one place of a request in which it is put in: `Authorization: Bearer`, the user or password of a basic login "
        "(git too), any header, the query, a cookie, or the signature of a request to AWS.",
    )
    variable: str = text("Environment variable with the placeholder; the secret's name in capitals if empty.")

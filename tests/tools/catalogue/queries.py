"""A thousand tools as servers bring them, and what people would ask for, with the tools that answer it.

The tools that are asked for are written out; around them stand those that services of the same kinds would have too. A query
was written from what a person wants, not from a tool's text.
"""

from __future__ import annotations

# server: name: description
WRITTEN: dict[str, dict[str, str]] = {
    "github": {
        "create_issue": "Create a new issue in a GitHub repository.",
        "list_issues": "List issues of a repository, filtered by state, labels or assignee.",
        "add_issue_comment": "Add a comment to an existing issue.",
        "create_pull_request": "Open a pull request from one branch to another.",
        "merge_pull_request": "Merge a pull request once its checks have passed.",
        "get_pull_request_files": "The files that a pull request changes, with patches.",
        "search_code": "Search for code across repositories.",
        "fork_repository": "Fork a repository to your account or an organisation.",
        "create_release": "Publish a release with notes for a tag.",
        "list_workflow_runs": "Runs of GitHub Actions workflows and how they ended.",
        "rerun_failed_jobs": "Run the jobs of a workflow that failed again.",
    },
    "slack": {
        "chat_post_message": "Send a message to a channel or a direct conversation.",
        "conversations_list": "Channels of the workspace.",
        "conversations_history": "Messages of a channel, newest first.",
        "reactions_add": "Add an emoji reaction to a message.",
        "users_lookup_by_email": "Find a member of the workspace by their email address.",
        "files_upload": "Upload a file to a channel.",
    },
    "jira": {
        "transition_issue": "Move an issue to another status of its workflow.",
        "search_jql": "Find issues by a JQL query.",
        "assign_issue": "Assign an issue to a user.",
        "log_work": "Record time that was spent on an issue.",
        "create_sprint": "Create a sprint on a board.",
    },
    "gcal": {
        "create_event": "Create an event in a calendar, with guests and reminders.",
        "find_free_slots": "Times at which all the given people are free.",
        "delete_event": "Delete an event and tell its guests.",
        "list_events": "Events between two times.",
    },
    "gmail": {
        "send_email": "Send an email with optional attachments.",
        "search_threads": "Search mail by sender, subject, date or text.",
        "create_draft": "Save a draft without sending it.",
        "add_label": "Put a label on a mail.",
        "mark_as_read": "Mark mails as read.",
    },
    "postgres": {
        "run_query": "Run a read-only SQL query and return the rows.",
        "list_tables": "Tables of a schema with their columns.",
        "explain_query": "The plan that the database would use for a query.",
        "active_connections": "Sessions that are connected now, and what they run.",
    },
    "k8s": {
        "list_pods": "Pods of a namespace with their state.",
        "get_pod_logs": "Log output of a container in a pod.",
        "scale_deployment": "Change the number of replicas of a deployment.",
        "rollout_undo": "Go back to the deployment's revision before.",
        "apply_manifest": "Apply YAML manifests to the cluster.",
        "describe_node": "Capacity, conditions and pods of a node.",
    },
    "aws": {
        "s3_list_objects": "Objects of a bucket under a prefix.",
        "s3_get_object": "Download an object from a bucket.",
        "s3_presign_url": "A link to an object that works for a limited time without credentials.",
        "ec2_start_instances": "Start virtual machines that are stopped.",
        "ec2_stop_instances": "Stop virtual machines.",
        "lambda_invoke": "Invoke a function and return its result.",
        "cloudwatch_get_metrics": "Data points of a metric over time.",
        "cost_by_service": "What each service cost in a period.",
        "iam_rotate_access_key": "Make a new access key for a user and disable the old one.",
    },
    "stripe": {
        "create_invoice": "Draw up an invoice for a customer.",
        "refund_charge": "Give a customer back what a charge took, in whole or in part.",
        "list_subscriptions": "Subscriptions with their status and price.",
        "create_coupon": "Create a discount that customers can redeem.",
        "get_balance": "Money that is available or on its way.",
    },
    "maps": {
        "geocode": "Latitude and longitude of an address.",
        "directions": "The way between two places by car, bicycle, foot or train.",
        "places_nearby": "Restaurants, shops and other places around a point.",
        "distance_matrix": "Travel times between many places.",
    },
    "weather": {
        "current_conditions": "Temperature, wind and rain at a place now.",
        "daily_forecast": "The weather of the coming days at a place.",
        "severe_alerts": "Warnings of storms, floods and heat for a region.",
    },
    "sentry": {
        "list_unresolved": "Errors of a project that nobody has resolved.",
        "get_stacktrace": "The stack trace and breadcrumbs of an error event.",
        "resolve_issue": "Mark an error as resolved.",
    },
    "figma": {
        "export_node": "Render a frame or component of a design to PNG, SVG or PDF.",
        "get_comments": "Comments on a design file.",
        "list_components": "Components of a design library.",
    },
    "notion": {
        "create_page": "Create a page below another or in a database.",
        "query_database": "Rows of a database that fit a filter.",
        "append_blocks": "Append paragraphs, lists or code to a page.",
    },
    "spotify": {
        "play_track": "Start playing a song, album or playlist.",
        "pause_playback": "Pause the music.",
        "add_to_playlist": "Put songs on a playlist.",
        "recommendations": "Songs that are like the given ones.",
    },
    "home": {
        "turn_on_light": "Switch a lamp on, with brightness and colour.",
        "set_thermostat": "Set the target temperature of a room.",
        "lock_door": "Lock or unlock a door.",
        "camera_snapshot": "A picture from a camera of the house.",
        "start_vacuum": "Let the robot clean the floor.",
    },
    "shop": {
        "track_shipment": "Where a parcel is and when it arrives.",
        "cancel_order": "Cancel an order that has not been sent yet.",
        "stock_level": "How many pieces of an article are in the warehouse.",
        "update_price": "Change the price of an article.",
    },
    "docs": {
        "convert_to_pdf": "Turn a document into a PDF.",
        "extract_text": "The text of a PDF or an office document.",
        "ocr_image": "Recognise the letters in a scan or a photo.",
        "merge_pdfs": "Put several PDF files together.",
    },
    "media": {
        "transcribe_audio": "Write down what is said in a recording.",
        "remove_background": "Cut the subject of a photo out of its background.",
        "resize_image": "Change the size of a picture.",
        "trim_video": "Cut a piece out of a video.",
    },
    "lang": {
        "translate_text": "Translate text from one language to another.",
        "detect_language": "Which language a text is written in.",
        "check_grammar": "Find mistakes of grammar and spelling.",
    },
    "net": {
        "dns_lookup": "Records of a domain name.",
        "whois": "Who registered a domain, and until when.",
        "check_certificate": "Until when the TLS certificate of a site is valid.",
        "ping_host": "Whether a host answers, and how fast.",
    },
    "travel": {
        "search_flights": "Flights between two airports on a day, with prices.",
        "book_hotel": "Reserve a room.",
        "train_departures": "The next trains from a station.",
        "currency_convert": "Convert an amount between currencies at today's rate.",
    },
    "crm": {
        "create_contact": "Add a person to the address book of the company.",
        "log_call": "Write down a phone call with a customer.",
        "pipeline_report": "Deals by stage, with their value.",
        "find_duplicates": "Contacts that are probably the same person.",
    },
    "hr": {
        "request_leave": "Ask for days of vacation.",
        "payslip": "The salary statement of a month.",
        "org_chart": "Who reports to whom.",
    },
    "vault": {
        "read_secret": "Read a secret at a path.",
        "rotate_password": "Give a stored password a new value.",
    },
    "ci": {
        "trigger_build": "Start a build of a branch.",
        "get_build_log": "What a build printed.",
        "list_flaky_tests": "Tests that sometimes fail without a change.",
    },
}

# what a person wants: the tools that do it, any of which is right
QUERIES: dict[str, tuple[str, ...]] = {
    "report a bug in our repo": ("mcp__github__create_issue",),
    "which tickets are open": ("mcp__github__list_issues", "mcp__jira__search_jql"),
    "reply on an issue": ("mcp__github__add_issue_comment",),
    "open a PR for my branch": ("mcp__github__create_pull_request",),
    "merge the pull request": ("mcp__github__merge_pull_request",),
    "what does this pull request change": ("mcp__github__get_pull_request_files",),
    "did the github actions pass": ("mcp__github__list_workflow_runs",),
    "run failed workflow jobs again": ("mcp__github__rerun_failed_jobs",),
    "publish release notes": ("mcp__github__create_release",),
    "tell the team in the slack channel": ("mcp__slack__chat_post_message",),
    "react with thumbs up emoji": ("mcp__slack__reactions_add",),
    "what was said in the channel": ("mcp__slack__conversations_history",),
    "find a colleague by email address": ("mcp__slack__users_lookup_by_email",),
    "move ticket to done": ("mcp__jira__transition_issue",),
    "book time spent on a ticket": ("mcp__jira__log_work",),
    "schedule a meeting with Anna": ("mcp__gcal__create_event",),
    "when is everybody free": ("mcp__gcal__find_free_slots",),
    "cancel the appointment": ("mcp__gcal__delete_event",),
    "write a mail to a customer": ("mcp__gmail__send_email", "mcp__gmail__create_draft"),
    "find mails from my bank": ("mcp__gmail__search_threads",),
    "run sql select": ("mcp__postgres__run_query",),
    "which columns does the table have": ("mcp__postgres__list_tables",),
    "why is this query slow": ("mcp__postgres__explain_query",),
    "logs of a crashing container": ("mcp__k8s__get_pod_logs",),
    "more replicas for the web deployment": ("mcp__k8s__scale_deployment",),
    "roll back a deployment": ("mcp__k8s__rollout_undo",),
    "temporary download link for a file in a bucket": ("mcp__aws__s3_presign_url",),
    "download from s3": ("mcp__aws__s3_get_object",),
    "shut down a virtual machine": ("mcp__aws__ec2_stop_instances",),
    "how much do we spend on cloud services": ("mcp__aws__cost_by_service",),
    "rotate access keys": ("mcp__aws__iam_rotate_access_key",),
    "call a lambda function": ("mcp__aws__lambda_invoke",),
    "bill a customer": ("mcp__stripe__create_invoice",),
    "give the money back": ("mcp__stripe__refund_charge",),
    "discount code": ("mcp__stripe__create_coupon",),
    "coordinates of an address": ("mcp__maps__geocode",),
    "route from Berlin to Paris by train": ("mcp__maps__directions",),
    "restaurants around here": ("mcp__maps__places_nearby",),
    "will it rain tomorrow": ("mcp__weather__daily_forecast", "mcp__weather__current_conditions"),
    "storm warning": ("mcp__weather__severe_alerts",),
    "stack trace of an exception": ("mcp__sentry__get_stacktrace",),
    "export design as svg": ("mcp__figma__export_node",),
    "add a paragraph to a notion page": ("mcp__notion__append_blocks",),
    "play some music": ("mcp__spotify__play_track",),
    "similar songs": ("mcp__spotify__recommendations",),
    "switch on the lamp": ("mcp__home__turn_on_light",),
    "make the room warmer": ("mcp__home__set_thermostat",),
    "unlock the front door": ("mcp__home__lock_door",),
    "where is my parcel": ("mcp__shop__track_shipment",),
    "is the article in stock": ("mcp__shop__stock_level",),
    "turn word file into pdf": ("mcp__docs__convert_to_pdf",),
    "read text from a scanned image": ("mcp__docs__ocr_image", "mcp__docs__extract_text"),
    "combine pdf files": ("mcp__docs__merge_pdfs",),
    "transcription of a recording": ("mcp__media__transcribe_audio",),
    "make a picture smaller": ("mcp__media__resize_image",),
    "cut a video": ("mcp__media__trim_video",),
    "translate into French": ("mcp__lang__translate_text",),
    "spelling mistakes": ("mcp__lang__check_grammar",),
    "when does the certificate expire": ("mcp__net__check_certificate",),
    "who owns this domain": ("mcp__net__whois",),
    "is the server reachable": ("mcp__net__ping_host",),
    "cheap flights": ("mcp__travel__search_flights",),
    "reserve a hotel room": ("mcp__travel__book_hotel",),
    "euro to dollar": ("mcp__travel__currency_convert",),
    "exchange rate between currencies": ("mcp__travel__currency_convert",),
    "take vacation": ("mcp__hr__request_leave",),
    "who is her manager, organisation chart": ("mcp__hr__org_chart",),
    "flaky tests": ("mcp__ci__list_flaky_tests",),
    "start a build": ("mcp__ci__trigger_build",),
    "change a stored password": ("mcp__vault__rotate_password",),
    "edit a file": ("patch", "write_file"),
    "run a shell command": ("terminal",),
    "look for a pattern in files": ("search_files",),
}

_SERVICES = (
    "asana trello zendesk hubspot shopify gitlab bitbucket linear airtable dropbox monday pipedrive clickup freshdesk"
).split()
_THINGS = "board webhook template report field dashboard tag group view automation comment checklist".split()
_ACTIONS = {
    "list": "List all {thing}s of a {service} workspace.",
    "get": "Get one {thing} of {service} by its id.",
    "create": "Create a {thing} in {service}.",
    "update": "Update a {thing} in {service}.",
    "delete": "Delete a {thing} from {service}.",
    "archive": "Archive a {thing} of {service}.",
}


def catalogue(count: int) -> dict[str, tuple[str, str]]:
    """`count` tools: name to toolset and description."""
    found = {
        f"mcp__{server}__{name}": (f"mcp-{server}", description)
        for server, tools in WRITTEN.items()
        for name, description in tools.items()
    }
    for service in _SERVICES:
        for thing in _THINGS:
            for action, text in _ACTIONS.items():
                if len(found) < count:
                    name = f"mcp__{service}__{action}_{thing}"
                    found[name] = (f"mcp-{service}", text.format(thing=thing, service=service))
    assert len(found) == count
    return found

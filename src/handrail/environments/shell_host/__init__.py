"""Runs beside the shell, on this machine or on another: the shell host.

Everything in this package needs only the standard library of Python 3.8, because `transport/bundle.py` sends it as text to hosts
and containers where Handrail is not installed. It imports nothing from the rest of Handrail.

The processes, from the outside in:

    effect watcher    is asked before anything below it changes a file, and writes the journal
    fork server       forks shell supervisors, and cleans up after one that was killed
    shell supervisor  owns one bash: starts it, restores it, ends what runs in it
    bash              runs the commands; `bash_template.py` is the only script that it is given
    job supervisor    owns one background process and its log

    live shell        the client's end of a shell supervisor: in Handrail's process if local, otherwise in the frame relay
    frame relay       carries frames between a live shell and a client on another machine or outside the container
"""

"""How this process reaches a shell host.

link.py      what an environment uses; `DirectLink` reaches a shell on this machine, forked from a fork server
session.py   a link to a shell elsewhere: frames over a channel
channel.py   a byte stream to a Python started by a local program (docker exec, ssh); stream.py: the same through an SDK
bundle.py    the shell host as text, which is sent over the channel
tunnel.py    lets commands elsewhere reach a proxy of this machine
idle_watcher.py   ends a container that nothing uses any longer
"""

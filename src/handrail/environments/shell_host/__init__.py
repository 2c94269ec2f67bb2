"""What runs beside the shell, here or on another machine.

Everything in this package needs only the standard library of Python 3.8, because `bundle.py` sends it as text to hosts and
containers where nothing of ours is installed. It imports nothing from the rest of Handrail.

Who is who, from the outside in:

    guard     forks keepers, and sweeps up what a killed keeper leaves behind
    keeper    owns one bash: starts it, restores it, ends what runs in it
    bash      runs the commands; `line.py` is all that it is told
    minder    owns one background process with its log

    liveshell the other end of a keeper: in the runtime's own process when the shell is local, in `pump` when it is not
    pump      carries frames between a liveshell and a client that is elsewhere
"""

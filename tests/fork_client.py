"""A command that a shell finds as `npumake` or `doit`: its run is one of a fork server.

A script of forks.command_folder runs it, without the site's packages: it starts in milliseconds.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys


def run(address: str, module: str) -> int:
    """The exit code of `python -P -m module`, with the arguments and the output of this process."""
    readable, writable = os.pipe()
    mask = os.umask(0)
    os.umask(mask)
    message = {
        "arguments": ["-P", "-m", module, *sys.argv[1:]],
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "path": [],
        "umask": mask,
        "limits": None,
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
        channel.connect(address)
        socket.send_fds(channel, [json.dumps(message).encode()], [1, 2, writable])
    os.close(writable)
    code = int(os.read(readable, 16))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code

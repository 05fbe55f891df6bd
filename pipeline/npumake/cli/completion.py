"""npumake completion: print the script that completes verbs, options and names in a shell

  bash   in ~/.bashrc:                    eval "$(npumake completion bash)"
  zsh    in ~/.zshrc, behind compinit:    eval "$(npumake completion zsh)"
  fish   in ~/.config/fish/config.fish:   npumake completion fish | source

example:
  npumake completion bash >> ~/.bash_completion

Completed are verbs, options and their choices, projects, variants, nodes, targets and files.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from npumake.errors import ProjectError
from npumake.extras import install_line

SHELLS = ("bash", "zsh", "fish")
LIBRARY = "argcomplete"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(arguments: argparse.Namespace) -> int:
    print(library().shellcode(["npumake"], shell=arguments.shell))
    return 0


def library() -> Any:
    """argcomplete: it speaks the protocol of each shell, quotes, and splits words at colons as bash
    does. Only a completion loads it. Raises ProjectError where it is absent."""
    try:
        return import_module(LIBRARY)
    except ImportError:
        hint = install_line(LIBRARY)
        raise ProjectError(
            f"completion needs {LIBRARY}, which is not installed", hint=hint
        ) from None

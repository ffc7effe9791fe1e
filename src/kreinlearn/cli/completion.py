"""kreinlearn completion: scripts that let a shell complete words, made from the parsers."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from kreinlearn.cli.parser import parser

FILES = "@files"  # stands for the names of files


class Flag(NamedTuple):
    """What a flag is for, and the words to choose from: FILES, "-" if unknown, "" for no value."""

    help: str
    values: str


class Command(NamedTuple):
    """The words of a command, and what may follow those that take a value."""

    name: str
    help: str
    flags: dict[str, Flag]
    words: str  # what else there may be


def run(options: argparse.Namespace) -> int:
    script = {"bash": bash, "zsh": zsh, "fish": fish}[options.shell]
    print(script(commands()), end="")
    return 0


def commands() -> list[Command]:
    (choices,) = [a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)]
    helps = {action.dest: action.help or "" for action in choices._choices_actions}
    return [_command(name, helps[name], one) for name, one in choices.choices.items()]


def _command(name: str, what: str, arguments: argparse.ArgumentParser) -> Command:
    flags, words = dict[str, Flag](), ""
    for action in arguments._actions:
        flag = Flag(action.help or "", "" if action.nargs == 0 else _choices(action))
        flags |= dict.fromkeys(action.option_strings, flag)
        words = words if action.option_strings else flag.values
    return Command(name, what, flags, words)


def _choices(action: argparse.Action) -> str:
    """Return what may follow a flag; "-" if nothing is known about it."""
    if action.choices is not None:
        return " ".join(map(str, action.choices))
    if action.dest == "kernel":
        from kreinlearn.cli.kernels import names

        return " ".join(names())
    if action.dest == "estimator":
        from kreinlearn.cli.arguments import ESTIMATORS

        return " ".join(ESTIMATORS)
    return FILES if getattr(action.type, "__name__", "") == "Path" else "-"


# Shells


def bash(commands: list[Command]) -> str:
    cases = "".join(_bash_case(command) for command in commands)
    return f"""# kreinlearn in bash: source <(kreinlearn completion bash)
_kreinlearn() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    local flags="" values="" words="{" ".join(c.name for c in commands)} --help --version"
    if (( COMP_CWORD > 1 )); then
        words=""
        case "${{COMP_WORDS[1]}}" in
{cases}        esac
    fi
    if [[ "$values" == "{FILES}" || ( -z "$values" && "$word" != -* && "$words" == "{FILES}" ) ]]
    then
        COMPREPLY=( $(compgen -f -- "$word") )
    elif [[ -n "$values" ]]; then
        COMPREPLY=( $(compgen -W "${{values#-}}" -- "$word") )
    elif [[ "$word" == -* ]]; then
        COMPREPLY=( $(compgen -W "$flags $words" -- "$word") )
    else
        COMPREPLY=( $(compgen -W "$words" -- "$word") )
    fi
}}
complete -o filenames -F _kreinlearn kreinlearn
"""


def _bash_case(command: Command) -> str:
    taking: dict[str, list[str]] = {}
    for name, flag in command.flags.items():
        if flag.values:
            taking.setdefault(flag.values, []).append(name)
    lines = "".join(
        f'                    {"|".join(flags)}) values="{words}" ;;\n'
        for words, flags in taking.items()
    )
    inner = f'                case "$before" in\n{lines}                esac\n' if lines else ""
    return (
        f"            {command.name})\n"
        f'                flags="{" ".join(command.flags)}" words="{command.words}"\n'
        f"{inner}                ;;\n"
    )


def zsh(commands: list[Command]) -> str:
    """Return the function of bash, which zsh understands."""
    head = "# kreinlearn in zsh: source <(kreinlearn completion zsh)\n"
    load = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
    return head + load + bash(commands).partition("\n")[2]


def fish(commands: list[Command]) -> str:
    lines = ["# kreinlearn in fish: kreinlearn completion fish | source"]
    first = "complete -c kreinlearn -n __fish_use_subcommand"
    lines += [f"{first} -f -a {command.name} -d {_quoted(command.help)}" for command in commands]
    for command in commands:
        here = f"complete -c kreinlearn -n '__fish_seen_subcommand_from {command.name}'"
        for name, flag in command.flags.items():
            dash = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            lines.append(f"{here} {dash}{_fish_value(flag.values)} -d {_quoted(flag.help)}")
        if command.words not in ("", "-", FILES):
            lines.append(f"{here} -f -a {_quoted(command.words)}")
    return "\n".join(lines) + "\n"


def _fish_value(words: str) -> str:
    return {"": "", "-": " -x", FILES: " -r -F"}.get(words, f" -x -a {_quoted(words)}")


def _quoted(text: str) -> str:
    text = text.replace("%%", "%")
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

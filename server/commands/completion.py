"""`runstep completion SHELL`: print what a shell needs to complete the commands and their flags.

All of it is read from the parser of arguments, so that no flag is missing.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from runtime.errors import InternalError

_PROGRAM = "runstep"
# What a metavar stands for; values of all others are not completed.
_FILES = {"PATH", "FILE", "STRING", "OUT", "URL|DIR"}
_FOLDERS = {"DIR"}


@dataclasses.dataclass(frozen=True, slots=True)
class Flag:
    """An option, or a positional argument, which has no names."""

    names: tuple[str, ...]
    help: str
    value: str = ""  # what follows: "", "files", "folders", "words" or "anything"
    words: tuple[str, ...] = ()
    is_optional: bool = False  # whether the value may be left out
    repeats: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """A command with its options and positional arguments."""

    name: str
    help: str
    options: tuple[Flag, ...]
    arguments: tuple[Flag, ...]


def completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Print the script of a shell: bash, zsh or fish."""
    print("\n".join(_SCRIPTS[shell](commands_of(parser))))
    return 0


def commands_of(parser: argparse.ArgumentParser) -> list[Command]:
    """Return the commands of a parser, with their flags."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            return [
                _command(name, helps.get(name, ""), sub) for name, sub in action.choices.items()
            ]
    raise InternalError("the parser has no commands")


def _command(name: str, text: str, parser: argparse.ArgumentParser) -> Command:
    flags = [_flag(action) for action in parser._actions]
    return Command(
        name, text,
        tuple(flag for flag in flags if flag.names),
        tuple(flag for flag in flags if not flag.names),
    )  # fmt: skip


def _flag(action: argparse.Action) -> Flag:
    words: tuple[str, ...] = ()
    if action.choices is not None:
        words = tuple(str(each) for each in action.choices)
    elif action.metavar == "BOOL":
        words = ("true", "false")
    value = "anything"
    if action.nargs == 0:
        value = ""
    elif words:
        value = "words"
    elif action.metavar in _FOLDERS:
        value = "folders"
    elif action.metavar in _FILES:
        value = "files"
    text = " ".join((action.help or "").replace("%%", "%").split())
    repeats = isinstance(action, argparse._AppendAction)
    return Flag(tuple(action.option_strings), text, value, words, action.nargs == "?", repeats)


def _bash(commands: Sequence[Command]) -> Iterator[str]:
    names = " ".join(command.name for command in commands)
    yield f"# bash completion of {_PROGRAM}"
    yield f"_{_PROGRAM}() {{"
    yield "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} i"
    yield "  # --flag=value is three words for readline"
    yield '  if [[ $current == "=" ]]; then current=""'
    yield '  elif [[ $previous == "=" ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi'
    yield "  COMPREPLY=()"
    yield "  if ((COMP_CWORD == 1)); then"
    yield f"    {_bash_words(f'{names} --help')}; return"
    yield "  fi"
    yield '  case "${COMP_WORDS[1]} $previous" in'
    for command in commands:
        for flag in command.options:
            if flag.value:
                value = f"{_bash_value(flag)}; return"
                if flag.is_optional:
                    value = f"if [[ $current != -* ]]; then {value}; fi"
                for name in flag.names:
                    yield f'    "{command.name} {name}") {value} ;;'
    yield "  esac"
    yield '  case "${COMP_WORDS[1]}" in'
    for command in commands:
        options = " ".join(name for flag in command.options for name in flag.names)
        yield f"    {command.name})"
        yield f"      if [[ $current == -* ]]; then {_bash_words(options)}"
        for flag in command.arguments[:1]:
            yield f"      else {_bash_value(flag)}"
        yield "      fi ;;"
    yield "  esac"
    yield "}"
    yield f"complete -F _{_PROGRAM} {_PROGRAM}"


def _bash_value(flag: Flag) -> str:
    """Return a command of bash that sets COMPREPLY to the values of a flag."""
    match flag.value:
        case "words":
            return _bash_words(" ".join(flag.words))
        case "folders" | "files":
            kind = "-d" if flag.value == "folders" else "-f"
            names = f"local IFS=$'\\n'; COMPREPLY=($(compgen {kind} -- \"$current\"))"
            return f"compopt -o filenames 2>/dev/null; {names}"
    return ":"


def _bash_words(words: str) -> str:
    return f'COMPREPLY=($(compgen -W "{words}" -- "$current"))'


def _zsh(commands: Sequence[Command]) -> Iterator[str]:
    yield f"#compdef {_PROGRAM}"
    yield f"_{_PROGRAM}() {{"
    yield "  local context state state_descr line"
    yield "  typeset -A opt_args"
    yield "  _arguments -C '1: :->command' '*:: :->arguments'"
    yield "  case $state in"
    yield "  command)"
    yield "    local -a commands=("
    for command in commands:
        yield f"      {_quoted(f'{command.name}:{command.help}')}"
    yield "    )"
    yield "    _describe command commands ;;"
    yield "  arguments)"
    yield "    case $words[1] in"
    for command in commands:
        yield f"    {command.name})"
        specs = [*_zsh_options(command), *(f":{_zsh_value(flag)}" for flag in command.arguments)]
        yield "      _arguments \\"
        yield " \\\n".join(f"        {_quoted(spec)}" for spec in specs) + " ;;"
    yield "    esac ;;"
    yield "  esac"
    yield "}"
    yield f'if [[ $funcstack[1] == _{_PROGRAM} ]]; then _{_PROGRAM} "$@"'
    yield f"else compdef _{_PROGRAM} {_PROGRAM}; fi"


def _zsh_options(command: Command) -> Iterator[str]:
    for flag in command.options:
        text = flag.help
        for mark in "\\[]:":
            text = text.replace(mark, f"\\{mark}")
        for name in flag.names:
            once = "*" if flag.repeats else ""
            equals = "=" if flag.value and name.startswith("--") else ""
            optional = ":" if flag.is_optional else ""
            value = f":{optional}{_zsh_value(flag)}" if flag.value else ""
            yield f"{once}{name}{equals}[{text}]{value}"


def _zsh_value(flag: Flag) -> str:
    """Return `message:action`, which say what a value is and how it is completed."""
    match flag.value:
        case "words":
            return f"value:({' '.join(flag.words)})"
        case "folders":
            return "folder:_files -/"
        case "files":
            return "file:_files"
    return "value: "


def _fish(commands: Sequence[Command]) -> Iterator[str]:
    yield f"# fish completion of {_PROGRAM}"
    yield f"complete -c {_PROGRAM} -f"
    for command in commands:
        text = _fish_quoted(command.help)
        yield f"complete -c {_PROGRAM} -n __fish_use_subcommand -a {command.name} -d {text}"
    for command in commands:
        begin = f"complete -c {_PROGRAM} -n '__fish_seen_subcommand_from {command.name}'"
        for flag in command.options:
            names = "".join(
                f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
                for name in flag.names
            )
            yield f"{begin}{names} -d {_fish_quoted(flag.help)}{_fish_value(flag)}"
        for flag in command.arguments:
            if value := _fish_value(dataclasses.replace(flag, is_optional=True)):
                yield f"{begin}{value}"


def _fish_value(flag: Flag) -> str:
    if not flag.value:
        return ""
    if flag.value == "files":
        return " -F" if flag.is_optional else " -r -F"
    required = " -f" if flag.is_optional else " -x"  # -x: a value that is no file
    match flag.value:
        case "words":
            return f"{required} -a '{' '.join(flag.words)}'"
        case "folders":
            return f"{required} -a '(__fish_complete_directories)'"
    return required


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_SCRIPTS: Mapping[str, Callable[[Sequence[Command]], Iterator[str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
SHELLS = tuple(_SCRIPTS)

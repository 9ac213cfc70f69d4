"""What the commands of inference share: how they end, and how they say which command this was."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fokkerflow.cli.app import BAD_INPUT, FAILED, stop

JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
_ABOUT_THIS_TIME = ("resume", "overwrite", "as_json")
"""Options that do not belong to the command that makes the result again."""


@contextlib.contextmanager
def ending_well(interrupted: str = "Interrupted.") -> Iterator[None]:
    """Turn what can go wrong into a message and an exit code: 2 for what the user can mend, 1 for a run that failed."""
    import numpy as np

    from fokkerflow.inference import InferenceError
    from fokkerflow.sde.simulate import SimulationError

    message, code = "", FAILED
    try:
        with _warnings_as_text():
            yield
        return
    except KeyboardInterrupt:
        message = interrupted
    except (InferenceError, SimulationError, np.linalg.LinAlgError) as error:
        message = str(error)
    except PermissionError as error:
        message, code = f"{_name(error)}: cannot be written ({error.strerror}).", BAD_INPUT
    except OSError as error:
        message = f"{_name(error)}: {error.strerror or error}. {interrupted}"
    except (ValueError, TypeError) as error:
        message, code = str(error), BAD_INPUT
    stop(message, code)


def _name(error: OSError) -> str:
    """The file that an error is about, under the name that it would have had in the end."""
    return re.sub(r"\.([^/\\]+)\.\w+\.tmp$", r"\1", str(error.filename)) if error.filename else "A file"


@contextlib.contextmanager
def _warnings_as_text() -> Iterator[None]:
    """A warning is for the user, who did not write the line of code that it points at."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        typer.secho(f"Warning: {message}", err=True, fg=typer.colors.YELLOW)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def command_line(context: typer.Context) -> str:
    """The command as it was given, without what is only about this time."""
    words = ["fokkerflow", str(context.info_name)]
    for parameter in context.command.params:
        name, value = str(parameter.name), context.params.get(str(parameter.name))
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE" or name in _ABOUT_THIS_TIME:
            continue
        many = value if isinstance(value, (list, tuple)) else [value]
        for one in many:
            words += [str(one)] if parameter.param_type_name == "argument" else [parameter.opts[0], str(one)]
    return shlex.join(words)


def anywhere(text: str) -> str:
    """A file, alone or before a colon, by its absolute path: to be found again from another folder. Other words stay."""
    where, colon, name = text.rpartition(":") if ".py:" in text else (text, "", "")
    return f"{Path(where).resolve()}{colon}{name}" if Path(where).is_file() else text


def print_json(data: Mapping[str, Any]) -> None:
    """One object on standard output; numbers that JSON does not know become null."""
    typer.echo(json.dumps(without_infinities(data), indent=2, ensure_ascii=False, allow_nan=False))


def without_infinities(value: Any) -> Any:
    """Plain data for JSON: numbers that it does not know become null."""
    if isinstance(value, Mapping):
        return {str(key): without_infinities(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_infinities(item) for item in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value

"""What is written on the command line, turned into models, laws and numbers."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fokkerflow.cli.app import stop

if TYPE_CHECKING:
    from fokkerflow.sde import SDE
    from fokkerflow.training import Law

MODEL_HELP = "A model's name, as listed by 'fokkerflow models', or your own: 'my_sde.py:MySDE'."
LAW_HELP = "The training law: the name of one that comes with the package, 'law.json', or 'my_sde.py:LAW'."


def find_model(text: str) -> SDE:
    """A shipped model by its name, or a user's own, a class or an object, by ``file.py:name`` or ``module:name``."""
    from fokkerflow.sde import MODELS, SDE

    if text in MODELS:
        return MODELS[text]()
    if ":" not in text:
        stop(f"Got model {text!r}, expected one of {', '.join(MODELS)}, or your own as my_sde.py:MySDE.")
    found = _named_object(text)
    sde = found() if isinstance(found, type) and issubclass(found, SDE) else found
    if not isinstance(sde, SDE):
        stop(
            f"{text}: got {found!r}, expected a model: a subclass of fokkerflow.SDE, or what fokkerflow.from_functions returns."
        )
    return sde


def find_law(text: str, sde: SDE) -> Law | str:
    """A law from a JSON file or a Python file; anything else is the name of one that comes with the package."""
    from fokkerflow.training import Law

    if text.endswith(".json"):
        try:
            return Law.from_dict(sde, json.loads(Path(text).read_text()))
        except (OSError, KeyError, TypeError, ValueError) as error:
            stop(f"{text}: this is not a law ({error}). docs/training.md shows one.")
    if ":" not in text:
        return text
    law = _named_object(text)
    if not isinstance(law, Law):
        stop(f"{text}: got {law!r}, expected a fokkerflow.Law.")
    return law


def parse_params(text: str) -> dict[str, float]:
    """``"a=1,b=2"`` as a dict."""
    values = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, number = item.partition("=")
        try:
            if not equals:
                raise ValueError
            values[name.strip()] = float(number)
        except ValueError:
            raise ValueError(f"Got {item!r} in --params, expected name=number.") from None
    return values


def parse_settings(items: Sequence[str]) -> dict[str, Any]:
    """``["components=8", "spreads=[1, 4]"]`` as a dict; values are JSON, or words."""
    settings: dict[str, Any] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            stop(f"Got {item!r} in --set, expected name=value.")
        try:
            parsed = json.loads(value)
        except json.JSONDecodeError:
            parsed = value
        settings[name.strip()] = tuple(parsed) if isinstance(parsed, list) else parsed
    return settings


def _named_object(text: str) -> Any:
    """What ``file.py:name`` or ``package.module:name`` stands for. This runs the file, which is the user's own."""
    where, _, name = text.rpartition(":")
    try:
        module = _load_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except Exception as error:
        stop(f"{where} cannot be imported: {type(error).__name__}: {error}")
    if not hasattr(module, name):
        stop(f"{where} has no {name!r}.")
    return getattr(module, name)


def _load_file(path: Path) -> Any:
    """The module in a file, loaded once, so that a model and a law from it agree about what the model is."""
    name = path.stem
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(path.resolve()):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None or not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

"""Writes docs/python-reference.md from the docstrings: ``python python/reference.py FILE``."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import dosimeter
from dosimeter._names import SIGNED

#: Bridges whose package may be missing when the reference is made.
BRIDGES = (
    "attribute", "dp_accounting", "jax", "jax_privacy", "mlflow", "opacus", "ray", "recording",
    "risk", "torch", "trainer", "transformers",
)
#: Where the classes of a bridge are, if not in its own file.
ELSEWHERE = {"torch": ("_torch_gradients", "_torch_records", "_torch_recorder")}

HEAD = """# Python reference

Made from the docstrings by `python/reference.py`; a test compares. For an overview see
[python.md](python.md).
"""


def reference() -> str:
    parts = [HEAD]
    functions = [name for name in dosimeter.__all__ if inspect.isroutine(getattr(dosimeter, name))]
    classes = [name for name in dosimeter.__all__ if inspect.isclass(getattr(dosimeter, name))]
    parts.append("## Functions\n")
    parts += [entry(f"dosimeter.{name}", getattr(dosimeter, name)) for name in functions]
    parts.append("## Classes\n")
    parts += [class_entry(f"dosimeter.{name}", getattr(dosimeter, name)) for name in classes]
    parts.append("## Bridges\n")
    for name in BRIDGES:
        parts.append(bridge(name))
    return "\n".join(parts)


def listed_names(tree: ast.Module) -> set[str]:
    """The names of ``__all__``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def bridge(name: str) -> str:
    """A bridge from its source alone, so that its package need not be there."""
    path = Path(importlib.import_module("dosimeter").__file__ or "").with_name(f"{name}.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = plain(ast.get_docstring(tree) or "")
    parts = [f"### `dosimeter.{name}`\n\n{said}\n"]
    nodes = list(tree.body)
    for other in ELSEWHERE.get(name, ()):
        found = ast.parse(path.with_name(f"{other}.py").read_text(encoding="utf-8"))
        public = listed_names(tree)
        nodes += [node for node in found.body if getattr(node, "name", None) in public]
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            text = ast.get_docstring(node)
            if text is None:
                continue
            shown = f"{node.name}{arguments(node)}"
            parts.append(f"**`{shown}`**\n\n{plain(text)}\n")
            members = node.body if isinstance(node, ast.ClassDef) else []
            listed = [
                f"- **`{member.name}{arguments(member)}`**: {first_paragraph(text)}"
                for member in members
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_")
                and (text := ast.get_docstring(member)) is not None
            ]
            if listed:
                parts.append("\n".join(listed) + "\n")
    return "\n".join(parts)


def arguments(node: ast.FunctionDef | ast.ClassDef) -> str:
    """Names and defaults of a function; nothing for a class or a property."""
    decorators = [ast.unparse(one) for one in node.decorator_list]
    if isinstance(node, ast.ClassDef) or "property" in decorators:
        return ""
    for argument in [*node.args.args, *node.args.kwonlyargs]:
        argument.annotation = None
    for rest in (node.args.vararg, node.args.kwarg):
        if rest is not None:
            rest.annotation = None
    if node.args.args and node.args.args[0].arg in ("self", "cls"):
        del node.args.args[0]
    return f"({ast.unparse(node.args)})".replace("=SIGNED", f"={SIGNED!r}")


def entry(name: str, thing: Any) -> str:
    return f"### `{name}{signature(thing)}`\n\n{plain(inspect.getdoc(thing) or '')}\n"


def class_entry(name: str, kind: type) -> str:
    parts = [f"### class `{name}`\n\n{plain(inspect.getdoc(kind) or '')}\n"]
    own = [base for base in reversed(kind.__mro__) if base.__module__.startswith("dosimeter")]
    members = {member: value for base in own for member, value in vars(base).items()}
    for member, value in sorted(members.items()):
        if member.startswith("_"):
            continue
        thing = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        text = inspect.getdoc(thing) if callable(thing) or isinstance(thing, property) else None
        if text:
            shown = member if isinstance(thing, property) else f"{member}{signature(thing)}"
            parts.append(f"- **`{shown}`**: {first_paragraph(text)}")
    return "\n".join(parts) + "\n"


def signature(thing: Any) -> str:
    """Names and defaults; the types are in the source and in every editor."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "()"
    bare = [
        parameter.replace(annotation=parameter.empty)
        for name, parameter in found.parameters.items()
        if name not in ("self", "cls")
    ]
    return str(inspect.Signature(bare))


def first_paragraph(text: str) -> str:
    return " ".join(plain(text).split("\n\n")[0].split())


def plain(text: str) -> str:
    """A docstring as Markdown: examples become code, roles become names."""
    import re

    text = re.sub(r":(?:class|func|meth|mod):`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        begins = line.lstrip().startswith(">>> ")
        if begins and not code:
            lines += ["```pycon"]
            code = True
        elif code and not line.strip():
            lines += ["```"]
            code = False
        lines.append(line)
    return "\n".join(lines + (["```"] if code else []))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")

"""Tables for notebooks: plain HTML without scripts, readable on light and dark pages."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .errors import DosimeterError

if TYPE_CHECKING:
    from .claims import Account, Claim


def page(*parts: str) -> str:
    return f'<div style="max-width:60em">{"".join(parts)}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; every cell is escaped."""
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def definition(title: str, rows: Iterable[tuple[str, str]]) -> str:
    return page(f"<b>{html.escape(title)}</b>", table(["", ""], rows))


def bullets(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    listed = "".join(f"<li>{html.escape(item)}</li>" for item in items)
    return f"<p><b>{html.escape(title)}</b></p><ul>{listed}</ul>"


def claims_table(claims: Iterable[Claim]) -> str:
    rows = [
        (
            claim.lens or claim.method or "",
            claim.standing,
            claim.release,
            f"{claim.quantity}{' @ ' + str(claim.at) if str(claim.at) else ''}",
            claim.shown,
        )
        for claim in claims
    ]
    return table(["lens", "standing", "seen", "quantity", "number"], rows)


def account_page(account: Account) -> str:
    """The claims, the figure, what does not hold, and the assumptions."""
    try:
        figure = account.figure().svg
    except DosimeterError as error:
        figure = f"<p>no figure: {html.escape(str(error))}</p>"
    unsupported = [f"{one.lens}: {one.reason}" for one in account.unsupported]
    assumptions = list(dict.fromkeys(text for claim in account for text in claim.assumptions))
    return page(
        f"<b>{html.escape(repr(account.run))}</b>",
        claims_table(account),
        figure,
        bullets("Warnings", account.warnings),
        bullets("Does not hold", unsupported),
        bullets("Assumptions", assumptions),
    )

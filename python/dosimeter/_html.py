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
    """What may be signed, the lens behind it and the heuristic beside it, the figure, what must
    hold; the other lenses are folded."""
    try:
        figure = account.figure().svg
    except DosimeterError as error:
        figure = f"<p>no figure: {html.escape(str(error))}</p>"
    sign = account.sign
    shown = {sign.lens, sign.beside} if sign else {claim.lens for claim in account}
    main = [claim for claim in account if claim.lens in shown]
    others = [claim for claim in account if claim.lens not in shown]
    parts = [f"<p><b>Sign:</b> {html.escape(str(sign))}</p>"] if sign else []
    parts += [
        f"<b>{html.escape(repr(account.run))}</b>",
        claims_table(main),
        figure,
        bullets("Warnings", account.warnings),
        bullets("Assumptions", assumptions(main)),
    ]
    if others:
        unsupported = [f"{one.lens}: {one.reason}" for one in account.unsupported]
        folded = [
            claims_table(others),
            bullets("Assumptions of these lenses", assumptions(others)),
            bullets("Does not hold", unsupported),
        ]
        parts.append(f"<details><summary>Other lenses</summary>{''.join(folded)}</details>")
    return page(*parts)


def assumptions(claims: Iterable[Claim]) -> list[str]:
    """Each assumption once, with the lenses that make it where not all do."""
    makers: dict[str, list[str]] = {}
    lenses: list[str] = []
    for claim in claims:
        name = claim.lens or claim.method or ""
        if name not in lenses:
            lenses.append(name)
        for text in claim.assumptions:
            whose = makers.setdefault(text, [])
            if name not in whose:
                whose.append(name)
    common = [text for text, whose in makers.items() if len(whose) == len(lenses)]
    rest = [
        f"{text} [{', '.join(whose)}]"
        for text, whose in makers.items()
        if len(whose) < len(lenses)
    ]
    return common + rest

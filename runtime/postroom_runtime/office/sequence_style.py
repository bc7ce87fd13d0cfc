"""The colours and type of a sequence diagram: Jupyter's where there are any, else a pair of its own.

Each rule first names a plain colour, which programs that know no variables draw with.
"""

from collections.abc import Mapping
from typing import Final

_LIGHT: Final = {
    "bg": "#ffffff",
    "ink": "#111111",
    "user": "#1976d2",
    "agent": "#7800c2",
    "tool": "#0097a7",
    "now": "#f57c00",
    "bad": "#d32f2f",
    "ok": "#388e3c",
}
_DARK: Final = {
    "bg": "#1f1f1f",
    "ink": "#f2f2f2",
    "user": "#2196f3",
    "agent": "#d48fff",
    "tool": "#00bcd4",
    "now": "#ff9800",
    "bad": "#f44336",
    "ok": "#4caf50",
}
_JUPYTER: Final = {
    "bg": "--jp-layout-color1",
    "ink": "--jp-content-font-color0",
    "user": "--jp-brand-color1",
    "agent": "--jp-mirror-editor-operator-color",
    "tool": "--jp-info-color1",
    "now": "--jp-warn-color1",
    "bad": "--jp-error-color1",
    "ok": "--jp-success-color1",
}
_SHARES: Final = {"user": 82, "agent": 72, "tool": 68, "now": 68, "bad": 78, "ok": 76}
"""How much of each accent stays when mixed with ink: readable as text on both grounds."""
_INKS: Final = {"hair": 10, "line": 20, "edge": 48, "act": 34, "ink3": 60, "ink2": 70, "ink1": 88}

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
MONO: Final = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

_RULES: Final = (
    ("text", {"fill": "ink1"}),
    (".bg", {"fill": "bg", "stroke": "line"}),
    (".halo", {"stroke": "bg"}),
    (".lf", {"stroke": "line"}),
    (".lf.pre", {"stroke": "hair"}),
    (".rule", {"stroke": "line"}),
    (".gap", {"stroke": "hair"}),
    (".act", {"fill": "act"}),
    (".tm,.ag,.key", {"fill": "ink3"}),
    (".ring", {"fill": "bg", "stroke": "ink3"}),
    (".open", {"fill": "bg"}),
    (".det", {"fill": "bg"}),
)

_STATIC: Final = """\
.pr-seq{max-width:none !important}
.pr-seq text{font:11px %(font)s;font-family:var(--jp-ui-font-family,%(font)s)}
.pr-seq .hn{font-weight:600;font-size:12px}
.pr-seq .tm{font-size:10.5px;font-variant-numeric:tabular-nums}
.pr-seq .mono{font-family:%(mono)s;font-family:var(--jp-code-font-family,%(mono)s);font-weight:500}
.pr-seq .b{font-weight:600}
.pr-seq .halo{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}
.pr-seq .ar{fill:none;stroke-width:1.5}.pr-seq .ar.now{stroke-width:2.5}.pr-seq .ar.thin{stroke-width:1.5}
.pr-seq .ref{stroke-dasharray:4 3}.pr-seq .dot{stroke-dasharray:2 3}.pr-seq .ret{stroke-dasharray:7 3}
.pr-seq .lf.pre{stroke-dasharray:1 5}.pr-seq .gap{stroke-dasharray:2 4}
.pr-seq .hd{stroke-width:1.5;stroke-linejoin:round}.pr-seq .det{stroke-width:1}
.pr-seq .hit{fill:transparent}.pr-seq g:hover>.hit{fill:rgba(128,128,128,.12)}
"""


def _mixed(one: str, share: float, other: str) -> str:
    def part(at: int) -> int:
        mine, theirs = int(one[at : at + 2], 16), int(other[at : at + 2], 16)
        return round(mine * share / 100 + theirs * (100 - share) / 100)

    return "#" + "".join(f"{part(at):02x}" for at in (1, 3, 5))


def _plain_colors(base: Mapping[str, str]) -> dict[str, str]:
    inks = {name: _mixed(base["ink"], share, base["bg"]) for name, share in _INKS.items()}
    accents = {name: _mixed(base[name], share, base["ink"]) for name, share in _SHARES.items()}
    return {**inks, **accents, "sys": inks["ink3"], "bg": base["bg"]}


_PLAIN: Final = _plain_colors(_LIGHT)


def _variables() -> str:
    given = "".join(f"--_{name}:{color};" for name, color in _LIGHT.items())
    host = {"bg": "var(--vscode-editor-background,#{})", "ink": "var(--vscode-foreground,#{})"}
    taken = "".join(f"--c-{n}:var({variable},var(--_{n}));" for n, variable in _JUPYTER.items())
    inks = "".join(
        f"--s-{n}:color-mix(in srgb,var(--c-ink) {share}%,var(--c-bg));"
        for n, share in _INKS.items()
    )
    accents = "".join(
        f"--s-{n}:color-mix(in srgb,var(--c-{n}) {share}%,var(--c-ink));"
        for n, share in _SHARES.items()
    )
    dark = "".join(f"--_{name}:{color};" for name, color in _DARK.items())
    for name, wrap in host.items():
        given = given.replace(
            f"--_{name}:{_LIGHT[name]}", f"--_{name}:{wrap.format(_LIGHT[name][1:])}"
        )
        dark = dark.replace(f"--_{name}:{_DARK[name]}", f"--_{name}:{wrap.format(_DARK[name][1:])}")
    return (
        f".pr-seq{{{given}}}\n@media (prefers-color-scheme:dark){{.pr-seq{{{dark}}}}}\n"
        f".pr-seq{{{taken}--s-bg:var(--c-bg);--s-sys:var(--s-ink3);{inks}{accents}}}\n"
    )


def _rule(selector: str, colors: Mapping[str, str]) -> str:
    wanted = ",".join(f".pr-seq {part}" for part in selector.split(","))
    body = "".join(
        f"{what}:{_PLAIN[name]};{what}:var(--s-{name});" for what, name in colors.items()
    )
    return f"{wanted}{{{body}}}\n"


def _style() -> str:
    tones = (*_SHARES, "sys")
    rules = [_rule(selector, colors) for selector, colors in _RULES]
    for tone in tones:
        rules.append(_rule(f".{tone}.ar", {"stroke": tone}))
        rules.append(_rule(f".{tone}.hd", {"fill": tone, "stroke": tone}))
        rules.append(_rule(f"text.{tone},.{tone}.solid", {"fill": tone}))
        rules.append(_rule(f".{tone}.hd.open", {"fill": "bg"}))
        rules.append(_rule(f".{tone}.det", {"stroke": tone}))
    return _variables() + _STATIC % {"font": FONT, "mono": MONO} + "".join(rules)


STYLE: Final = _style()
"""The whole style sheet; every rule is for what lies inside ``.pr-seq``."""

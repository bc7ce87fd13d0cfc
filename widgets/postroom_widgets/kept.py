"""What stands beside a live view for the day when it is live no more. Pure.

JupyterLab saves no widget with a notebook unless it is told to, and where there is no widget it
shows an error, whatever else the output holds. So what is kept is an output of its own: the live
view hides it, and it hides the error.
"""

from typing import Final

_PANEL: Final = ".jp-OutputArea-child:has(> .jp-OutputArea-output{state})"
_CSS: Final = "".join(
    (
        # JupyterLab marks the place of a widget so when it could not show it.
        _PANEL.format(state=".jupyter-widgets"),
        ":has(+ .jp-OutputArea-child .postroom-kept){display:none}",
        # A widget needs a moment to appear: until then the place would jump.
        _PANEL.format(state=".lm-Panel"),
        " + .jp-OutputArea-child .postroom-kept{animation:postroom-kept 3s step-end}",
        "@keyframes postroom-kept{from{height:0;overflow:hidden;visibility:hidden}}",
    )
)


def kept(html: str, view: str) -> str:
    """Return ``html`` so that the live view can hide it while there is one.

    Args:
        html: What is shown where no widget runs.
        view: Key of the view, hex digits.
    """
    return f'<div class="postroom-kept" data-view="{view}"><style>{_CSS}</style>{html}</div>'

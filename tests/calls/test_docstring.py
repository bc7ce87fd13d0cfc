"""What a docstring tells a model of a tool and of its parameters."""

import inspect

import pytest

from postroom_runtime.calls.docstring import describe

GOOGLE = """
    Deploy a build.

    It is live at once.

    Args:
        build: The number of the build,
            as in the list of builds.
        stage (str): Where to.

    Returns:
        The address it is
        reachable at.

    Raises:
        LookupError: No such build.
        OSError: The stage
            is down.
    """

NUMPY = """
    Deploy a build.

    It is live at once.

    Parameters
    ----------
    build : int
        The number of the build,
        as in the list of builds.
    stage
        Where to.

    Returns
    -------
    str
        The address it is
        reachable at.

    Raises
    ------
    LookupError
        No such build.
    OSError
        The stage
        is down.
    """

SPHINX = """
    Deploy a build.

    It is live at once.

    :param build: The number of the build,
        as in the list of builds.
    :type build: int
    :param str stage: Where to.
    :returns: The address it is
        reachable at.
    :raises LookupError: No such build.
    :raises OSError: The stage
        is down.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_google_numpy_and_sphinx_say_the_same(docstring: str) -> None:
    description, parameters = describe(inspect.cleandoc(docstring))

    assert parameters == {
        "build": "The number of the build, as in the list of builds.",
        "stage": "Where to.",
    }
    assert description == (
        "Deploy a build.\n\nIt is live at once.\n\n"
        "Returns: The address it is reachable at.\n\n"
        "Raises: LookupError: No such build.; OSError: The stage is down."
    )


@pytest.mark.parametrize("heading", ["Args", "Arguments", "Parameters", "Params"])
def test_the_headings_of_google_are_all_known(heading: str) -> None:
    assert describe(f"Do.\n\n{heading}:\n    a: The a.") == ("Do.", {"a": "The a."})


@pytest.mark.parametrize(
    "docstring",
    [
        "",
        "Just words.",
        "Two lines\nof words.",
        "Run a test suite.  Args: suite: its name.",
        "Talk about Parameters and Args: in a sentence.",
    ],
)
def test_a_docstring_of_no_known_form_is_all_description(docstring: str) -> None:
    assert describe(docstring) == (docstring, {})


def test_a_note_stays_in_the_description() -> None:
    """It may be what keeps a model from a mistake."""
    description, _ = describe("Pay.\n\nArgs:\n    sum: In cents.\n\nNote:\n    Never twice.")

    assert description == "Pay.\n\nNote: Never twice."


def test_a_parameter_that_is_described_and_not_there_harms_nothing() -> None:
    assert describe("Do.\n\nArgs:\n    ghost: Boo.") == ("Do.", {"ghost": "Boo."})

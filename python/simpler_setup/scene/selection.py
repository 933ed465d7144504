"""Which cases of which classes run: platform, manual cases, and `--case` selectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..errors import SceneError, nearest
from ..platforms import counts_as

MANUAL_MODES = ("exclude", "include", "only")


class SelectionError(SceneError):
    """A selector names nothing, or nothing is left to run."""


class Selector(NamedTuple):
    """One `--case` value: `Foo` and `::Foo` name a case of any class, `Class::` a class, `Class::Foo` one case."""

    cls: str | None
    case: str | None
    text: str

    def matches(self, cls_name: str, case_name: str) -> bool:
        return self.cls in (None, cls_name) and self.case in (None, case_name)


def parse_selectors(values: Iterable[str] | None) -> list[Selector]:
    """Selectors of an option's values; none given means everything."""
    selectors = []
    for value in values or ():
        head, separator, tail = value.partition("::")
        cls, case = (head, tail) if separator else ("", value)
        if not cls and not case:
            raise SelectionError(f"--case {value!r} names neither a class nor a case; use Case, Class::Case or Class::")
        selectors.append(Selector(cls or None, case or None, value))
    return selectors


def is_manual_for_platform(manual: Any, platform: str | None) -> bool:
    """Whether a case's `manual` value holds on a platform: a bool, one name or several."""
    if isinstance(manual, dict):  # a case was given instead of its value
        manual = manual.get("manual", False)
    if isinstance(manual, str):
        return manual == platform
    return bool(manual) if isinstance(manual, bool) or not manual else platform in manual


def manual_allows(manual: bool, mode: str) -> bool:
    """Whether `--manual mode` lets a manual (or ordinary) item run."""
    return mode == "include" or manual == (mode == "only")


def matching_cases(
    cls: Any, platform: str, selectors: Sequence[Selector] = (), mode: str = "exclude"
) -> list[dict[str, Any]]:
    """The cases of a class to run, in their order in the file."""
    platform = counts_as(platform)
    return [
        case
        for case in cls.CASES
        if platform in case["platforms"]
        and manual_allows(is_manual_for_platform(case.get("manual", False), platform), mode)
        and (not selectors or any(s.matches(cls.__name__, case["name"]) for s in selectors))
    ]


def _guess(name: str, known: Iterable[str]) -> str:
    guess = nearest(name, known)
    return f". Did you mean {guess!r}?" if guess else ""


def selector_problem(selector: Selector, classes: Sequence[Any]) -> str | None:
    """Why a selector names nothing of these classes, or None."""
    try:
        check_selectors([selector], classes)
    except SelectionError as error:
        return str(error)
    return None


def check_selectors(selectors: Sequence[Selector], classes: Sequence[Any]) -> None:
    """SelectionError when a selector names a class or a case that does not exist."""
    by_name = {cls.__name__: cls for cls in classes}
    for selector in selectors:
        if selector.cls is not None and selector.cls not in by_name:
            known = ", ".join(by_name)
            raise SelectionError(f"unknown class {selector.cls!r}; known: {known}{_guess(selector.cls, by_name)}")
        if selector.case is None:
            continue
        scope = [by_name[selector.cls]] if selector.cls else classes
        names = list(dict.fromkeys(case["name"] for cls in scope for case in cls.CASES))
        if selector.case not in names:
            where = selector.cls or "any class"
            raise SelectionError(
                f"case {selector.case!r} not found in {where}; known: {', '.join(names)}{_guess(selector.case, names)}"
            )


def nothing_matched(classes: Sequence[Any], platform: str, selectors: Sequence[Selector], mode: str) -> SelectionError:
    """The error for an empty selection; it says which option would bring cases back."""
    asked = [f"platform={platform}", f"manual={mode}", *(f"case={s.text}" for s in selectors)]
    text = f"no cases matched {', '.join(asked)}"
    if mode != "include" and any(matching_cases(cls, platform, selectors, "include") for cls in classes):
        wanted = "include" if mode == "exclude" else "exclude"
        return SelectionError(f"{text}; some do with --manual {wanted}")
    platforms = sorted({p for cls in classes for case in cls.CASES for p in case["platforms"]})
    return SelectionError(f"{text}; the cases are for {', '.join(platforms) or 'no platform'}")

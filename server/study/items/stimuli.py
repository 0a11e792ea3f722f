"""Items of a study, from a folder of files or a list, each validated."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import Path

from msgspec import Struct

from lore_active.data.lookalikes import appearance, peculiar
from server.study.config import Item, Stimuli
from server.study.items.file_types import MEDIA, content_error
from server.study.items.files import find, read_text
from server.study.items.lists import ListedItem, read_list
from server.study.parsing import FILE
from server.study.problems import Problem, shown

MIN_ITEMS = 4
MAX_ITEMS = 2000
MAX_TEXT = 2000
MAX_KEY = 100
IGNORED = {"thumbs.db", "desktop.ini"}


class StimulusSource(Struct, frozen=True):
    """An item and where it is declared, for messages."""

    item: Item
    file: str
    key: str


def read_items(
    folder: Path, settings: Stimuli, problems: list[Problem], begun: bool = False
) -> tuple[list[Item], list[ListedItem]]:
    """Return all valid items in their fixed order, and the catch questions of their list.

    Invalid ones are added to `problems`; for a study that has `begun`, keys that look alike are not
    reported.
    """
    catches: list[ListedItem] = []
    if settings.list:
        listing = read_list(folder, settings.list, problems)
        entries, catches = listing.entries, listing.catches
    else:
        entries = _scan(folder, settings, problems)
    if entries is None:
        return [], catches
    count = len(entries)
    if not MIN_ITEMS <= count <= MAX_ITEMS:
        key = "stimuli.list" if settings.list else "stimuli.folder"
        found = shown(settings.list or settings.folder) + f" with {count} item{'s' * (count != 1)}"
        rule = f"a study must have from {MIN_ITEMS} to {MAX_ITEMS} items"
        problems.append(Problem(FILE, key, found, rule))
    if count > MAX_ITEMS:
        return [], catches
    sources = [
        StimulusSource(item, entry.file, entry.place)
        for entry in entries
        if (item := _item(folder, entry, settings.max_megabytes, problems)) is not None
    ]
    _report_duplicates(sources, problems)
    if not begun:
        _report_look_alikes(sources, problems)
    return [source.item for source in sources], catches


def natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """Return a sort key with `item 9` before `item 10`."""
    parts = re.split(r"([0-9]+)", name.casefold())
    # Digits without leading zeros are sorted by length first, without converting them.
    return [
        (len(digits := part.lstrip("0")), digits) if at % 2 else (0, part)
        for at, part in enumerate(parts)
    ], name


def _scan(folder: Path, settings: Stimuli, problems: list[Problem]) -> list[ListedItem] | None:
    """List the files of `stimuli.folder`, in natural order."""
    home = find(folder, settings.folder, FILE, "stimuli.folder", kind="folder")
    if isinstance(home, Problem):
        problems.append(home)
        return None
    listed = {(folder / settings.catches).absolute()} if settings.catches else set()
    try:
        paths = [path for path in home.iterdir() if path not in listed]
    except OSError as error:
        rule = f"must be readable ({error.strerror})"
        problems.append(Problem(FILE, "stimuli.folder", shown(settings.folder), rule))
        return None
    entries = []
    for path in sorted(paths, key=lambda path: natural(path.name)):
        if path.name.startswith(".") or path.name.lower() in IGNORED:
            continue
        inside = path.relative_to(folder).as_posix()
        if path.is_dir():
            rule = f"stimuli must be in {settings.folder} itself"
            problems.append(Problem(inside, "", "a folder", rule))
            continue
        entries.append(ListedItem(inside, "", {"file": inside}))
    return entries


def _item(
    folder: Path, entry: ListedItem, megabytes: float, problems: list[Problem]
) -> Item | None:
    """Build an item from its fields; None, with a problem, if it is invalid."""

    def wrong(field: str, value: str, rule: str) -> None:
        key = f"{entry.place}, {field}" if entry.place and field else entry.place or field
        problems.append(Problem(entry.file, key, value, rule))

    fields = entry.fields
    path = fields.get("file", "")
    text = fields.get("text", "").strip()
    if bool(path) == bool(text):
        found = "given together with text" if path else "missing"
        wrong("file", found, "each item must have either a file or a text")
        return None
    file: Path | None = None
    extension = Path(path).suffix.lower()
    if path:
        if extension not in MEDIA:
            allowed = " ".join(MEDIA)
            what = f"a {extension} file" if extension else "without an extension"
            if entry.place:
                what = shown(path)
            wrong("file" if entry.place else "", what, f"stimuli must end in one of {allowed}")
            return None
        place = f"{entry.place}, file" if entry.place else ""
        located = find(folder, path, entry.file, place)
        if isinstance(located, Problem):
            value = located.value if place else "not accessible"
            problems.append(Problem(located.file, place, value, located.rule))
            return None
        file = located
        content = _content(file, path, extension, megabytes, problems)
        if content is None:
            return None
        if extension == ".txt":
            text, file = content, None
    if len(text) > MAX_TEXT:
        wrong("text", f"{len(text)} characters long", f"must have at most {MAX_TEXT}")
        return None
    stem = unicodedata.normalize("NFC", Path(path).stem) if path else text
    key = fields.get("key", "").strip() or stem
    from_file = re.sub(r"[_\-\s]+", " ", stem).strip() or stem
    label = fields.get("label", "").strip() or (from_file if path else text)
    if not _is_name(key):
        rule = f"must be text of 1 to {MAX_KEY} characters in one line"
        rule += "" if path or fields.get("key") else "; give the item a separate key"
        wrong("key", shown(key), rule)
        return None
    # A file name is not a text alternative: it may reveal the expected answer.
    alt = fields.get("alt", "").strip() or fields.get("label", "").strip() or text
    for field, content in (("text", text), ("label", label), ("alt", alt)):
        if not _is_clean(content, spaces="\n\r\t"):
            wrong(field, shown(content), "must be text without control characters")
            return None
    return Item(key, MEDIA[extension][0] if path else "text", label, alt, text, file)


def _is_name(key: str) -> bool:
    return 0 < len(key) <= MAX_KEY and _is_clean(key)


def _is_clean(text: str, spaces: str = "") -> bool:
    """Return whether there are no control characters, line ends or invalid bytes."""
    return all(
        character in spaces or unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        for character in text
    )


def _content(
    file: Path, name: str, extension: str, megabytes: float, problems: list[Problem]
) -> str | None:
    """Return the text of a text file, "" for other valid files; None, with a problem, else."""
    limit = f"must be at most {megabytes:g} MB (stimuli.max_megabytes)"
    try:
        size = file.stat().st_size
        if size == 0:
            problems.append(Problem(name, "", "empty", f"must be a {MEDIA[extension][2]}"))
            return None
        if size > megabytes * 1e6:
            problems.append(Problem(name, "", f"{size / 1e6:.3g} MB large", limit))
            return None
        if extension == ".txt":
            text = read_text(file, name)
            if isinstance(text, Problem):
                problems.append(text)
                return None
            if not text.strip():
                problems.append(Problem(name, "", "blank", "must contain the text of an item"))
                return None
            return text.strip()
        with file.open("rb") as stream:
            error = content_error(stream, extension, size)
    except OSError as error:
        rule = f"must be readable ({error.strerror})"
        problems.append(Problem(name, "", "unreadable", rule))
        return None
    if error is not None:
        rule = f"must be a complete {MEDIA[extension][2]}"
        problems.append(Problem(name, "", error, rule))
        return None
    return ""


def _report_duplicates(sources: list[StimulusSource], problems: list[Problem]) -> None:
    """Report duplicate keys, and duplicate contents under different keys."""
    keys: dict[str, StimulusSource] = {}
    contents: dict[tuple[int, str], StimulusSource] = {}
    sizes: dict[int, int] = {}
    for source in sources:
        size = _size(source.item)
        sizes[size] = sizes.get(size, 0) + 1
    for source in sources:
        first = keys.setdefault(source.item.key, source)
        if first is not source:
            rule = f"must be unique ({_where(first)} has the same)"
            problems.append(Problem(source.file, _key(source), shown(source.item.key), rule))
        size = _size(source.item)
        # Only files of the same size can be identical; others need not be read.
        if sizes[size] == 1:
            continue
        first = contents.setdefault((size, _digest(source.item)), source)
        if first is not source:
            rule = "every item must differ from the others"
            value = f"the same content as {_where(first)}"
            problems.append(Problem(source.file, source.key, value, rule))


def _report_look_alikes(sources: list[StimulusSource], problems: list[Problem]) -> None:
    """Report keys or texts whose differences are invisible."""
    keys: dict[str, StimulusSource] = {}
    texts: dict[str, StimulusSource] = {}
    for source in sources:
        mine = source.item
        other = keys.setdefault(appearance(mine.key), source).item
        if other.key != mine.key:
            rule = (
                f"must not look the same as {shown(other.key)}{peculiar(other.key, mine.key)}, the "
                f"key of {_where(keys[appearance(mine.key)])}"
            )
            value = shown(mine.key) + peculiar(mine.key, other.key)
            problems.append(Problem(source.file, _key(source), value, rule))
        looks = "\n".join(map(appearance, mine.text.splitlines()))
        first = texts.setdefault(looks, source) if mine.text else source
        if first.item.text != mine.text:
            value = shown(mine.text) + peculiar(mine.text, first.item.text)
            rule = f"must not look the same as the text of {_where(first)}"
            problems.append(Problem(source.file, source.key, value, rule))


def _key(source: StimulusSource) -> str:
    return f"{source.key}, key" if source.key else "key"


def _where(source: StimulusSource) -> str:
    return f"{source.key} of {source.file}" if source.key else source.file


def _size(item: Item) -> int:
    return len(item.text.encode()) if item.file is None else item.file.stat().st_size


def _digest(item: Item) -> str:
    if item.file is None:
        return hashlib.sha256(item.text.encode()).hexdigest()
    with item.file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

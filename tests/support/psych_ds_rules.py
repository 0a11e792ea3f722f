"""The rules of Psych-DS (psych-ds.github.io), written down from its validator's schema and source.

This is not the validator, which has not been run on our exports. It has what that calls an error,
and its warnings about files and names. The properties of schema.org below are a short list of our
own, not the vocabulary that the validator has. Not here: warnings about recommended folders
(`analysis`, `materials`, …), which a program cannot fill.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

DESCRIPTION = "dataset_description.json"
AT_THE_ROOT = re.compile(r"dataset_description\.json|(README|CHANGES)\.(md|txt)|\.psychdsignore")
DATA_FILE = re.compile(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.csv")
KEYWORDS = {
    *("study", "site", "subject", "session", "task", "condition", "trial", "stimulus"),
    "description",
}
REQUIRED = ("name", "description", "variableMeasured")
# Those of schema.org's properties that a data set, or a variable of it, may have.
OF_A_DATASET = {
    *("name", "description", "variableMeasured", "keywords", "author", "creator", "citation"),
    *("license", "funder", "url", "identifier", "usageInfo", "schemaVersion", "version"),
    *("dateCreated", "datePublished", "temporalCoverage", "sameAs", "inLanguage"),
}
OF_A_VARIABLE = {
    *("name", "description", "alternateName", "unitText", "unitCode", "minValue", "maxValue"),
    *("value", "valueReference", "measurementTechnique", "propertyID", "url", "identifier"),
}
CONTEXTS = {f"{scheme}://schema.org{end}" for scheme in ("http", "https") for end in ("", "/")}


def issues(folder: Path) -> list[str]:
    """Everything that the validator would call an error or warn of; empty if there is nothing."""
    try:
        description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return [f"{DESCRIPTION}: {error}"]
    variables = _variables(description)
    found = _of_description(description)
    data = []
    for file in sorted(one for one in folder.rglob("*") if one.is_file()):
        place = file.relative_to(folder)
        if not file.stat().st_size:
            found.append(f"{place}: is empty")
        if place.parts[0] == "data":
            data.append(file)
            found += [f"{place}: {issue}" for issue in _of_data(file, variables)]
        elif len(place.parts) > 1 or not AT_THE_ROOT.fullmatch(file.name):
            found.append(f"{place}: is no file that the rules name")
    if not data:
        found.append("data: there are no files")
    if not any(folder.glob("README.*")):
        found.append("README: is missing")
    return found


def _of_description(description: dict[str, Any]) -> list[str]:
    found = [f"{name} is missing" for name in REQUIRED if name not in description]
    if description.get("@context") not in CONTEXTS:
        found.append("@context is not schema.org")
    if description.get("@type") != "Dataset":
        found.append("@type is not Dataset")
    found += [
        f"{name} is not a property of a Dataset"
        for name in description
        if not name.startswith("@") and name not in OF_A_DATASET
    ]
    for one in description.get("variableMeasured", ()):
        if isinstance(one, str):
            continue
        if one.get("@type") != "PropertyValue" or "name" not in one:
            found.append(f"variableMeasured: {one} is not a PropertyValue with a name")
        found += [
            f"variableMeasured: {name} is not a property of a PropertyValue"
            for name in one
            if not name.startswith("@") and name not in OF_A_VARIABLE
        ]
    return [f"{DESCRIPTION}: {issue}" for issue in found]


def _variables(description: dict[str, Any]) -> set[str]:
    measured = description.get("variableMeasured", ())
    return {one if isinstance(one, str) else one.get("name", "") for one in measured}


def _of_data(file: Path, variables: set[str]) -> list[str]:
    found = []
    if not DATA_FILE.fullmatch(file.name):
        return ["is not called by keywords and values"]
    keywords = [pair.partition("-")[0] for pair in file.name.split("_")[:-1]]
    found += [
        f"{keyword} is no official keyword" for keyword in keywords if keyword not in KEYWORDS
    ]
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.reader(stream, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        return [*found, str(error)]
    if not rows or not rows[0]:
        return [*found, "has no header"]
    header, *body = rows
    if len(set(header)) < len(header):
        found.append("a column is there twice")
    found += [f"column {name} is not in variableMeasured" for name in {*header} - variables]
    found += [
        f"row {number} has {len(row)} cells, but the header has {len(header)}"
        for number, row in enumerate(body, 2)
        if len(row) != len(header)
    ]
    if "row_id" in header:
        ids = [row[header.index("row_id")] for row in body if len(row) == len(header)]
        if len(set(ids)) < len(ids):
            found.append("row_id is not unique")
    return found

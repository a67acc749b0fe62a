#!/usr/bin/env python3
"""Checks events, lines of JSON on standard input, against the published schema of OCSF: that of their own version and the newest one.

An attribute that the class does not have with the profiles of the event is an error, and so is a value of another type or one that an
enumeration does not have. Beyond the JSON schema: `type_uid` is made of the class and the activity, and the names beside numbers are
those of the schema. Needs the packages of requirements-event-schemas.txt.
"""

import json
import sys
from functools import cache

from jsonschema import Draft202012Validator
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema, get_packaged_versions

# Names that an event has beside a number of an enumeration.
NAMES = {"activity_name": "activity_id", "severity": "severity_id", "status": "status_id", "action": "action_id",
         "disposition": "disposition_id"}
OTHER = 99


@cache
def schema(version):
    return get_ocsf_schema(version)


@cache
def validator(version, name, profiles):
    found = OcsfJsonSchemaEmbedded(schema(version)).get_class_schema(class_name=name, profiles=list(profiles))
    return Draft202012Validator(found)


def newest():
    final = [version for version in get_packaged_versions() if "-" not in version]
    return max(final, key=lambda version: [int(part) for part in version.split(".")])


def errors(event, version):
    named = [(name, found) for name, found in schema(version)["classes"].items() if found["uid"] == event.get("class_uid")]
    if not named:
        yield f"no class {event.get('class_uid')}"
        return
    name, found = named[0]
    profiles = event["metadata"].get("profiles", [])
    for profile in profiles:
        if profile not in found["profiles"]:
            yield f"{name} has no profile {profile}"
    for error in validator(version, name, tuple(profiles)).iter_errors(event):
        yield f"{name} {error.json_path}: {error.message}"
    if event.get("type_uid") != event["class_uid"] * 100 + event["activity_id"]:
        yield f"type_uid {event.get('type_uid')}"
    if event.get("class_name") != found["caption"]:
        yield f"class_name {event.get('class_name')}, not {found['caption']}"
    category = found["attributes"]["category_uid"]["enum"][str(event["category_uid"])]["caption"]
    if event.get("category_name") != category:
        yield f"category_name {event.get('category_name')}, not {category}"
    for text, number in NAMES.items():
        if text in event and event[number] != OTHER:
            caption = found["attributes"][number]["enum"][str(event[number])]["caption"]
            if event[text] != caption:
                yield f"{text} {event[text]}, not {caption}"


def main():
    count, failed = 0, False
    for line in sys.stdin:
        event = json.loads(line)
        for version in dict.fromkeys([event["metadata"]["version"], newest()]):
            for error in errors(event, version):
                print(f"{event['metadata'].get('uid')}, OCSF {version}: {error}")
                failed = True
        count += 1
    if failed or not count:
        sys.exit(f"check_ocsf: {count} events, and errors" if count else "check_ocsf: no events")
    print(f"{count} events are valid")


if __name__ == "__main__":
    main()

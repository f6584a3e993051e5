"""What docs/formats/json.md says of all JSON, whatever its fields are: the section "One shape"."""

import re

# A number, or one with a unit, as people and configurations write them.
NUMBER = re.compile(r"""[+-]?\d+(\.\d+)?(e[+-]?\d+)?
                        \s*(%|[kKMGTP]?i?B?|ns|us|µs|ms|s|sec|seconds?|min|minutes?|h|hours?|d|days?|bytes?|blocks?|ops)
                        (/s|\ per\ second)?""", re.VERBOSE)


def faults(value, is_identifier, path="."):
    """Where the value breaks the rules. `is_identifier(path)` says whether the text there may look like a number."""
    if not isinstance(value, dict):
        return [f"{path} is no object"]
    return list(_faults_of_fields(value, is_identifier, ""))


def _faults_of_fields(fields, is_identifier, path):
    for name, value in fields.items():
        yield from _faults(value, is_identifier, f"{path}.{name}" if path else name)


def _faults(value, is_identifier, path):
    if isinstance(value, dict):
        yield from _faults_of_fields(value, is_identifier, path)
    elif isinstance(value, list):
        if not any(all(isinstance(each, kind) for each in value) for kind in (str, dict)):
            yield f"{path} has neither texts alone nor objects alone"
        for each in value:
            yield from _faults(each, is_identifier, path + "[]")
    elif isinstance(value, str) and NUMBER.fullmatch(value) and not is_identifier(path):
        yield f"{path} is the number {value!r} in a text"

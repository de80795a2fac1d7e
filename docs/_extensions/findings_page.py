"""Every code of validation, from the checks that declare them."""

import re
from collections.abc import Iterator

from cobre.io.findings import CODES, Code, Layer, load_all_codes

INTRODUCTION = """\
# Findings of validation

`cobre validate`, `cobre.validate`, `cobre.io.validate`, the assistant server and `InvalidCaseError` report the same
findings. Each has a code, which is stable: programs may compare it, while messages may be reworded.

```text
$ cobre validate my_case --json | jq '.errors[] | {code, file, entity, field, value, expected, remedy}'
```

| key | meaning |
|---|---|
| `code` | the kind of finding, as listed below |
| `severity` | `error`: the study cannot run; `warning`: it can |
| `layer` | the step that found it, as below |
| `file` | relative to the case directory |
| `entity`, `subject` | what it is about, such as `hydro 3 (ITAIPU)`: as text, and as `kind`, `id` and `name` |
| `field` | such as `reservoir.max_storage_hm3`; empty for the entity or file itself |
| `value` | the value that was found; null if the finding is about no single value |
| `message` | what is wrong |
| `expected` | what a valid value would be |
| `remedy` | what to do about it, where an expected value does not say it |

As text, findings of one code in one field of one file share a line if there are more than three; `--json` lists each.

A check runs if the inputs that it needs could be decoded, whatever is wrong with the others. In the lists below, names
in braces stand for values.
"""

LAYERS = {
    Layer.STRUCTURE: "Files that are missing, cannot be read or do not belong to a case.",
    Layer.SCHEMA: "Each file by itself: fields, types, ranges, ids.",
    Layer.REFERENCES: "Ids that are used must be declared.",
    Layer.DIMENSIONS: "As many stages, blocks, rows and numbers as other inputs ask for.",
    Layer.MEANING: "Values that contradict one another, or that have no effect.",
    Layer.PLAUSIBILITY: "Values that are allowed and look like a mistake. Only warnings, for cases without errors.",
}

_FORMAT = re.compile(r"\{(\w+)[:!][^}]*\}")


def findings_page() -> str:
    """Return the page in Markdown."""
    load_all_codes()
    return INTRODUCTION + "".join(_section(layer, text) for layer, text in LAYERS.items())


def _section(layer: Layer, text: str) -> str:
    codes = sorted((code for code in CODES.values() if code.layer is layer), key=lambda code: code.name)
    return f"\n## {layer.value.capitalize()}\n\n{text}\n\n" + "\n".join(_rows(codes)) + "\n"


def _rows(codes: list[Code]) -> Iterator[str]:
    yield "| code | severity | message | expected, or what to do |"
    yield "|---|---|---|---|"
    for code in codes:
        advice = "; ".join(part for part in (_shown(code.expected), _shown(code.remedy)) if part)
        yield f"| `{code.name}` | {code.severity.value} | {_shown(code.message)} | {advice} |"


def _shown(template: str) -> str:
    """Return a template for a table of Markdown, without the formats of its values."""
    return _FORMAT.sub(r"{\1}", template).replace("{{", "{").replace("}}", "}").replace("|", "\\|")

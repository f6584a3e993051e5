"""Who may use whom: the folder table of ARCHITECTURE.md, for #include lines and for CMake's DEPENDS."""

import re

from cpp_source import Finding

RULES = {"layer", "third-party", "include-path"}

# folder -> the folders it may include. A folder may always include itself.
ALLOWED = {
    "core": set(),
    "config": {"core"},
    "fop": {"core"},
    "fabric": {"core", "config", "fop"},
    "devices": {"core", "config"},
    "store": {"core", "config", "devices"},
    "io_sched": {"core", "config", "devices"},
    "eh": {"core", "config", "fop", "fabric"},
    "lrs": {"core", "config", "fop"},
    "objects": {"core", "fop", "devices", "store", "io_sched"},
    "library": {"core", "config", "fop", "devices", "store", "io_sched", "objects"},
    "reqh": {"core", "config", "fop", "fabric", "store", "io_sched", "lrs", "objects", "library"},
    "client": {"core", "config", "fop", "fabric"},
}
ALLOWED["daemon"] = set(ALLOWED) - {"client"}
ALLOWED["sim"] = set(ALLOWED)
ALLOWED["tests"] = set(ALLOWED)
ALLOWED["bench"] = set(ALLOWED) - {"tests"}

# Single headers a folder may include although it may not use their folder.
HEADER_EXCEPTIONS = {
    "lrs": {"eh/handler.h"},
}

# (library, its headers, its CMake targets, the folders that own it)
THIRD_PARTY = [
    ("liburing", r"liburing(\.h|/)", r"liburing", {"core", "bench"}),
    ("yaml-cpp", r"yaml-cpp/", r"yaml", {"config"}),
    ("FlatBuffers", r"flatbuffers/", r"flatbuffers", {"fop"}),
    ("libsodium", r"sodium(\.h|/)", r"sodium", {"fop"}),
    ("libcrypto", r"openssl/", r"libcrypto", {"fop"}),
    ("libfabric", r"rdma/", r"fabric", {"fabric", "bench"}),
    ("LMDB", r"lmdb\.h", r"lmdb", {"store"}),
    ("spdlog", r"(spdlog|fmt)/", r"spdlog|fmt", {"daemon"}),
    ("CLI11", r"CLI/", r"CLI11", {"config", "daemon", "client"}),
    ("libsystemd", r"systemd/", r"systemd", {"daemon"}),
    ("libmicrohttpd", r"microhttpd\.h", r"microhttpd", {"daemon"}),
    ("libcurl", r"curl/", r"libcurl", {"eh"}),
    ("nlohmann-json", r"nlohmann/", r"nlohmann", {"client", "eh", "tests"}),
    ("libfopd", r"fopd/", r"libfopd", {"tests"}),  # Ours, as foreign programs have it.
    ("Catch2", r"catch2/", r"Catch2", {"tests"}),
]
# Headers of the kernel, the C library and the compiler that have a folder in their name.
SYSTEM_FOLDERS = {"sys", "linux", "net", "netinet", "arpa", "scsi", "asm", "sanitizer"}
# Targets that belong to nobody.
COMMON_TARGETS = re.compile(r"Threads::Threads|fopd::(catch|warnings)|(\$\{CMAKE_DL_LIBS\}|m|dl|rt)$")


def _may_use(folder, used, header=None):
    return used == folder or used in ALLOWED[folder] or header in HEADER_EXCEPTIONS.get(folder, ())


def _list(names):
    return ", ".join(sorted(names)) or "nothing"


def check(source):
    """The includes of one C++ file."""
    folder = source.folder
    if folder not in ALLOWED:
        if folder not in {"scripts", "docs", "cmake"}:
            yield Finding(source.path, 1, "layer",
                          f"C++ outside the folders of ARCHITECTURE.md; add a row for '{folder}' or move it")
        return
    for include in source.includes():
        def finding(rule, message, line=include.line):
            return Finding(source.path, line, rule, message)

        if include.is_ours:
            used = include.name.split("/", 1)[0]
            if "/" not in include.name or used not in ALLOWED:
                yield finding("include-path", f'"{include.name}" does not start with a folder of this project, '
                                              'include our headers as "folder/header.h" and others in <>')
            elif not _may_use(folder, used, include.name):
                yield finding("layer", f"{folder}/ may not use {used}/, only {_list(ALLOWED[folder])}; "
                                       "turn the dependency round or pass an interface in")
            continue
        owner = next((row for row in THIRD_PARTY if re.match(row[1], include.name)), None)
        if owner and folder not in owner[3]:
            yield finding("third-party", f"{owner[0]} belongs to {_list(owner[3])}, use what that folder offers")
        elif not owner and "/" in include.name and include.name.split("/", 1)[0] not in SYSTEM_FOLDERS:
            yield finding("third-party", f"<{include.name}> has no owner, give it a row in scripts/check_layers.py")
        elif owner and owner[0] == "Catch2" and source.path != "tests/catch.h":
            yield finding("third-party", 'Catch2 comes through one header, include "tests/catch.h"')


_CALL = re.compile(r"\b(fopd_add_\w+|target_link_libraries)\s*\(([^()]*)\)")
_KEYWORDS = {"HEADERS", "SOURCES", "DEPENDS", "THIRD_PARTY", "LABELS", "ARGUMENTS", "PUBLIC", "PRIVATE", "INTERFACE"}


def check_cmake(path, text):
    """The DEPENDS and THIRD_PARTY of one folder's CMakeLists.txt."""
    folder = path.split("/", 1)[0]
    if folder not in ALLOWED:
        return
    text = re.sub(r"#[^\n]*", lambda match: " " * len(match[0]), text)
    for call in _CALL.finditer(text):
        keyword = ""
        for word in re.finditer(r"[^\s\"]+", call[2]):
            if word[0] in _KEYWORDS:
                keyword = word[0]
                continue
            if keyword in {"", "HEADERS", "SOURCES", "LABELS", "ARGUMENTS"}:
                continue
            line = text.count("\n", 0, call.start(2) + word.start()) + 1
            yield from _check_target(path, line, folder, word[0])


def _check_target(path, line, folder, target):
    if COMMON_TARGETS.match(target):
        return
    ours = re.match(r"fopd(?:::|_)(\w+)", target)
    if ours:
        used = ours[1]
        if used in ALLOWED and not _may_use(folder, used):
            yield Finding(path, line, "layer", f"{folder}/ may not depend on {target}, only {_list(ALLOWED[folder])}")
        return
    owner = next((row for row in THIRD_PARTY if re.search(row[2], target, re.IGNORECASE)), None)
    if owner is None:
        yield Finding(path, line, "third-party", f"{target} has no owner, give it a row in scripts/check_layers.py")
    elif folder not in owner[3]:
        yield Finding(path, line, "third-party", f"{owner[0]} belongs to {_list(owner[3])}, not to {folder}/")

"""Lists of domains, paths and pages as they are found in the world: a line each, hosts files, simple adblock lines, plain or gzip."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dataproc.kernels.columns import TextBuffers, text_buffers
from dataproc.kernels.urls import gathered, list_lines
from dataproc.urls import parse
from store import files
from store.digests import bytes_digest
from store.errors import ConfigError
from store.strict_yaml import DataFile

PAGE = "="  # begins the text of an entry that means one page, and not what lies under it
_HOSTS_FILE_ADDRESSES = {"0.0.0.0", "127.0.0.1", "::1", "::"}
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class UrlList:
    """One list of a stage's configuration. rule: of the verdict; name: shown in its detail, "" for entries written in the pipeline file;
    source: a file, or the entries; pages: whether an entry means one page, else it means a domain or what lies under a path."""

    rule: str
    name: str
    source: DataFile | tuple[str, ...]
    pages: bool = False

    @property
    def is_file(self) -> bool:
        return isinstance(self.source, DataFile)

    def content(self) -> bytes:
        """Its lines as bytes. Raises ConfigError for a file that is not text."""
        return read_text(self.source) if self.is_file else "\n".join(self.source).encode("utf-8", "surrogatepass")


def list_name(path: str) -> str:
    """The last part of a list's path: where it lies is not what it is."""
    return path.rstrip("/").rpartition("/")[2]


def read_text(url: str) -> bytes:
    """A text file, unpacked if it is gzip, without its byte order mark. Raises ConfigError for another one."""
    data = files.read_bytes(url)
    try:
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        data.decode("utf-8")
    except (UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        raise ConfigError(f"url_filter: {url} is not a list of domains (text or gzip): {error}") from error
    return data.removeprefix(_BOM)


def content_digest(lists: tuple[UrlList, ...]) -> tuple[str, list[bytes]]:
    """(digest of what the lists hold and how it is meant, their contents)."""
    contents = [one.content() for one in lists]
    told = [f"{one.pages} {bytes_digest(content)}" for one, content in zip(lists, contents, strict=True)]
    return bytes_digest("\n".join(told).encode()), contents


def entries(one: UrlList, content: bytes) -> tuple[TextBuffers, list[str]]:
    """What a list names, in normal form: domains by themselves, and all else (paths, pages, what took a closer look) as texts."""
    if one.pages:
        return _texts([]), [PAGE + address.page for line in _lines(content) if (address := parse(line.split()[0])).host]
    if not one.is_file:  # in normal form since they were checked
        return _texts([]), list(one.source)
    data = np.frombuffer(content, np.uint8)
    starts, ends = list_lines(data)
    closer = np.flatnonzero(starts < 0)
    plain = (starts >= 0) & (starts < ends)
    others = []
    for line in closer.tolist():
        for item in _items(content[-1 - int(starts[line]) : int(ends[line])].decode()):
            address = parse(item)
            if address.host:
                others.append(address.host + address.path)
    return gathered(data, starts[plain], ends[plain]), others


def _texts(values: list[str]) -> TextBuffers:
    return text_buffers(pa.array(values, pa.large_string()))


def _lines(content: bytes) -> Iterator[str]:
    return (line for line in map(str.strip, content.decode().splitlines()) if line and not line.startswith("#"))


def _items(line: str) -> Iterator[str]:
    words = re.split(r"[\s,;]+", line.split("#", 1)[0].strip())
    if words[0] in _HOSTS_FILE_ADDRESSES and len(words) > 1:
        yield from words[1:]
    elif words[0]:
        yield words[0].strip("|^*").lstrip(".")  # also *.example.org and ||example.org^


def read_words(url: str) -> list[str]:
    """The words of a file, a line each, in lower case; `#` begins a comment."""
    return [word.lower() for word in _lines(read_text(url))]

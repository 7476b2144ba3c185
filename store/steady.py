"""Reading that rides out passing failures: a dropped connection in the middle of a file costs one more request, not the run."""

from __future__ import annotations

import io
import os
from typing import BinaryIO

from store import files
from store.errors import StoreError


class SteadyReader(io.RawIOBase):
    """A seekable binary stream of a file on any filesystem. A read that fails in passing is tried again from the same place.

    Raises FileNotFoundError when there is no such file, and StoreError when it cannot be opened or a read keeps failing: never a
    driver's own error, which a parser above could take for damage of the file.
    """

    def __init__(self, url: str):
        super().__init__()
        self.url = url
        self._position = 0
        self._stream = self._open()

    def _open(self) -> BinaryIO:
        try:
            return files.open_read(self.url)
        except FileNotFoundError:
            raise
        except Exception as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> StoreError:
        return StoreError(f"cannot read {self.url}: {error or type(error).__name__}")

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes (all that is left for -1); empty at the end."""
        try:
            data = files.retrying(lambda: self._read_again(size), self.url)
        except StoreError:
            raise
        except Exception as error:
            raise self._failure(error) from error
        self._position += len(data)
        return data

    def _read_again(self, size: int) -> bytes:
        if self._stream.closed:
            self._stream = self._open()
        try:
            if self._stream.tell() != self._position:
                self._stream.seek(self._position)
            return self._stream.read(size)
        except Exception:
            self._stream.close()
            raise

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves to an offset from the start, the position or the end; nothing is read until the next `read`."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: 0}[whence]
        if whence == os.SEEK_END:
            base = files.info(self.url).size
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()

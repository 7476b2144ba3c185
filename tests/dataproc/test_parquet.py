"""Equal rows give equal bytes, however they are handed to the writer."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataproc import parquet
from dataproc.parquet import RowGroupWriter, iterate_groups

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.large_string())])


@given(lengths=st.lists(st.integers(0, 40), max_size=60), cuts=st.lists(st.integers(0, 60), max_size=6))
@settings(max_examples=60, deadline=None)
def test_groups_do_not_depend_on_the_batches(tmp_path_factory, lengths, cuts):
    folder = tmp_path_factory.mktemp("groups")
    table = pa.table({"n": range(len(lengths)), "text": ["x" * n for n in lengths]}, schema=SCHEMA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "GROUP_ROWS", 7)
        patch.setattr(parquet, "GROUP_TEXT_BYTES", 50)
        stamps = []
        for name, bounds in (("whole", []), ("cut", sorted(min(c, len(lengths)) for c in cuts))):
            out = RowGroupWriter(str(folder / name), SCHEMA)
            edges = [0, *bounds, len(lengths)]
            for start, stop in zip(edges, edges[1:], strict=False):
                out.add(table.slice(start, stop - start))
            stamps.append(out.close())
    assert (folder / "whole").read_bytes() == (folder / "cut").read_bytes()
    assert stamps[0] == stamps[1]
    groups = list(iterate_groups(str(folder / "whole"), SCHEMA))
    assert pa.concat_tables([*groups, SCHEMA.empty_table()]).to_pylist() == table.to_pylist()
    for group in groups:
        sizes = [len(t) for t in group["text"].to_pylist()]
        assert len(sizes) <= 7 and sum(sizes[:-1]) < 50


def test_rows_of_another_schema_are_refused(tmp_path):
    out = RowGroupWriter(str(tmp_path / "file"), SCHEMA)
    with pytest.raises(ValueError, match="another schema"):
        out.add(pa.table({"n": [1]}))
    out.abandon()

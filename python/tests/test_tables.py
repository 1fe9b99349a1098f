"""NumPy, pandas and Arrow, in and out."""

from __future__ import annotations

import numpy
import pytest

import dosimeter

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")


def scores(count: int = 300) -> tuple[numpy.ndarray, numpy.ndarray]:
    generator = numpy.random.default_rng(0)
    return generator.normal(1, 1, count), generator.normal(0, 1, count)


def test_scores_from_anything_give_the_same_bound() -> None:
    members, nonmembers = scores()
    frame = pandas.DataFrame(
        {
            "score": numpy.concatenate([nonmembers, members]),
            "member": [0] * len(nonmembers) + [1] * len(members),
        }
    )
    table = pyarrow.Table.from_pandas(frame)

    class Stream:
        """Any library with the Arrow interface."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return table.__arrow_c_stream__(requested_schema)

    reference = dosimeter.audit(members=members, nonmembers=nonmembers, delta=1e-5).to_dict()
    for form in (frame, table, Stream(), frame.assign(member=frame.member == 1)):
        assert dosimeter.audit(form, delta=1e-5).to_dict() == reference
    lists = dosimeter.audit(members=members.tolist(), nonmembers=nonmembers.tolist(), delta=1e-5)
    assert lists.to_dict() == reference
    strided = dosimeter.audit(
        members=numpy.repeat(members, 2)[::2], nonmembers=pandas.Series(nonmembers), delta=1e-5
    )
    assert strided.to_dict() == reference
    single = members.astype(numpy.float32)
    half = dosimeter.audit(members=single, nonmembers=nonmembers, delta=1e-5)
    assert half.to_dict()["members"] == len(members)


def test_tables_that_make_no_sense_are_refused() -> None:
    with pytest.raises(dosimeter.InvalidInput, match="no column `member`"):
        dosimeter.audit(pandas.DataFrame({"score": [1.0]}))
    with pytest.raises(dosimeter.InvalidInput, match="must hold 1"):
        dosimeter.audit(pandas.DataFrame({"score": [1.0, 2.0], "member": [1, 2]}))
    with pytest.raises(dosimeter.InvalidInput, match="dimensions"):
        dosimeter.audit(members=numpy.ones((2, 2)), nonmembers=numpy.ones(2))
    with pytest.raises(dosimeter.InvalidInput, match="NaN|nan"):
        dosimeter.audit(members=[1.0, float("nan")], nonmembers=[0.0, 1.0])


def test_answers_as_tables(run: dosimeter.Run) -> None:
    account = dosimeter.account(run, delta=1e-5)
    frame, table = account.to_pandas(), account.to_arrow()
    assert len(frame) == table.num_rows == len(account)
    row = frame[(frame.lens == "composition") & (frame.quantity == "epsilon")].iloc[0]
    assert row.upper == account[0].upper and row.delta == 1e-5
    assert table.column("lower").to_pylist() == [claim.lower for claim in account]
    assert pyarrow.table(account).equals(table)
    curve = dosimeter.tradeoff(run, lens=["composition", "last-iterate"], points=7)
    assert curve.to_pandas().fnr.tolist()[:7] == curve.fnr.tolist()
    assert curve.to_arrow().num_rows == 14
    assert dosimeter.steps(run, delta=1e-5, points=3).to_pandas().steps.tolist() == [1, 32, 1000]
    members, nonmembers = scores()
    audit = dosimeter.audit(members=members, nonmembers=nonmembers, delta=[1e-5, 1e-6])
    assert audit.to_pandas().delta.tolist() == [1e-5, 1e-6]
    assert audit.to_arrow().num_rows == 2


def test_a_table_of_runs_is_compared() -> None:
    frame = pandas.DataFrame(
        {
            "name": ["quiet", "loud", "resolved"],
            "noise_multiplier": [0.8, 1.6, 1.0],
            "sample_rate": [0.01, 0.01, None],
            "steps": [1000, 1000, 500],
            "dataset_size": [None, None, 1000],
            "batch_size": [None, None, 20],
        }
    )
    for form in (frame, pyarrow.Table.from_pandas(frame)):
        compared = dosimeter.compare(form, delta=1e-5, lens="composition")
        assert list(compared.runs) == ["quiet", "loud", "resolved"]
        assert compared.runs["quiet"][0].value > compared.runs["loud"][0].value
        assert compared.runs["resolved"].run.sample_rate == 0.02
    assert set(compared.to_pandas().name) == {"quiet", "loud", "resolved"}
    assert compared.to_arrow().num_rows == len(compared.to_pandas())


def test_columns_of_curves_are_read_only(run: dosimeter.Run) -> None:
    curve = dosimeter.tradeoff(run, points=5)
    with pytest.raises(ValueError, match="read-only"):
        curve.fnr[0] = 0.0
    with pytest.raises(AttributeError, match="it has fpr and fnr"):
        _ = curve.epsilon

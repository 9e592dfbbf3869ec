import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mechdistill.report.trajectories import early, late, rank_correlations, slopes


def frame(rows):
    return pd.DataFrame(rows, columns=np.array([0.0, 0.25, 0.5, 0.75]))


def test_slope_and_rank_correlation_agree_with_scipy_on_gappy_rows():
    values = frame([[0.1, 0.4, np.nan, 0.2], [3.0, 2.0, 1.0, 0.5]])
    for i in range(2):
        known = values.iloc[i].dropna()
        t = known.index.to_numpy(float)
        assert slopes(values)[i] == pytest.approx(stats.linregress(t, known).slope)
        assert rank_correlations(values)[i] == pytest.approx(stats.spearmanr(t, known).statistic)


def test_two_points_have_no_slope():
    assert np.isnan(slopes(frame([[0.1, np.nan, np.nan, 0.2]]))[0])


def test_split_point_belongs_to_both_halves():
    values = frame([[1.0, 2.0, 3.0, 4.0]])
    assert list(early(values).columns) == [0.0, 0.25, 0.5]
    assert list(late(values).columns) == [0.5, 0.75]

"""Features of tracks against geometry."""

import numpy as np
import pytest

from streamgp.windows.extraction import EARTH_RADIUS_M, track_features

METRES_A_DEGREE = np.pi / 180.0 * EARTH_RADIUS_M


def test_a_walk_along_the_equator():
    n = np.arange(11.0)
    found = track_features(np.zeros(11), n / METRES_A_DEGREE * 100.0, 50.0 * n)
    assert found["distance"] == pytest.approx(1000.0, rel=1e-9)
    assert found["mean_speed"] == pytest.approx(2.0, rel=1e-9)
    assert found["max_speed"] == pytest.approx(2.0, rel=1e-9)
    assert found["straightness"] == pytest.approx(1.0, rel=1e-9)
    assert found["stop_ratio"] == 0.0
    assert found["radius_of_gyration"] == pytest.approx(100.0 * np.sqrt(10.0), rel=1e-6)


def test_there_and_back_is_not_straight_and_a_stop_is_noticed():
    latitude = np.array([0.0, 1.0, 1.0, 0.0]) / METRES_A_DEGREE * 60.0
    found = track_features(latitude, np.zeros(4), np.array([0.0, 60.0, 180.0, 240.0]))
    assert found["straightness"] == pytest.approx(0.0, abs=1e-9)
    assert found["stop_ratio"] == 0.5
    assert found["max_speed"] == pytest.approx(1.0)


def test_the_date_line_and_the_pole_are_places_like_others():
    across = track_features(np.zeros(2), np.array([179.9, -179.9]), np.array([0.0, 1.0]))
    assert abs(across["longitude"]) == pytest.approx(180.0)
    assert across["distance"] == pytest.approx(0.2 * METRES_A_DEGREE)
    pole = track_features(np.full(4, 89.9), np.array([0.0, 90.0, 180.0, -90.0]), np.arange(4.0))
    assert pole["latitude"] == pytest.approx(90.0)
    assert pole["radius_of_gyration"] == pytest.approx(0.1 * METRES_A_DEGREE, rel=1e-5)


def test_the_same_place_and_the_same_moment():
    still = track_features(np.full(3, 46.0), np.full(3, 11.0), np.arange(3.0))
    assert (still["distance"], still["straightness"], still["stop_ratio"]) == (0.0, 1.0, 1.0)
    at_once = track_features(np.array([0.0, 1.0]), np.zeros(2), np.zeros(2))
    assert set(at_once) == {"latitude", "longitude", "radius_of_gyration"}

"""Generators against their recipes; loaders on a small folder of the same layout."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from kreinlearn.datasets import (
    Graph,
    data_home,
    list_datasets,
    load_dataset,
    make_balls3d,
    make_graphs,
    make_noisy_strings,
    make_polygons,
    make_warped_series,
)
from tests.oracles import double_centred


def indefiniteness(D: np.ndarray) -> float:
    """iota of -1/2 J (D o D) J, from its definition."""
    eigenvalues = np.linalg.eigvalsh(double_centred(D))
    return float(np.abs(eigenvalues[eigenvalues < 0]).sum() / np.abs(eigenvalues).sum())


# Polygons.


@pytest.mark.parametrize(("n", "sides"), [(60, (5, 7)), (90, (3, 4, 9))])
def test_polygons_follow_the_recipe(n: int, sides: tuple[int, ...]) -> None:
    X, y = make_polygons(n, sides=sides, radius=(0.5, 1.0), random_state=0)
    assert [x.shape for x in X] == [(k, 2) for k in y]
    assert np.unique(y, return_counts=True)[1].tolist() == [n // len(sides)] * len(sides)
    for x, k in zip(X, y, strict=True):
        z = x[:, 0] + 1j * x[:, 1]
        assert ((np.abs(z) >= 0.5) & (np.abs(z) <= 1.0)).all()
        # turned back by j / k of a circle, all vertices lie in one sector of 1 / k
        turned = np.angle(z * np.exp(-2j * np.pi * np.arange(k) / k) / z[0])
        assert np.ptp(turned) <= 2 * np.pi / k + 1e-12


def test_polygon_parameters_are_spread_over_their_ranges() -> None:
    X, _ = make_polygons(2000, sides=(5,), random_state=1)
    z = np.array(X) @ [1, 1j]
    moments = [np.abs(z).mean(), np.abs(z).std(), (z**5).mean()]
    # radius uniform in [0.5, 1]: mean 3/4, deviation 0.5/sqrt(12); a free turn: no direction
    np.testing.assert_allclose(moments, [0.75, 0.5 / np.sqrt(12), 0.0], atol=0.01)


def test_polygons_are_shuffled_and_odd_numbers_differ_by_one() -> None:
    _, y = make_polygons(401, random_state=2)
    assert np.unique(y, return_counts=True)[1].tolist() == [201, 200]
    changes = int(np.sum(y[1:] != y[:-1]))
    assert 150 < changes < 250  # about n / 2; two blocks would have 1, alternation 400


def test_hausdorff_indefiniteness_of_the_recipe() -> None:
    from kreinlearn.kernels.objects import Hausdorff, ModifiedHausdorff

    X, _ = make_polygons(1200, random_state=3)  # recorded at this size: 40 % and 33.5 %
    iotas = [indefiniteness(kernel(X)) for kernel in (Hausdorff(), ModifiedHausdorff())]
    np.testing.assert_allclose(iotas, [0.40, 0.335], atol=0.005)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sides": (2, 5)}, r"sides=\(2, 5\)"),
        ({"sides": (5, 5)}, r"sides=\(5, 5\)"),
        ({"sides": ()}, r"sides=\(\)"),
        ({"n_samples": 1}, "n_samples=1"),
    ],
)
def test_impossible_polygons_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_polygons(**options)


# Balls.


def test_balls_with_their_radii_added_back_are_euclidean_of_rank_three() -> None:
    D, y = make_balls3d((30, 20), radii=(0.5, 3.0), random_state=0)
    assert y.tolist() == [0] * 30 + [1] * 20
    np.testing.assert_array_equal(D, D.T)
    assert not np.diag(D).any()
    assert (D[~np.eye(50, dtype=bool)] > 0).all()
    r = np.array([0.5, 3.0])[y]
    centres = D + (r[:, None] + r) * (1 - np.eye(50))
    spectrum = np.sort(np.abs(np.linalg.eigvalsh(double_centred(centres))))[::-1]
    assert spectrum[3] < 1e-12 * spectrum[0] < spectrum[2]
    assert centres.max() <= 100 * np.sqrt(3)


def test_default_balls_have_the_published_indefiniteness() -> None:
    iotas = [100 * indefiniteness(make_balls3d(random_state=seed)[0]) for seed in range(5)]
    assert 0.065 < min(iotas) <= max(iotas) < 0.083  # 20 recorded draws: 0.069 to 0.079 %


def test_crowded_balls_are_drawn_again_until_they_are_apart() -> None:
    D, _ = make_balls3d((40,), radii=(1.0,), dimension=2, side=30.0, random_state=1)
    off = D[~np.eye(40, dtype=bool)]
    assert off.min() >= 0
    first = np.random.default_rng(1).uniform(0.0, 30.0, (40, 2))
    kept = np.isclose(squareform(pdist(first)) - 2, D).sum(axis=1) > 0
    assert kept[0]  # the first ball never moves
    assert 0 < np.sum(~kept) < 40


def test_balls_that_cannot_fit_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"5 balls of radii .* did not fit apart"):
        make_balls3d((5,), radii=(1.0,), side=1.0, random_state=0)
    with pytest.raises(ValueError, match="n_per_class has 2 classes but radii has 1"):
        make_balls3d((5, 5), radii=(1.0,))


# Random states.


@pytest.mark.parametrize("make", [make_polygons, make_balls3d])
def test_every_kind_of_random_state_repeats_itself(make) -> None:
    size = 20 if make is make_polygons else (5, 5)

    def flat(state: object) -> np.ndarray:
        return np.concatenate([np.ravel(x) for x in make(size, random_state=state)[0]])

    for state in (lambda: 5, lambda: np.random.RandomState(5), lambda: np.random.default_rng(5)):
        np.testing.assert_array_equal(flat(state()), flat(state()))
    generator = np.random.default_rng(5)
    first, second = flat(generator), flat(generator)
    assert first.shape != second.shape or (first != second).any()


# Loaders.


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("dissimilarity", "timeseries", "graphs", "large"):
        (tmp_path / kind).mkdir()
    (tmp_path / "README.md").write_text("no data")
    np.savez_compressed(tmp_path / "dissimilarity/tiny.npz", D=np.array([[0, 1], [2, 0]]), y=[0, 1])
    np.savez_compressed(
        tmp_path / "timeseries/ragged.npz",
        values=np.arange(12.0).reshape(6, 2),
        offsets=[0, 1, 4, 6],
        y=[0, 1, 1],
        is_test=[False, True, True],
    )
    np.savez_compressed(
        tmp_path / "graphs/three.npz",
        y=[0, 1, 0],
        node_offsets=[0, 2, 3, 6],
        node_labels=np.array([7, 8, 9, 1, 2, 3], dtype=np.int16),
        edge_offsets=[0, 1, 1, 3],
        edges=np.array([[0, 1], [0, 2], [1, 2]], dtype=np.int32),
    )
    utf8 = np.frombuffer("año\nZürich\nсад".encode(), dtype=np.uint8)
    np.savez_compressed(tmp_path / "large/words.npz", utf8=utf8, y=[0, 1, 2], centibels=[1, 2, 3])
    monkeypatch.setenv("KREINLEARN_DATA", str(tmp_path))
    return tmp_path


def test_names_are_folder_and_file(folder: Path) -> None:
    assert data_home() == folder
    assert list_datasets() == [
        "dissimilarity/tiny",
        "graphs/three",
        "large/words",
        "timeseries/ragged",
    ]


def test_a_matrix_is_left_as_the_file_holds_it(folder: Path) -> None:
    data = load_dataset("dissimilarity/tiny")
    assert sorted(data) == ["D", "name", "y"]
    assert data.D.tolist() == [[0, 1], [2, 0]]
    assert data.name == "dissimilarity/tiny"


def test_series_come_apart(folder: Path) -> None:
    data = load_dataset("timeseries/ragged")
    assert sorted(data) == ["X", "is_test", "name", "y"]
    assert [x.tolist() for x in data.X] == [
        [[0, 1]],
        [[2, 3], [4, 5], [6, 7]],
        [[8, 9], [10, 11]],
    ]


def test_graphs_come_apart(folder: Path) -> None:
    data = load_dataset("graphs/three")
    assert sorted(data) == ["X", "name", "y"]
    assert all(isinstance(graph, Graph) for graph in data.X)
    assert [graph.node_labels.tolist() for graph in data.X] == [[7, 8], [9], [1, 2, 3]]
    assert [graph.edges.tolist() for graph in data.X] == [[[0, 1]], [], [[0, 2], [1, 2]]]


def test_words_come_apart(folder: Path) -> None:
    data = load_dataset("large/words")
    assert data.s == ["año", "Zürich", "сад"]
    assert sorted(data) == ["centibels", "name", "s", "y"]


def test_a_pickle_in_the_folder_is_not_run(folder: Path) -> None:
    np.savez(folder / "large/pickled.npz", y=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        load_dataset("large/pickled")


@pytest.mark.parametrize("name", ["tiny", "dissimilarity/huge", "../dissimilarity/tiny", ""])
def test_an_unknown_name_lists_what_there_is(folder: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"no data set .* KREINLEARN_DATA .*graphs/three"):
        load_dataset(name)


def test_a_missing_folder_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KREINLEARN_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"KREINLEARN_DATA is not set.*woodyplants50\.npz"):
        load_dataset("dissimilarity/woodyplants50")
    monkeypatch.setenv("KREINLEARN_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"KREINLEARN_DATA=.*nowhere is no folder"):
        list_datasets()


needs_data = pytest.mark.skipif("KREINLEARN_DATA" not in os.environ, reason="needs KREINLEARN_DATA")


@needs_data
def test_the_papers_indefiniteness_of_the_sets_that_are_whole() -> None:
    names = ["balls3d", "protein", "woodyplants50"]
    iotas = [indefiniteness(load_dataset(f"dissimilarity/{name}").D) for name in names]
    np.testing.assert_allclose(iotas, [0.000718, 0.000735, 0.229], rtol=0.003)


@needs_data
def test_every_set_of_objects_has_a_label_for_each() -> None:
    for name in list_datasets():
        if name.split("/")[0] in ("graphs", "shapes", "strings", "timeseries", "vectorial"):
            data = load_dataset(name)
            assert len(data.get("X", data.get("s"))) == len(data.y), name


# Noisy strings.


def edits(a: str, b: str) -> int:
    """The Levenshtein distance, a row of its table at a time."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


@pytest.mark.parametrize(("length", "noise"), [(20, 6), (3, 9), (8, 0)])
def test_strings_are_within_their_edits_of_a_prototype(length: int, noise: int) -> None:
    X, y, prototypes = make_noisy_strings(
        90, length=length, noise=noise, return_prototypes=True, random_state=0
    )
    assert np.bincount(y).tolist() == [23, 23, 22, 22]
    assert len(set(prototypes)) == 4
    assert all(len(word) == length for word in prototypes)
    assert set("".join(X + prototypes)) == set("ACGT")
    distances = [edits(x, prototypes[c]) for x, c in zip(X, y, strict=True)]
    assert max(distances) <= noise
    assert noise == 0 or np.mean(distances) > noise / 4
    assert all(isinstance(x, str) for x in X)


def test_edits_put_in_take_out_and_change_equally_often() -> None:
    X, _, (word,) = make_noisy_strings(
        3000, n_classes=1, length=9, noise=1, alphabet="xyz", return_prototypes=True, random_state=1
    )
    counts = np.bincount([len(x) for x in X])[8:11] / 3000
    np.testing.assert_allclose(counts, 1 / 3, atol=0.03)
    changed = [x for x in X if len(x) == 9]
    assert all(sum(a != b for a, b in zip(x, word, strict=True)) == 1 for x in changed)
    places = np.bincount([next(i for i in range(9) if x[i] != word[i]) for x in changed])
    assert places.min() > 0.5 * places.mean()


def test_few_edits_leave_the_nearest_prototype_right() -> None:
    X, y, prototypes = make_noisy_strings(
        200, length=30, noise=5, return_prototypes=True, random_state=2
    )
    gaps = [edits(a, b) for i, a in enumerate(prototypes) for b in prototypes[:i]]
    assert min(gaps) > 10  # more than twice the edits
    nearest = [int(np.argmin([edits(x, word) for word in prototypes])) for x in X]
    assert nearest == y.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alphabet": "A"}, "alphabet='A': pass distinct letters, at least 2"),
        ({"alphabet": "ABA"}, "alphabet='ABA'"),
        ({"length": 0}, "length=0, noise=6: pass at least 1 letter and 0 edits"),
        ({"noise": -1}, "noise=-1"),
        ({"length": 1, "n_classes": 5}, "fewer than n_classes=5 strings of length=1; pass a"),
        ({"n_samples": 3}, "n_samples=3, n_classes=4: pass at least one class"),
        ({"n_classes": 0}, "n_classes=0"),
    ],
)
def test_impossible_strings_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_noisy_strings(**options)


# Warped series.


@pytest.mark.parametrize("warp", [0.0, 0.05, 0.3, 1.0])
def test_series_stay_within_their_warping_of_the_curve(warp: float) -> None:
    T = 2001
    X, y, curves = make_warped_series(
        30, length=T, warp=warp, noise=0.0, return_prototypes=True, random_state=0
    )
    assert curves.shape == (3, T)

    def outside(x: np.ndarray, curve: np.ndarray, share: float) -> bool:
        """Whether some value of x is not among those of the curve within this time of it."""
        reach = round(share * (T - 1)) + 1
        near = [curve[max(0, i - reach) : i + reach + 1] for i in range(0, T, 40)]
        low, high = [part.min() for part in near], [part.max() for part in near]
        return bool(((x[::40] < np.array(low) - 1e-4) | (x[::40] > np.array(high) + 1e-4)).any())

    assert not any(outside(x, curves[c], warp) for x, c in zip(X, y, strict=True))
    if 0 < warp < 0.1:
        assert any(outside(x, curves[c], 0.8 * warp) for x, c in zip(X, y, strict=True))
    for x, c in zip(X, y, strict=True):
        ends = [0, T - 1]
        np.testing.assert_allclose(x[ends], curves[c][ends], atol=1e-9)
        # time only increases: the same turning points in the same order, none lost
        assert np.abs(np.diff(x)).sum() == pytest.approx(np.abs(np.diff(curves[c])).sum(), rel=0.01)
    np.testing.assert_allclose(curves[:, :-1].std(axis=1), 1.0, rtol=1e-9)  # over whole periods
    same = np.allclose(X[0], curves[y[0]], atol=1e-9)
    assert same == (warp == 0)


def test_lengths_and_noise_of_series() -> None:
    X, y = make_warped_series(600, length=(20, 24), warp=0.0, noise=0.5, random_state=1)
    assert np.bincount(y).tolist() == [200] * 3
    lengths = np.array([len(x) for x in X])
    assert np.bincount(lengths)[20:].min() > 80
    assert lengths.max() == 24
    of_one = np.array([x for x, c in zip(X, y, strict=True) if c == 0 and len(x) == 22])
    assert of_one.std(axis=0, ddof=1).mean() == pytest.approx(0.5, rel=0.1)
    assert all(x.dtype == np.float64 and x.ndim == 1 for x in X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 1}, "length=1: pass a number of at least 2, or a pair in order"),
        ({"length": (30, 20)}, r"length=\(30, 20\)"),
        ({"warp": 1.5}, r"warp=1\.5, noise=0\.1: pass a warp from 0 to 1"),
        ({"warp": np.nan}, "warp=nan"),
        ({"noise": -0.1}, r"noise=-0\.1"),
        ({"n_samples": 2}, "n_samples=2, n_classes=3"),
    ],
)
def test_impossible_series_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_warped_series(**options)


# Graphs.


def components(graph: Graph) -> int:
    """Of an undirected graph, by joining the ends of every edge."""
    group = list(range(len(graph.node_labels)))
    for i, j in graph.edges:
        old, new = group[i], group[j]
        group = [new if g == old else g for g in group]
    return len(set(group))


@pytest.mark.parametrize("n_chords", [0, 2, 5])
def test_graphs_are_trees_and_rings_with_chords(n_chords: int) -> None:
    X, y = make_graphs(60, n_nodes=(5, 9), n_chords=n_chords, random_state=0)
    assert np.bincount(y).tolist() == [30, 30]
    for graph, c in zip(X, y, strict=True):
        n = len(graph.node_labels)
        assert 5 <= n <= 9
        assert components(graph) == 1
        assert len(graph.edges) == (n + n_chords if c else n - 1)  # so without a cycle if c is 0
        i, j = graph.edges.T
        assert (i < j).all()
        assert i.min() >= 0
        assert j.max() < n
        assert [*map(tuple, graph.edges)] == sorted(set(map(tuple, graph.edges)))
        degrees = np.bincount(graph.edges.ravel(), minlength=n)
        assert not c or (degrees >= 2).all()


def test_rings_pass_through_every_node() -> None:
    networkx = pytest.importorskip("networkx")
    X, y = make_graphs(20, n_chords=0, random_state=1)
    for graph, c in zip(X, y, strict=True):
        G = networkx.Graph(graph.edges.tolist())
        assert networkx.is_tree(G) == (c == 0)
        cycles = [len(cycle) for cycle in networkx.simple_cycles(G)]
        assert cycles == ([len(graph.node_labels)] if c else [])


def test_only_edges_tell_graphs_apart() -> None:
    X, y = make_graphs(101, n_labels=4, random_state=2)
    nodes = [
        [sorted(g.node_labels.tolist()) for g, c in zip(X, y, strict=True) if c == k]
        for k in (0, 1)
    ]
    assert nodes[0][:50] == nodes[1]
    assert set(np.concatenate([g.node_labels for g in X])) == {0, 1, 2, 3}
    assert {len(g.node_labels) for g in X} == set(range(8, 17))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_nodes": (2, 5)}, r"n_nodes=\(2, 5\), n_labels=3: pass at least 3 nodes, 1 label"),
        ({"n_nodes": (9, 8)}, r"n_nodes=\(9, 8\)"),
        ({"n_labels": 0}, "n_labels=0"),
        ({"n_nodes": (5, 9), "n_chords": 6}, "n_chords=6: a ring of 5 nodes has 0 to 5 chords"),
        ({"n_chords": -1}, "n_chords=-1"),
        ({"n_samples": 1}, "n_samples=1, n_classes=2"),
    ],
)
def test_impossible_graphs_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_graphs(**options)


@pytest.mark.parametrize("make", [make_noisy_strings, make_warped_series, make_graphs])
def test_generators_of_objects_repeat_themselves(make) -> None:
    for state in (lambda: 5, lambda: np.random.RandomState(5), lambda: np.random.default_rng(5)):
        first, again = make(9, random_state=state()), make(9, random_state=state())
        assert repr(first) == repr(again)
    generator = np.random.default_rng(5)
    assert repr(make(9, random_state=generator)) != repr(make(9, random_state=generator))

"""Graphs as columns: the library's own pairs of arrays, and those of networkx."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kreinlearn.data.tiles import library

if TYPE_CHECKING:
    from networkx import Graph as Network

    from kreinlearn.persist.columns import Column

GRAPHS = ("kreinlearn.datasets", "Graph")
NETWORKS = ("Graph", "DiGraph", "MultiGraph", "MultiDiGraph")
PARTS = ("about", "nodes", "of_nodes", "edges", "of_edges")  # of a network


def write_graphs(graphs: Sequence[Any]) -> dict[str, Any]:
    return {name: [getattr(x, name) for x in graphs] for name in ("node_labels", "edges")}


def read_graphs(column: Column) -> list[Any]:
    labels, edges = column.items("node_labels"), column.items("edges")
    column.require(len(labels) == len(edges))
    module, name = GRAPHS
    make = getattr(import_module(module), name)
    return [make(*pair) for pair in zip(labels, edges, strict=True)]


def is_network(x: object) -> bool:
    """Whether an object is a graph of networkx, and not of a subclass of a user."""
    kind = type(x)
    return kind.__module__.startswith("networkx.classes.") and kind.__name__ in NETWORKS


def write_networks(graphs: Sequence[Network]) -> dict[str, Any]:
    """The data, the nodes and the edges (with keys) of each graph, and the data of these."""
    edges = [list(_edges(x)) for x in graphs]
    values = (
        [dict(x.graph) for x in graphs],
        [list(x.nodes) for x in graphs],
        [[dict(data) for _, data in x.nodes(data=True)] for x in graphs],
        [[edge[:-1] for edge in part] for part in edges],
        [[dict(edge[-1]) for edge in part] for part in edges],
    )
    return dict(zip(PARTS, values, strict=True))


def _edges(graph: Network) -> Iterable[tuple[Any, ...]]:
    return graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)


def read_networks(column: Column, name: object) -> list[Network]:
    column.require(isinstance(name, str) and name in NETWORKS)
    parts = [column.items(part) for part in PARTS]
    column.require(len({len(part) for part in parts}) == 1)
    make, ends = getattr(library("networkx", "graphs"), str(name)), 3 if "Multi" in str(name) else 2
    graphs = []
    for about, nodes, of_nodes, edges, of_edges in zip(*parts, strict=True):
        column.require(type(about) is dict and {type(x) for x in (nodes, edges)} == {list})
        column.require(all(type(edge) is tuple and len(edge) == ends for edge in edges))
        column.require(all(type(data) is dict for data in (*of_nodes, *of_edges)))
        graph = make()
        graph.graph.update(about)
        graph.add_nodes_from(zip(nodes, of_nodes, strict=True))
        graph.add_edges_from((*edge, data) for edge, data in zip(edges, of_edges, strict=True))
        column.require(len(graph) == len(nodes) and graph.number_of_edges() == len(edges))
        graphs.append(graph)
    return graphs

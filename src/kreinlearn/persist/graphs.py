"""Graphs as columns: the library's own pairs of arrays, and those of networkx."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from kreinlearn.kernels._objects import library

GRAPHS = ("kreinlearn.datasets", "Graph")
NETWORKS = ("Graph", "DiGraph", "MultiGraph", "MultiDiGraph")


def graph_parts(graphs: Sequence[Any]) -> dict[str, Any]:
    return {name: [getattr(x, name) for x in graphs] for name in ("node_labels", "edges")}


def graphs_of(column: Any) -> list[Any]:
    labels, edges = column.items("node_labels"), column.items("edges")
    column.require(len(labels) == len(edges))
    module, name = GRAPHS
    make = getattr(import_module(module), name)
    return [make(*pair) for pair in zip(labels, edges, strict=True)]


def is_network(x: Any) -> bool:
    kind = type(x)
    return kind.__module__.startswith("networkx.classes.") and kind.__name__ in NETWORKS


def network_parts(graphs: Sequence[Any]) -> dict[str, Any]:
    """Of each graph its own data, nodes with data, and edges (with keys) with data."""
    return {
        "about": [dict(x.graph) for x in graphs],
        "nodes": [[(node, dict(data)) for node, data in x.nodes(data=True)] for x in graphs],
        "edges": [[(*edge[:-1], dict(edge[-1])) for edge in _edges(x)] for x in graphs],
    }


def _edges(graph: Any) -> Any:
    return graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)


def networks_of(column: Any, name: Any) -> list[Any]:
    column.require(isinstance(name, str) and name in NETWORKS)
    make = getattr(library("networkx", "graphs"), name)
    about, nodes, edges = (column.items(part) for part in ("about", "nodes", "edges"))
    column.require(len(about) == len(nodes) == len(edges))
    column.require(all(type(x) is dict for x in about))
    length = 4 if name.startswith("Multi") else 3
    for parts, size in ((nodes, 2), (edges, length)):
        column.require(all(type(part) is list for part in parts))
        entries = [entry for part in parts for entry in part]
        column.require(all(type(x) is tuple and len(x) == size for x in entries))
        column.require(all(type(x[-1]) is dict for x in entries))
    found = []
    for own, some, ends in zip(about, nodes, edges, strict=True):
        graph = make()
        graph.graph.update(own)
        graph.add_nodes_from(some)
        graph.add_edges_from(ends)
        found.append(graph)
    return found

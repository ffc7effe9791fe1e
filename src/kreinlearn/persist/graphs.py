"""Graphs as columns: the library's own pairs of arrays, and those of networkx."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from kreinlearn.kernels.object_kernel import library

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
    """Of each graph its own data, nodes and edges (with keys), and the data of these."""
    edges = [list(_edges(x)) for x in graphs]
    return {
        "about": [dict(x.graph) for x in graphs],
        "nodes": [list(x.nodes) for x in graphs],
        "of_nodes": [[dict(data) for _, data in x.nodes(data=True)] for x in graphs],
        "edges": [[edge[:-1] for edge in part] for part in edges],
        "of_edges": [[dict(edge[-1]) for edge in part] for part in edges],
    }


def _edges(graph: Any) -> Any:
    return graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)


def networks_of(column: Any, name: Any) -> list[Any]:
    column.require(isinstance(name, str) and name in NETWORKS)
    parts = [column.items(part) for part in ("about", "nodes", "of_nodes", "edges", "of_edges")]
    column.require(len({len(part) for part in parts}) == 1)
    make, ends = getattr(library("networkx", "graphs"), name), 3 if "Multi" in name else 2
    found = []
    for about, nodes, of_nodes, edges, of_edges in zip(*parts, strict=True):
        column.require(type(about) is dict and {type(x) for x in (nodes, edges)} == {list})
        column.require(all(type(edge) is tuple and len(edge) == ends for edge in edges))
        column.require(all(type(data) is dict for data in (*of_nodes, *of_edges)))
        graph = make()
        graph.graph.update(about)
        graph.add_nodes_from(zip(nodes, of_nodes, strict=True))
        pairs = zip(edges, of_edges, strict=True)
        graph.add_edges_from((*edge, data) for edge, data in pairs)
        column.require(len(graph) == len(nodes) and graph.number_of_edges() == len(edges))
        found.append(graph)
    return found

// Where the nodes of a composition lie: as icicle (a row a level) and as treemap. Pure geometry.

import { hierarchy, treemap, treemapSquarify } from 'd3-hierarchy';

import type { CompositionNode } from '../api/types';

export interface Tile {
  index: number;
  x: number;
  y: number;
  width: number;
  height: number;
  depth: number;
}

/** What a node is as wide as: its value; in a difference the larger of old and new. */
export function nodeSize(node: CompositionNode, difference: boolean): number {
  if (!difference) return Math.max(node.value, 0);
  const old = node.base ?? 0;
  return Math.max(old, old + node.value, 0);
}

export function childrenOf(nodes: readonly CompositionNode[]): number[][] {
  const children: number[][] = nodes.map(() => []);
  nodes.forEach((node, index) => {
    if (node.parent >= 0 && node.parent < index) children[node.parent]?.push(index);
  });
  return children;
}

/**
 * Rows from `root` down. Children share their parent's width in proportion to their size; where they
 * are larger than it together (differences), all shrink alike. Tiles below `least` pixels are left out.
 */
export function icicle(
  nodes: readonly CompositionNode[], root: number, width: number, rowHeight: number, difference: boolean, least = 1,
): Tile[] {
  const children = childrenOf(nodes);
  const tiles: Tile[] = [];
  const place = (index: number, x: number, w: number, depth: number): void => {
    tiles.push({ index, x, y: depth * rowHeight, width: w, height: rowHeight, depth });
    const node = nodes[index];
    if (!node) return;
    const sizes = (children[index] ?? []).map((child) => nodeSize(nodes[child] as CompositionNode, difference));
    const sum = sizes.reduce((a, b) => a + b, 0);
    const whole = Math.max(nodeSize(node, difference), sum);
    if (whole <= 0) return;
    let left = x;
    (children[index] ?? []).forEach((child, i) => {
      const share = ((sizes[i] ?? 0) / whole) * w;
      if (share >= least) place(child, left, share, depth + 1);
      left += share;
    });
  };
  if (nodes[root]) place(root, 0, width, 0);
  return tiles;
}

/** Leaves and their headed parents, two levels or more as room allows. */
export function treemapTiles(
  nodes: readonly CompositionNode[], root: number, width: number, height: number, difference: boolean,
): Tile[] {
  if (!nodes[root]) return [];
  const children = childrenOf(nodes);
  interface Datum {
    index: number;
    own: number;
    children: Datum[];
  }
  const build = (index: number): Datum => {
    const below = (children[index] ?? []).map(build);
    const node = nodes[index] as CompositionNode;
    const size = nodeSize(node, difference);
    const held = (children[index] ?? []).reduce((sum, child) => sum + nodeSize(nodes[child] as CompositionNode, difference), 0);
    return { index, own: below.length === 0 ? size : Math.max(size - held, 0), children: below };
  };
  const tree = hierarchy(build(root), (datum) => datum.children)
    .sum((datum) => datum.own)
    .sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const placed = treemap<Datum>()
    .size([width, height])
    .tile(treemapSquarify.ratio(1.4))
    .paddingOuter(2)
    .paddingTop(20)
    .paddingInner(2)
    .round(true)(tree);
  return placed
    .descendants()
    .map((node) => ({
      index: node.data.index, x: node.x0, y: node.y0, width: node.x1 - node.x0, height: node.y1 - node.y0, depth: node.depth,
    }))
    .filter((tile) => tile.width >= 2 && tile.height >= 2);
}

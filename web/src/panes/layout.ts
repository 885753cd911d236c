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
  /** Library frames that stand in one row, from `index` to the last: each has called the next and nothing else. */
  folded?: { count: number; last: number };
}

/** So many in a row are worth folding: the interpreter's own frames, a framework's wrappers. */
const kWorthFolding = 4;

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
 * With `fold`, library frames one below the other that are all of one width become one row.
 */
export function icicle(
  nodes: readonly CompositionNode[], root: number, width: number, rowHeight: number, difference: boolean, least = 1, fold = false,
): Tile[] {
  const children = childrenOf(nodes);
  const tiles: Tile[] = [];
  const library = (index: number): boolean => nodes[index]?.kind === 'frame' && !nodes[index].user;
  // The nodes from `index` down that hold the very same.
  const chain = (index: number): { count: number; last: number } => {
    let last = index;
    let count = 1;
    while (library(last)) {
      const below = children[last] ?? [];
      const [next] = below;
      if (below.length !== 1 || next === undefined || !library(next) || nodes[next]?.value !== nodes[last]?.value) break;
      last = next;
      count += 1;
    }
    return { count, last };
  };
  const place = (first: number, x: number, w: number, depth: number): void => {
    const folded = fold && first !== root ? chain(first) : { count: 1, last: first };
    const folds = folded.count >= kWorthFolding;
    const index = folds ? folded.last : first;
    tiles.push({ index: first, x, y: depth * rowHeight, width: w, height: rowHeight, depth, ...(folds ? { folded } : {}) });
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

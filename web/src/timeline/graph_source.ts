// Keeps a picture of the block graph for the window on screen: one question at a time, always the
// latest; the last picture stays until the next is there, and one of the whole run behind it.

import { askBinary } from '../api/client';
import { decodeGraph, type Graph } from '../api/wire';
import { raster } from './raster_client';
import type { Range } from './viewport';

export interface GraphQuery {
  pool: number;
  edition: string;
  time: Range;
  bytes: Range;
  width: number;
  height: number;
  order: string;
  colour: string;
  classes: string | null;
  sample: 'peak' | 'floor';
  detail: 'tidy' | 'exact';
  /** By class; null while the legend is not there: the answer is asked for all the same. */
  colours: Uint32Array | null;
}

export interface Picture {
  graph: Graph;
  bitmap: ImageBitmap;
  query: GraphQuery;
}

/** All but window and colours. */
function kindOf(query: GraphQuery): string {
  return [query.pool, query.order, query.colour, query.classes, query.sample, query.detail].join('|');
}

/** All but the window: pictures that agree in it may stand behind one another. */
function lookOf(query: GraphQuery): string {
  return `${kindOf(query)}|${query.colours?.join() ?? ''}`;
}

/** What is asked for: all but the colours. */
function dataOf(query: GraphQuery): string {
  return [kindOf(query), query.edition, query.time, query.bytes, query.width, query.height].join('|');
}

function keyOf(query: GraphQuery): string {
  return `${dataOf(query)}|${query.colours?.join() ?? ''}`;
}

/** The colours of one fit the classes of the other. */
function sameColours(a: GraphQuery, b: GraphQuery): boolean {
  return a.pool === b.pool && a.colour === b.colour;
}

export class GraphSource {
  picture: Picture | null = null;
  backdrop: Picture | null = null;
  private wanted: GraphQuery | null = null;
  private asked = '';
  private drawn = '';
  /** The last answer, to be drawn again in other colours. */
  private last: { query: GraphQuery; buffer: ArrayBuffer } | null = null;
  private busy = false;
  private closed = false;

  constructor(
    private readonly onPicture: () => void,
    private readonly onError: (error: unknown) => void,
  ) {}

  want(query: GraphQuery): void {
    this.wanted = query;
    const look = lookOf(query);
    // A picture in other colours or another order would be a lie about what is on screen.
    if (this.backdrop && lookOf(this.backdrop.query) !== look && this.backdrop.query.pool !== query.pool) {
      this.drop();
    }
    void this.work();
  }

  close(): void {
    this.closed = true;
    this.drop();
  }

  private drop(): void {
    this.picture?.bitmap.close();
    if (this.backdrop && this.backdrop !== this.picture) this.backdrop.bitmap.close();
    this.picture = null;
    this.backdrop = null;
  }

  private async work(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.wanted && !this.closed) {
        const query = this.wanted;
        if (dataOf(query) !== this.asked) {
          this.asked = dataOf(query);
          await this.fetch(query);
        } else if (!this.last || !query.colours || keyOf({ ...this.last.query, colours: query.colours }) === this.drawn) {
          break;
        }
        // As it is wanted by now: the legend may have come meanwhile.
        const colours = this.wanted.colours;
        const { last } = this;
        if (last && colours && sameColours(last.query, this.wanted)) await this.draw({ ...last.query, colours }, last.buffer);
      }
    } finally {
      this.busy = false;
    }
  }

  private async fetch(query: GraphQuery): Promise<void> {
    try {
      const buffer = await askBinary('graph', {
        pool: query.pool,
        t0: Math.floor(query.time[0]),
        t1: Math.ceil(query.time[1]),
        m0: Math.floor(query.bytes[0]),
        m1: Math.ceil(query.bytes[1]),
        width: query.width,
        height: query.height,
        order: query.order,
        colour: query.colour,
        classes: query.classes,
        sample: query.sample,
        detail: query.detail,
      });
      this.last = { query, buffer };
    } catch (error) {
      this.last = null;
      if (!this.closed) this.onError(error);
    }
  }

  private async draw(query: GraphQuery & { colours: Uint32Array }, buffer: ArrayBuffer): Promise<void> {
    this.drawn = keyOf(query);
    try {
      const answer = await raster({
        buffer, width: query.width, height: query.height, colours: query.colours, floor: query.sample === 'floor',
      });
      if (this.last) this.last.buffer = answer.buffer;
      if (this.closed) return;
      if (!answer.bitmap) throw new Error(answer.error ?? 'the picture could not be drawn');
      this.accept({ graph: decodeGraph(answer.buffer), bitmap: answer.bitmap, query });
    } catch (error) {
      if (!this.closed) this.onError(error);
    }
  }

  private accept(next: Picture): void {
    const look = lookOf(next.query);
    const old = this.picture;
    this.picture = next;
    if (this.backdrop && lookOf(this.backdrop.query) !== look) {
      if (this.backdrop !== old) this.backdrop.bitmap.close();
      this.backdrop = null;
    }
    // The widest picture of this look is the one to keep behind.
    const span = (picture: Picture): number =>
      (picture.graph.t1 - picture.graph.t0) * (picture.graph.m1 - picture.graph.m0);
    if (!this.backdrop || span(next) >= span(this.backdrop)) {
      if (this.backdrop && this.backdrop !== old) this.backdrop.bitmap.close();
      this.backdrop = next;
    }
    if (old && old !== this.backdrop && old !== this.picture) old.bitmap.close();
    this.onPicture();
  }
}

// Keeps a picture of the block graph for the window on screen: one question at a time, always the
// latest; the last picture stays until the next is there, and one of the whole run behind it.

import { askBinary } from '../api/client';
import { decodeGraph, type Graph } from '../api/wire';
import { answerRaster, type RasterAnswer, type RasterRequest } from './raster_job';
import type { Range } from './viewport';

export interface GraphQuery {
  pool: number;
  generation: number;
  time: Range;
  bytes: Range;
  width: number;
  height: number;
  order: string;
  colour: string;
  classes: string | null;
  sample: 'peak' | 'floor';
  detail: 'tidy' | 'exact';
  colours: Uint32Array;
}

export interface Picture {
  graph: Graph;
  bitmap: ImageBitmap;
  query: GraphQuery;
}

/** All but the window: pictures that agree in it may stand behind one another. */
function lookOf(query: GraphQuery): string {
  return [query.pool, query.order, query.colour, query.classes, query.sample, query.detail, query.colours.join()].join('|');
}

function keyOf(query: GraphQuery): string {
  return [lookOf(query), query.generation, query.time, query.bytes, query.width, query.height].join('|');
}

// A report is one file: it has no worker's script beside it, and its pictures are small.
function openWorker(): Worker | null {
  if (document.getElementById('msmemscope-report')) return null;
  return new Worker(new URL('./raster_worker.ts', import.meta.url), { type: 'module' });
}

export class GraphSource {
  picture: Picture | null = null;
  backdrop: Picture | null = null;
  private wanted: GraphQuery | null = null;
  private asked = '';
  private busy = false;
  private closed = false;
  private readonly worker = openWorker();
  private readonly waiting = new Map<number, (answer: RasterAnswer) => void>();
  private nextId = 1;

  constructor(
    private readonly onPicture: () => void,
    private readonly onError: (error: unknown) => void,
  ) {
    if (this.worker) this.worker.onmessage = (event: MessageEvent<RasterAnswer>) => {
      this.waiting.get(event.data.id)?.(event.data);
      this.waiting.delete(event.data.id);
    };
  }

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
    this.worker?.terminate();
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
      while (this.wanted && !this.closed && keyOf(this.wanted) !== this.asked) {
        const query = this.wanted;
        this.asked = keyOf(query);
        await this.fetch(query);
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
      const answer = await this.raster(buffer, query);
      if (this.closed) return;
      if (!answer.bitmap) throw new Error(answer.error ?? 'the picture could not be drawn');
      this.accept({ graph: decodeGraph(answer.buffer), bitmap: answer.bitmap, query });
    } catch (error) {
      if (!this.closed) this.onError(error);
    }
  }

  private raster(buffer: ArrayBuffer, query: GraphQuery): Promise<RasterAnswer> {
    const id = this.nextId;
    this.nextId += 1;
    const request: RasterRequest = {
      id,
      buffer,
      width: query.width,
      height: query.height,
      colours: query.colours,
      floor: query.sample === 'floor',
    };
    const { worker } = this;
    if (!worker) return answerRaster(request);
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      worker.postMessage(request, [buffer]);
    });
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

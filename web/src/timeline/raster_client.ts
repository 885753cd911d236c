// The worker that makes pictures of answers: one for all of the page, begun with it.

import { answerRaster, type RasterAnswer, type RasterRequest } from './raster_job';

const waiting = new Map<number, (answer: RasterAnswer) => void>();
let worker: Worker | null = null;
let nextId = 1;

/** A report is one file: it has no worker's script beside it, and its pictures are small. */
export function startRaster(): void {
  if (worker || document.getElementById('msmemscope-report')) return;
  worker = new Worker(new URL('./raster_worker.ts', import.meta.url), { type: 'module' });
  worker.onmessage = (event: MessageEvent<RasterAnswer>) => {
    waiting.get(event.data.id)?.(event.data);
    waiting.delete(event.data.id);
  };
}

/** The answer's buffer goes to the worker and comes back with the bitmap. */
export function raster(job: Omit<RasterRequest, 'id'>): Promise<RasterAnswer> {
  const request = { ...job, id: nextId };
  nextId += 1;
  if (!worker) return answerRaster(request);
  const { id } = request;
  const asked = worker;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    asked.postMessage(request, [request.buffer]);
  });
}

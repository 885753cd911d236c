// Decoding and drawing off the main thread: the page goes on moving the last picture meanwhile.

import { decodeGraph } from '../api/wire';
import { rasterGraph } from './raster';

export interface RasterRequest {
  id: number;
  buffer: ArrayBuffer;
  width: number;
  height: number;
  colours: Uint32Array;
  floor: boolean;
}

export interface RasterAnswer {
  id: number;
  buffer: ArrayBuffer;
  bitmap: ImageBitmap | null;
  error: string | null;
}

self.onmessage = async (event: MessageEvent<RasterRequest>): Promise<void> => {
  const { id, buffer, width, height, colours, floor } = event.data;
  try {
    const graph = decodeGraph(buffer);
    const pixels = rasterGraph(graph, width, height, { colours, floor });
    const bitmap = await createImageBitmap(new ImageData(new Uint8ClampedArray(pixels.buffer), width, height));
    post({ id, buffer, bitmap, error: null }, [buffer, bitmap]);
  } catch (error) {
    post({ id, buffer, bitmap: null, error: String(error) }, [buffer]);
  }
};

function post(answer: RasterAnswer, transfer: Transferable[]): void {
  (self as unknown as DedicatedWorkerGlobalScope).postMessage(answer, transfer);
}

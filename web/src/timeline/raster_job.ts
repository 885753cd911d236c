// One picture: decoded, drawn, made a bitmap. In a worker where there is one.

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

export async function answerRaster(request: RasterRequest): Promise<RasterAnswer> {
  const { id, buffer, width, height, colours, floor } = request;
  try {
    const pixels = rasterGraph(decodeGraph(buffer), width, height, { colours, floor });
    const bitmap = await createImageBitmap(new ImageData(new Uint8ClampedArray(pixels.buffer), width, height));
    return { id, buffer, bitmap, error: null };
  } catch (error) {
    return { id, buffer, bitmap: null, error: String(error) };
  }
}

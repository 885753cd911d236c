// Decoding and drawing off the main thread: the page goes on moving the last picture meanwhile.

import { answerRaster, type RasterRequest } from './raster_job';

self.onmessage = async (event: MessageEvent<RasterRequest>): Promise<void> => {
  const answer = await answerRaster(event.data);
  const transfer: Transferable[] = answer.bitmap ? [answer.buffer, answer.bitmap] : [answer.buffer];
  (self as unknown as DedicatedWorkerGlobalScope).postMessage(answer, transfer);
};

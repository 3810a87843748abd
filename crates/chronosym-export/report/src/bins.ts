// Sums over the pixels of a time axis.

import { lowerBound } from "./calls.ts";
import type { Samples } from "./trace.ts";

/** Time by pixel and activity: 4 numbers for each pixel, in ns. */
export type Bins = Float64Array;

/**
 * Adds the samples of a thread. Each lasts as long as its weight if that is a time; else it counts in
 * the pixel of its time.
 */
export function addThread(
  samples: Samples,
  thread: number,
  [from, to]: readonly [number, number],
  pixels: number,
  isTime: boolean,
  bins: Bins,
): void {
  const end = samples.start[thread + 1];
  const perPixel = (to - from) / pixels;
  let first = lowerBound(samples.time, samples.start[thread], end, from);
  // The sample before may reach into the range.
  if (isTime && first > samples.start[thread]) first--;
  for (let i = first; i < end && samples.time[i] < to; i++) {
    const start = samples.time[i];
    const activity = samples.activity[i];
    if (!isTime) {
      if (start >= from) bins[4 * Math.floor((start - from) / perPixel) + activity] += samples.weight[i];
      continue;
    }
    const until = Math.min(to, start + samples.weight[i]);
    let pixel = Math.max(0, Math.floor((start - from) / perPixel));
    for (; pixel < pixels; pixel++) {
      const left = Math.max(start, from + pixel * perPixel);
      const right = Math.min(until, from + (pixel + 1) * perPixel);
      if (right <= left) break;
      bins[4 * pixel + activity] += right - left;
    }
  }
}

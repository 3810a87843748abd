// Exact sums of a page that has merged samples: its server has all of them.

import { inflate, parseSums, type Samples } from "./trace.ts";

type Times = [number, number] | null;

export class Live {
  private wanted: Times = null;
  private isAsking = false;

  /** `answered` gets the sums of the times, or the reason for which there are none. */
  constructor(
    private readonly threads: number,
    private readonly answered: (times: Times, sums: Samples | string) => void,
  ) {}

  /** Requests the sums of the samples at these times, one request after the other. */
  async ask(times: Times): Promise<void> {
    this.wanted = times;
    if (this.isAsking) return;
    this.isAsking = true;
    let asked: Times;
    let sums: Samples | string;
    do {
      asked = this.wanted;
      sums = await this.request(asked);
    } while (`${this.wanted}` !== `${asked}`);
    this.isAsking = false;
    this.answered(asked, sums);
  }

  private async request(times: Times): Promise<Samples | string> {
    try {
      const query = times ? `?from=${Math.max(0, times[0])}&to=${Math.max(0, times[1])}` : "";
      const response = await fetch(`query${query}`);
      if (!response.ok) return `status ${response.status}`;
      return parseSums(await inflate(await response.text()), this.threads);
    } catch (error) {
      return error instanceof Error ? error.message : `${error}`;
    }
  }
}

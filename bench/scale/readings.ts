import { readProcessCpu } from '../support/process-cpu.ts';
import { readStatusMib } from '../support/process-memory.ts';
import type { CountingProxy, Traffic } from './counting-proxy.ts';

/** What was used between two moments. */
export type Usage = {
  readonly seconds: number;
  /** CPU of ipamd, of the API server, and of etcd, where there is one; seconds. */
  readonly cpuS: number;
  readonly serverCpuS: number;
  readonly etcdCpuS: number;
  /** Calls of ipamd and bytes of their answers, by kind. */
  readonly traffic: Traffic;
};

/** Whose use is read. The ids are asked for at each reading. */
type Read = {
  readonly ipamd: () => number;
  readonly servers: () => { readonly server: number; readonly etcd: number | undefined };
  readonly proxy: CountingProxy;
};

const EVERY_MS = 250;

/** Reads what ipamd and its API server use, and follows ipamd's memory. */
export class Readings {
  readonly #read: Read;
  readonly #timer: NodeJS.Timeout;
  #peakMib = 0;

  constructor(read: Read) {
    this.#read = read;
    this.#timer = setInterval(() => this.#sample(), EVERY_MS);
  }

  /** RssAnon of ipamd now, MiB: what the kernel cannot take back. */
  get memoryMib(): number {
    return readStatusMib(this.#read.ipamd(), 'RssAnon');
  }

  /** Most of it that was seen since the last call, looking four times a second. */
  takePeakMib(): number {
    this.#sample();
    const peak = this.#peakMib;
    this.#peakMib = 0;
    return peak;
  }

  /** Begins a span; the function returns what was used since, and may be called again. */
  begin(): () => Usage {
    const [startedMs, before, traffic] = [performance.now(), this.#cpu(), this.#read.proxy.traffic()];
    return () => {
      const now = this.#cpu();
      return {
        seconds: (performance.now() - startedMs) / 1000,
        cpuS: now.ipamd - before.ipamd,
        serverCpuS: now.server - before.server,
        etcdCpuS: now.etcd - before.etcd,
        traffic: trafficBetween(traffic, this.#read.proxy.traffic()),
      };
    };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #cpu() {
    const { server, etcd } = this.#read.servers();
    return {
      ipamd: readProcessCpu(this.#read.ipamd()).ownS,
      server: readProcessCpu(server).ownS,
      etcd: etcd === undefined ? 0 : readProcessCpu(etcd).ownS,
    };
  }

  #sample(): void {
    try {
      this.#peakMib = Math.max(this.#peakMib, this.memoryMib || 0);
    } catch {
      // Between two processes there is none.
    }
  }
}

/** Sums the bytes of the answers whose kind begins with `verb`. */
export function bytesOf({ traffic }: Usage, verb = ''): number {
  return [...traffic].reduce((sum, [kind, { bytes }]) => sum + (kind.startsWith(verb) ? bytes : 0), 0);
}

/** Sums the calls whose kind begins with one of the verbs. */
export function callsOf({ traffic }: Usage, ...verbs: readonly string[]): number {
  return [...traffic].reduce(
    (sum, [kind, { calls }]) => sum + (verbs.some((verb) => kind.startsWith(verb)) ? calls : 0),
    0,
  );
}

/** Names the kinds with the most bytes: `WATCH pods 12.1 MB in 1`. */
export function describeTraffic({ traffic }: Usage, most = 4): string {
  return [...traffic]
    .toSorted(([, a], [, b]) => b.bytes - a.bytes)
    .slice(0, most)
    .map(([kind, { bytes, calls }]) => `${kind} ${(bytes / 1e6).toFixed(1)} MB in ${calls}`)
    .join(', ');
}

function trafficBetween(from: Traffic, to: Traffic): Traffic {
  const entries = [...to].map(([kind, { calls, bytes }]) => {
    const before = from.get(kind) ?? { calls: 0, bytes: 0 };
    return [kind, { calls: calls - before.calls, bytes: bytes - before.bytes }] as const;
  });
  return new Map(entries.filter(([, { calls, bytes }]) => calls > 0 || bytes > 0));
}

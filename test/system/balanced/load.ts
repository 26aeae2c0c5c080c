import { fileURLToPath } from 'node:url';
import type { NetnsView } from '../../../sim/support/netns.ts';

/** Whom so many askers ask at once, and how. */
export type LoadTarget = {
  readonly host: string;
  readonly port: number;
  readonly protocol: 'TCP' | 'UDP';
  /** Host that requests of HTTP name; default the address. */
  readonly name?: string;
  /** A connection, or a source port, is used for a second; else once. */
  readonly isKept: boolean;
  readonly count: number;
};

/** What came of it. */
export type LoadReport = {
  readonly requests: number;
  /** Requests without a whole answer. */
  readonly failed: number;
  readonly connections: number;
  /** The first of these. */
  readonly failures: readonly string[];
  /** Answers by the name of the Pod. */
  readonly answers: Readonly<Record<string, number>>;
};

/** Askers at work. */
type Load = {
  /** Ends them when their requests are over, and have been as many as wanted. @throws Error when they make no report */
  stop(): Promise<LoadReport>;
};

/** Loads so far: source ports of one are not those of the one before. */
let started = 0;

/** Starts asking from a namespace, at least so many requests. */
export function startLoad(from: NetnsView, targets: readonly LoadTarget[], least: number): Load {
  const script = fileURLToPath(new URL('load-client.ts', import.meta.url));
  const firstPort = 20_000 + (started++ % 5) * 8_000;
  const child = from.start([process.execPath, script, JSON.stringify(targets), `${least}`, `${firstPort}`]);
  return {
    stop: async () => {
      child.writeLine('stop');
      await child.exited;
      if (!child.stdout.endsWith('\n')) throw new Error(`the askers made no report: ${child.stderr.slice(-2_000)}`);
      return JSON.parse(child.stdout) as LoadReport;
    },
  };
}
